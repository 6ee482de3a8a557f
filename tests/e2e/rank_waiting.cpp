// SPDX-License-Identifier: BSD-2-Clause
// Ways of waiting: asleep without cost, through a descriptor, with a time-out.
#include <poll.h>

#include <cstdio>

#include "tests/e2e/rank_support.h"

namespace peal::e2e {
namespace {

uint64_t sleeps(const Job& job) {
  peal_statistics statistics = {};
  statistics.struct_bytes = sizeof(statistics);
  EXPECT_OK(job, peal_read_statistics(job.card, &statistics));
  return statistics.sleeps;
}

}  // namespace

// sleep: rank 0 comes to the barrier when the script says so; the others sleep until then.
void run_sleep(Job& job) {
  open_all(job);
  EXPECT_OK(job, peal_barrier(job.group));
  job.barrier();
  const uint64_t before = sleeps(job);
  if (job.rank == 0) {
    puts("ready");
    fflush(stdout);
    getchar();
  }
  EXPECT_OK(job, peal_barrier(job.group));
  if (job.rank != 0) EXPECT_TRUE(job, sleeps(job) > before);
  close_all(job);
}

// epoll COUNT: completions announced by a descriptor; one rank at a time lets the others wait.
void run_epoll(Job& job) {
  const uint64_t count = job.number(0, 50);
  open_all(job);
  int fd = -1;
  int same = -1;
  EXPECT_OK(job, peal_completion_fd(job.card, &fd));
  EXPECT_OK(job, peal_completion_fd(job.card, &same));
  EXPECT_TRUE(job, fd >= 0 && fd == same);
  const size_t bytes = 300;
  uint8_t* send = allocate(job, bytes);
  uint8_t* receive = allocate(job, bytes * job.size);
  for (uint64_t i = 0; i < count; i++) {
    fill(send, bytes, job.rank, i);
    if (i % job.size == job.rank) job.barrier();  // late: the others have armed
    peal_request* request = nullptr;
    EXPECT_OK(job, peal_iallgather(job.group, send, receive, bytes, &request));
    if (i % job.size != job.rank) job.barrier();
    int done = 0;
    while (true) {
      EXPECT_OK(job, peal_test(request, &done));
      if (done != 0) break;
      int ready = 0;
      EXPECT_OK(job, peal_arm(job.card, &ready));
      if (ready != 0) continue;
      pollfd wait = {fd, POLLIN, 0};
      EXPECT_TRUE(job, poll(&wait, 1, 60'000) == 1);
    }
    EXPECT_TRUE(job, is_gathered(job, receive, bytes, i));
    EXPECT_OK(job, peal_request_free(request));
  }
  close_all(job);
}

// gate: everybody is connected out of band, and waits for the script.
void run_gate(Job& job) { job.wait_for_script(); }

// timeout: a wait that gives up leaves the request as it was.
void run_timeout(Job& job) {
  open_all(job);
  peal_request* request = nullptr;
  if (job.rank == 0) {
    EXPECT_OK(job, peal_ibarrier(job.group, &request));
    EXPECT_ERROR(job, peal_wait_for(request, 0), PEAL_ERR_TIMED_OUT);
    EXPECT_ERROR(job, peal_wait_for(request, 50'000'000), PEAL_ERR_TIMED_OUT);
    job.barrier();
  } else {
    job.barrier();
    EXPECT_OK(job, peal_ibarrier(job.group, &request));
  }
  EXPECT_OK(job, peal_wait_for(request, UINT64_MAX));
  EXPECT_OK(job, peal_request_free(request));
  close_all(job);
}

}  // namespace peal::e2e
