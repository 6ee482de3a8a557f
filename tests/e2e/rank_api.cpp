// SPDX-License-Identifier: BSD-2-Clause
// Corners of the API: groups made step by step and ended by one rank, detached operations, waiting
// for any, signals while waiting, memory that is gone.
#include <sys/mman.h>
#include <sys/time.h>

#include <csignal>
#include <vector>

#include "tests/e2e/rank_support.h"

namespace peal::e2e {
namespace {

constexpr size_t kBytes = 700;

void make_group(Job& job) {
  EXPECT_OK(job, peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob,
                                   nullptr, &job.group));
}

void gather(const Job& job, uint8_t* memory, uint64_t iteration) {
  fill(memory, kBytes, job.rank, iteration);
  EXPECT_OK(job, peal_allgather(job.group, memory, memory + kBytes, kBytes));
  EXPECT_TRUE(job, is_gathered(job, memory + kBytes, kBytes, iteration));
}

volatile sig_atomic_t interrupted = 0;

}  // namespace

// abort RANK: that rank ends the group while operations are pending, everybody's. All are told who
// it was, and make another group.
void run_abort(Job& job) {
  const auto victim = static_cast<uint32_t>(job.number(0, 1));
  open_all(job);
  uint8_t* memory = allocate(job, kBytes * (job.size + 1));
  for (uint64_t i = 0; i < 5; i++) {
    gather(job, memory, i);
    peal_request* requests[2] = {};
    const bool late = job.rank == (victim + 1) % job.size;  // so that nothing can complete
    if (!late) {
      EXPECT_OK(job, peal_iallgather(job.group, memory, memory + kBytes, kBytes, &requests[0]));
      EXPECT_OK(job, peal_ibarrier(job.group, &requests[1]));
      EXPECT_OK(job, peal_ibarrier(job.group, nullptr));
    }
    job.barrier();
    if (job.rank == victim) EXPECT_OK(job, peal_group_abort(job.group));
    job.barrier();
    if (late) {  // what had arrived may still complete
      peal_error error = peal_allgather(job.group, memory, memory + kBytes, kBytes);
      while (error == PEAL_OK) error = peal_barrier(job.group);
      EXPECT_TRUE(job, error == PEAL_ERR_PEER_DEAD);
    }
    for (peal_request* request : requests) {
      if (request == nullptr) continue;
      EXPECT_ERROR(job, peal_wait(request), PEAL_ERR_PEER_DEAD);
      EXPECT_TRUE(job, peal_request_failed_rank(request) == static_cast<int>(victim));
      EXPECT_OK(job, peal_request_free(request));
    }
    if (job.rank != victim) {
      if (!late) EXPECT_ERROR(job, peal_group_wait(job.group), PEAL_ERR_PEER_DEAD);
      EXPECT_ERROR(job, peal_barrier(job.group), PEAL_ERR_PEER_DEAD);
      EXPECT_TRUE(job, peal_group_failed_rank(job.group) == static_cast<int>(victim));
      if (i % 2 == 0) {
        EXPECT_ERROR(job, peal_group_destroy(job.group), PEAL_ERR_PEER_DEAD);
      } else {
        EXPECT_OK(job, peal_group_abort(job.group));  // of one that is dead already
      }
    }
    make_group(job);
  }
  gather(job, memory, 99);
  close_all(job);
}

// steps: a group made step by step; operations that nobody holds a request of.
void run_steps(Job& job) {
  EXPECT_OK(job, peal_open(nullptr, &job.card));
  peal_group_builder* builder = nullptr;
  EXPECT_OK(job, peal_group_begin(job.card, job.rank, job.size, nullptr, &builder));
  std::vector<uint8_t> records(size_t{PEAL_GROUP_RECORD_BYTES} * job.size);
  int exchanges = 0;
  while (job.group == nullptr) {
    EXPECT_TRUE(job, peal_oob_exchange(job.oob, peal_group_record(builder), records.data(),
                                       PEAL_GROUP_RECORD_BYTES) == 0);
    EXPECT_OK(job, peal_group_advance(builder, records.data(), &job.group));
    exchanges++;
  }
  EXPECT_TRUE(job, exchanges == 2);
  peal_card_info info = {};
  info.struct_bytes = sizeof(info);
  EXPECT_OK(job, peal_card_query(job.card, &info));
  EXPECT_TRUE(job, info.geometry != 0 && info.channel_bytes != 0);
  const size_t count = info.parked_max;
  uint8_t* memory = allocate(job, kBytes * (job.size + 1) * count);
  const auto send = [&](size_t i) { return memory + i * kBytes * (job.size + 1); };
  for (uint64_t round = 0; round < 20; round++) {
    for (size_t i = 0; i < count; i++) {
      fill(send(i), kBytes, job.rank, round * count + i);
      EXPECT_OK(job, peal_iallgather(job.group, send(i), send(i) + kBytes, kBytes, nullptr));
    }
    EXPECT_OK(job, peal_group_wait(job.group));
    for (size_t i = 0; i < count; i++) {
      EXPECT_TRUE(job, is_gathered(job, send(i) + kBytes, kBytes, round * count + i));
    }
  }
  peal_statistics statistics = {};
  statistics.struct_bytes = sizeof(statistics);
  EXPECT_OK(job, peal_read_statistics(job.card, &statistics));
  EXPECT_TRUE(job, statistics.posted == 20 * count && statistics.completed == 20 * count);
  EXPECT_TRUE(job, statistics.failed == 0 && statistics.requests == 0 && statistics.groups == 1);
  close_all(job);
}

