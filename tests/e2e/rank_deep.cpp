// SPDX-License-Identifier: BSD-2-Clause
// Without a host: operations posted deep and then nobody home; and buffers that are overwritten the
// moment they are the user's again.
#include <csignal>
#include <cstring>

#include "tests/e2e/rank_support.h"

namespace peal::e2e {

// deep COUNT BYTES: posts, stops itself, and finds everything done when it is continued.
void run_deep(Job& job) {
  const size_t count = job.number(0, 8);
  const size_t bytes = job.number(1, 64);
  open_all(job);
  std::vector<uint8_t*> send;
  std::vector<uint8_t*> receive;
  for (size_t i = 0; i < count; i++) {
    send.push_back(allocate(job, bytes));
    receive.push_back(allocate(job, bytes * job.size));
    fill(send[i], bytes, job.rank, i);
  }
  job.wait_for_script();  // it holds the cards from here on
  std::vector<peal_request*> requests(count);
  for (size_t i = 0; i < count; i++) {
    EXPECT_OK(job, peal_iallgather(job.group, send[i], receive[i], bytes, &requests[i]));
    int done = 1;
    EXPECT_OK(job, peal_test(requests[i], &done));
    EXPECT_TRUE(job, done == 0);  // no card, no completion
  }
  raise(SIGSTOP);
  for (size_t i = 0; i < count; i++) {
    int done = 0;
    EXPECT_OK(job, peal_test(requests[i], &done));
    EXPECT_TRUE(job, done == 1);  // completed while we were stopped
    EXPECT_TRUE(job, is_gathered(job, receive[i], bytes, i));
    EXPECT_OK(job, peal_request_free(requests[i]));
  }
  close_all(job);
}

// overwrite ALGORITHM ITERATIONS BYTES: with a lossy wire, late NACKs ask for data whose buffer is
// garbage by now.
void run_overwrite(Job& job) {
  const auto algorithm = static_cast<peal_allgather_algorithm>(job.number(0, 1));
  const uint64_t iterations = job.number(1, 200);
  const size_t bytes = job.number(2, 64);
  constexpr size_t kDepth = 4;
  open_all(job, algorithm);
  // Memory that is merely registered: the card reaches this process for every read.
  std::vector<std::vector<uint8_t>> send(kDepth, std::vector<uint8_t>(bytes));
  std::vector<std::vector<uint8_t>> receive(kDepth, std::vector<uint8_t>(bytes * job.size));
  peal_request* requests[kDepth] = {};
  peal_memory* read[kDepth] = {};
  peal_memory* written[kDepth] = {};
  for (size_t i = 0; i < kDepth; i++) {
    EXPECT_OK(job, peal_register(job.card, send[i].data(), bytes, PEAL_READ, &read[i]));
    EXPECT_OK(
        job, peal_register(job.card, receive[i].data(), bytes * job.size, PEAL_WRITE, &written[i]));
  }
  const auto finish = [&](uint64_t iteration) {
    const size_t slot = iteration % kDepth;
    EXPECT_OK(job, peal_wait(requests[slot]));
    EXPECT_OK(job, peal_request_free(requests[slot]));
    memset(send[slot].data(), 0xee, bytes);
    EXPECT_TRUE(job, is_gathered(job, receive[slot].data(), bytes, iteration));
    memset(receive[slot].data(), 0xdd, bytes * job.size);
  };
  for (uint64_t i = 0; i < iterations; i++) {
    const size_t slot = i % kDepth;
    if (i >= kDepth) {
      finish(i - kDepth);
      // Nothing may have been written since.
      for (const uint8_t byte : receive[slot]) EXPECT_TRUE(job, byte == 0xdd);
    }
    fill(send[slot].data(), bytes, job.rank, i);
    EXPECT_OK(job, peal_iallgather(job.group, send[slot].data(), receive[slot].data(), bytes,
                                   &requests[slot]));
  }
  for (uint64_t i = iterations - kDepth; i < iterations; i++) finish(i);
  EXPECT_OK(job, peal_barrier(job.group));
  for (const auto& buffer : receive) {
    for (const uint8_t byte : buffer) EXPECT_TRUE(job, byte == 0xdd);
  }
  for (size_t i = 0; i < kDepth; i++) {
    EXPECT_OK(job, peal_unregister(read[i]));
    EXPECT_OK(job, peal_unregister(written[i]));
  }
  close_all(job);
}

}  // namespace peal::e2e
