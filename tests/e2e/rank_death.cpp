// SPDX-License-Identifier: BSD-2-Clause
// Failures that everybody is told about: a rank that dies, a card that dies, ranks that disagree.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/e2e/rank_support.h"

namespace peal::e2e {

// death VICTIM kill|leave BYTES: the victim ends in the middle of things; everybody else is told,
// by name, for what is pending and for what comes later.
void run_death(Job& job) {
  const auto victim = static_cast<uint32_t>(job.number(0, 1));
  const bool leave = job.arguments.size() > 1 && job.arguments[1] == "leave";
  const size_t bytes = job.number(2, 256);
  open_all(job);
  uint8_t* send = allocate(job, bytes);
  uint8_t* receive = allocate(job, bytes * job.size);
  for (uint64_t i = 0; i < 20; i++) {
    fill(send, bytes, job.rank, i);
    EXPECT_OK(job, peal_allgather(job.group, send, receive, bytes));
    EXPECT_TRUE(job, is_gathered(job, receive, bytes, i));
  }
  EXPECT_OK(job, peal_barrier(job.group));
  // Whoever is out of that barrier may die while others, whose packets were lost, are still in it.
  job.barrier();
  if (job.rank == victim) {
    if (leave) _Exit(0);  // without a word
    raise(SIGKILL);
  }
  peal_request* pending[3] = {};
  for (peal_request*& request : pending) EXPECT_OK(job, peal_ibarrier(job.group, &request));
  uint64_t sequence = 21;  // behind the allgathers and the barrier
  for (peal_request* request : pending) {
    EXPECT_ERROR(job, peal_wait(request), PEAL_ERR_PEER_DEAD);
    EXPECT_TRUE(job, peal_request_failed_rank(request) == static_cast<int>(victim));
    EXPECT_TRUE(job, peal_last_error_text() == "barrier " + std::to_string(sequence++) +
                                                   ": a member of the group died: rank " +
                                                   std::to_string(victim));
    EXPECT_OK(job, peal_request_free(request));
  }
  EXPECT_ERROR(job, peal_allgather(job.group, send, receive, bytes), PEAL_ERR_PEER_DEAD);
  EXPECT_TRUE(job, peal_group_failed_rank(job.group) == static_cast<int>(victim));
  EXPECT_ERROR(job, peal_group_destroy(job.group), PEAL_ERR_PEER_DEAD);
  printf("rank %u was told that rank %u is dead\n", job.rank, victim);
  // The card itself is as good as ever: the survivors could make another group. Alone will do here.
  const auto alone = [](void*, const void* own, void* all, size_t size) {
    memcpy(all, own, size);
    return 0;
  };
  peal_group* single = nullptr;
  EXPECT_OK(job, peal_group_create(job.card, 0, 1, alone, nullptr, nullptr, &single));
  EXPECT_OK(job, peal_barrier(single));
  EXPECT_OK(job, peal_group_destroy(single));
  peal_close(job.card);
}

// exit STATUS RANK: for the launcher: that rank exits with that status,
// the others wait for it for ever.
void run_exit(Job& job) {
  open_all(job);
  if (job.rank == job.number(1, 0)) _Exit(static_cast<int>(job.number(0, 3)));
  while (peal_barrier(job.group) == PEAL_OK) {
  }
  raise(SIGSTOP);  // neither ends by itself nor hears of SIGTERM
}

// card-gone: waits for what never comes, until the cards are killed or stopped.
void run_card_gone(Job& job) {
  open_all(job);
  uint8_t* memory = allocate(job, 64);
  job.barrier();
  if (job.rank == 0) {
    puts("ready");
    fflush(stdout);
    getchar();  // never enters the barrier; the script has killed the cards by then
    EXPECT_ERROR(job, peal_barrier(job.group), PEAL_ERR_CARD_GONE);
  } else {
    peal_request* request = nullptr;
    EXPECT_OK(job, peal_ibarrier(job.group, &request));
    EXPECT_ERROR(job, peal_wait(request), PEAL_ERR_CARD_GONE);
    EXPECT_OK(job, peal_request_free(request));
  }
  EXPECT_ERROR(job, peal_barrier(job.group), PEAL_ERR_CARD_GONE);
  void* more = nullptr;
  EXPECT_ERROR(job, peal_alloc(job.card, 4096, &more), PEAL_ERR_CARD_GONE);
  memory[0] = 1;  // shared memory outlives the card
  EXPECT_ERROR(job, peal_group_destroy(job.group), PEAL_ERR_CARD_GONE);
  peal_close(job.card);
}

// disagree length|operation RANK: one rank calls something else;
// every rank is told, and the group goes on.
void run_disagree(Job& job) {
  const bool length = job.arguments.at(0) == "length";
  const bool odd = job.rank == job.number(1, 1);
  const size_t bytes = 512;
  for (const auto algorithm :
       {PEAL_ALLGATHER_ALL_TO_ALL_BROADCAST, PEAL_ALLGATHER_RECURSIVE_DOUBLING}) {
    open_all(job, algorithm);
    uint8_t* send = allocate(job, bytes);
    uint8_t* receive = allocate(job, bytes * job.size);
    for (uint64_t i = 0; i < 10; i++) {
      fill(send, bytes, job.rank, i);
      EXPECT_OK(job, peal_allgather(job.group, send, receive, bytes));
      EXPECT_TRUE(job, is_gathered(job, receive, bytes, i));
      peal_error told = PEAL_OK;
      if (!odd) {
        told = peal_allgather(job.group, send, receive, bytes);
      } else if (length) {
        told = peal_allgather(job.group, send, receive, bytes / 2);
      } else {
        told = peal_barrier(job.group);
      }
      EXPECT_TRUE(job, told == PEAL_ERR_MISMATCH);
    }
    EXPECT_OK(job, peal_barrier(job.group));
    close_all(job);
  }
}

// choice RANK: that rank's table of algorithms differs, or it cannot even read it.
// Nobody gets a group.
void run_choice(Job& job) {
  const bool odd = job.rank == job.number(0, 1);
  EXPECT_OK(job, peal_open(nullptr, &job.card));
  peal_group_params params = {};
  params.struct_bytes = sizeof(params);
  params.allgather_algorithm =
      odd ? PEAL_ALLGATHER_ALL_TO_ALL_BROADCAST : PEAL_ALLGATHER_RECURSIVE_DOUBLING;
  EXPECT_ERROR(job,
               peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob, &params,
                                 &job.group),
               PEAL_ERR_MISMATCH);
  if (odd) setenv("PEAL_ALLGATHER_ALGORITHM", "fastest", 1);
  params.allgather_algorithm = PEAL_ALLGATHER_AUTO;
  EXPECT_ERROR(job,
               peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob, &params,
                                 &job.group),
               odd ? PEAL_ERR_INVALID_ARGUMENT : PEAL_ERR_PEER_REFUSED);
  unsetenv("PEAL_ALLGATHER_ALGORITHM");
  EXPECT_OK(job, peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob,
                                   &params, &job.group));
  EXPECT_OK(job, peal_barrier(job.group));
  close_all(job);
}

// rules RANK: that rank's environment says the same in other words,
// then something else, then nonsense.
void run_rules(Job& job) {
  const bool odd = job.rank == job.number(0, 1);
  EXPECT_OK(job, peal_open(nullptr, &job.card));
  const auto make = [&](const char* rules) {
    setenv("PEAL_ALGORITHMS", odd ? rules : "allgather:0-600:recursive-doubling", 1);
    return peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob, nullptr,
                             &job.group);
  };
  EXPECT_OK(job, make("allgather:0-99:recursive-doubling,allgather:9-600:recursive-doubling"));
  EXPECT_OK(job, peal_barrier(job.group));
  EXPECT_OK(job, peal_group_destroy(job.group));
  EXPECT_ERROR(job, make("allgather:0-601:recursive-doubling"), PEAL_ERR_MISMATCH);
  EXPECT_ERROR(job, make("allgather:0-6OO:recursive-doubling"),
               odd ? PEAL_ERR_INVALID_ARGUMENT : PEAL_ERR_PEER_REFUSED);
  peal_close(job.card);
}

}  // namespace peal::e2e
