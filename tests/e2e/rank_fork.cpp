// SPDX-License-Identifier: BSD-2-Clause
// A rank with a child: the child cannot use its parent's connection, has one of its own with its
// own memory behind it, and does not hide its parent's death.
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "tests/e2e/rank_support.h"

namespace peal::e2e {
namespace {

int alone(void*, const void* own, void* all, size_t bytes) {
  memcpy(all, own, bytes);
  return 0;
}

// Memory that parent and child have at the same address.
struct Buffers {
  uint8_t send[3000];
  uint8_t receive[3000];
};
Buffers buffers;

[[noreturn]] void live_as_child(Job& job, int told) {
  void* memory = nullptr;
  peal_memory* handle = nullptr;
  EXPECT_ERROR(job, peal_alloc(job.card, 4096, &memory), PEAL_ERR_FORKED);
  EXPECT_ERROR(job, peal_register(job.card, &buffers, sizeof(buffers), PEAL_READ, &handle),
               PEAL_ERR_FORKED);
  EXPECT_ERROR(job, peal_barrier(job.group), PEAL_ERR_FORKED);
  EXPECT_ERROR(job, static_cast<peal_error>(peal_oob_exchange(job.oob, &told, &told, 1)),
               PEAL_ERR_FORKED);
  peal_close(job.card);
  peal_oob_close(job.oob);

  Job own = job;
  EXPECT_OK(own, peal_open(nullptr, &own.card));
  EXPECT_OK(own,
            peal_register(own.card, &buffers, sizeof(buffers), PEAL_READ | PEAL_WRITE, &handle));
  EXPECT_OK(own, peal_group_create(own.card, 0, 1, alone, nullptr, nullptr, &own.group));
  fill(buffers.send, sizeof(buffers.send), 77, 1);
  EXPECT_OK(own, peal_allgather(own.group, buffers.send, buffers.receive, sizeof(buffers.receive)));
  EXPECT_TRUE(own, is_filled(buffers.receive, sizeof(buffers.receive), 77, 1));
  close_all(own);

  EXPECT_TRUE(job, write(told, "!", 1) == 1);
  alarm(300);  // if nobody ends it
  while (true) pause();
}

}  // namespace

// fork VICTIM: that rank (not the last) forks and dies; its child lives until the last rank, which
// was told of the death, ends it.
void run_fork(Job& job) {
  const auto victim = static_cast<uint32_t>(job.number(0, 1));
  open_all(job);
  const size_t bytes = 500;
  uint8_t* send = allocate(job, bytes);
  uint8_t* receive = allocate(job, bytes * job.size);
  pid_t child = 0;
  if (job.rank == victim) {
    memset(&buffers, 7, sizeof(buffers));
    peal_memory* handle = nullptr;
    EXPECT_OK(job,
              peal_register(job.card, &buffers, sizeof(buffers), PEAL_READ | PEAL_WRITE, &handle));
    int told[2];
    EXPECT_TRUE(job, pipe(told) == 0);
    child = fork();
    EXPECT_TRUE(job, child >= 0);
    if (child == 0) live_as_child(job, told[1]);
    close(told[1]);
    char byte = 0;
    EXPECT_TRUE(job, read(told[0], &byte, 1) == 1);  // else the child has said what was wrong
    for (const uint8_t value : buffers.receive) EXPECT_TRUE(job, value == 7);
  }
  for (uint64_t i = 0; i < 20; i++) {
    fill(send, bytes, job.rank, i);
    EXPECT_OK(job, peal_allgather(job.group, send, receive, bytes));
    EXPECT_TRUE(job, is_gathered(job, receive, bytes, i));
  }
  std::vector<pid_t> children(job.size);
  EXPECT_OK(job, static_cast<peal_error>(
                     peal_oob_exchange(job.oob, &child, children.data(), sizeof(child))));
  if (job.rank == victim) raise(SIGKILL);
  EXPECT_ERROR(job, peal_barrier(job.group), PEAL_ERR_PEER_DEAD);
  EXPECT_TRUE(job, peal_group_failed_rank(job.group) == static_cast<int>(victim));
  uint8_t all[64];
  EXPECT_ERROR(job, static_cast<peal_error>(peal_oob_exchange(job.oob, "", all, 1)),
               PEAL_ERR_OUT_OF_BAND);
  EXPECT_ERROR(job, peal_group_destroy(job.group), PEAL_ERR_PEER_DEAD);
  peal_close(job.card);
  if (job.rank == job.size - 1) kill(children[victim], SIGKILL);
}

}  // namespace peal::e2e