// any COUNT: two groups; whichever result comes first is taken first.
void run_any(Job& job) {
  const uint64_t count = job.number(0, 100);
  open_all(job);
  peal_group* first = job.group;
  make_group(job);
  peal_group* groups[2] = {first, job.group};
  uint8_t* memory = allocate(job, 2 * kBytes * (job.size + 1));
  peal_request* requests[2] = {};
  uint64_t posted[2] = {};
  uint64_t taken = 0;
  const auto post = [&](size_t g) {
    uint8_t* send = memory + g * kBytes * (job.size + 1);
    fill(send, kBytes, job.rank, posted[g]++);
    EXPECT_OK(job, peal_iallgather(groups[g], send, send + kBytes, kBytes, &requests[g]));
  };
  post(0);
  post(1);
  while (requests[0] != nullptr || requests[1] != nullptr) {
    size_t g = PEAL_NO_INDEX;
    EXPECT_OK(job, peal_wait_any(requests, 2, UINT64_MAX, &g));
    EXPECT_TRUE(job, g < 2 && requests[g] != nullptr);
    EXPECT_TRUE(job, is_gathered(job, memory + g * kBytes * (job.size + 1) + kBytes, kBytes,
                                 posted[g] - 1));
    EXPECT_OK(job, peal_request_free(requests[g]));
    requests[g] = nullptr;
    taken++;
    if (posted[g] < count) post(g);
  }
  EXPECT_TRUE(job, taken == 2 * count);
  EXPECT_OK(job, peal_group_destroy(first));
  close_all(job);
}

// signals: a timer interrupts whoever waits, asleep or not, again and again; nobody notices.
void run_signals(Job& job) {
  open_all(job);
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = interrupted + 1; };
  EXPECT_TRUE(job, sigaction(SIGALRM, &action, nullptr) == 0);  // without SA_RESTART
  const itimerval often = {{0, 2000}, {0, 2000}};
  EXPECT_TRUE(job, setitimer(ITIMER_REAL, &often, nullptr) == 0);
  uint8_t* memory = allocate(job, kBytes * (job.size + 1));
  for (uint64_t i = 0; i < 50; i++) {
    if (i % 10 == 0 && job.rank == i / 10 % job.size) {  // late, until it was interrupted itself
      const sig_atomic_t before = interrupted;
      while (interrupted < before + 20) pause();
    }
    gather(job, memory, i);
  }
  EXPECT_TRUE(job, interrupted > 20);
  const itimerval never = {};
  EXPECT_TRUE(job, setitimer(ITIMER_REAL, &never, nullptr) == 0);
  close_all(job);
}

// unmapped RANK: that rank's registered memory is gone when the card wants it. All are told whose
// it was, and the group goes on.
void run_unmapped(Job& job) {
  const auto victim = static_cast<uint32_t>(job.number(0, 1));
  open_all(job, PEAL_ALLGATHER_ALL_TO_ALL_BROADCAST);
  uint8_t* memory = allocate(job, kBytes * (job.size + 1));
  void* gone = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_TRUE(job, gone != MAP_FAILED);
  peal_memory* handle = nullptr;
  EXPECT_OK(job, peal_register(job.card, gone, 4096, PEAL_READ, &handle));
  fill(static_cast<uint8_t*>(gone), kBytes, job.rank, 1);
  EXPECT_OK(job, peal_allgather(job.group, gone, memory + kBytes, kBytes));
  EXPECT_TRUE(job, is_gathered(job, memory + kBytes, kBytes, 1));
  if (job.rank == victim) EXPECT_TRUE(job, munmap(gone, 4096) == 0);
  peal_request* request = nullptr;
  EXPECT_OK(job, peal_iallgather(job.group, gone, memory + kBytes, kBytes, &request));
  EXPECT_ERROR(job, peal_wait(request), PEAL_ERR_DMA_FAULT);
  EXPECT_TRUE(job, peal_request_failed_rank(request) == static_cast<int>(victim));
  EXPECT_OK(job, peal_request_free(request));
  EXPECT_OK(job, peal_unregister(handle));
  gather(job, memory, 2);
  close_all(job);
}

}  // namespace peal::e2e
