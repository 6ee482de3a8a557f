// SPDX-License-Identifier: BSD-2-Clause
// What the scenarios of e2e-rank share: the job, expectations that name what was wrong, and data
// that tells its origin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "peal/oob.h"
#include "peal/peal.h"

namespace peal::e2e {

struct Job {
  uint32_t rank = 0;
  uint32_t size = 0;
  peal_oob* oob = nullptr;
  peal_context* card = nullptr;
  peal_group* group = nullptr;
  std::vector<std::string> arguments;

  [[nodiscard]] uint64_t number(size_t index, uint64_t otherwise) const;
  void barrier() const;  // out of band
  // All ranks: says "ready" once all are there, and goes on when the script has answered.
  void wait_for_script() const;
};

// Ends the program with status 1 after saying which rank expected what.
[[noreturn]] void fail(const Job& job, const char* file, int line, const std::string& what);
void expect_error(const Job& job, const char* file, int line, const char* call, peal_error got,
                  peal_error wanted);

#define EXPECT_ERROR(job, call, wanted) \
  ::peal::e2e::expect_error(job, __FILE__, __LINE__, #call, call, wanted)
#define EXPECT_OK(job, call) EXPECT_ERROR(job, call, PEAL_OK)
#define EXPECT_TRUE(job, condition) \
  ((condition) ? (void)0 : ::peal::e2e::fail(job, __FILE__, __LINE__, #condition))

// Opens the card and makes a group of all ranks.
void open_all(Job& job, peal_allgather_algorithm algorithm = PEAL_ALLGATHER_AUTO);
// Destroys the group and closes everything, expecting success.
void close_all(Job& job);

uint8_t* allocate(const Job& job, size_t bytes);
void fill(uint8_t* block, size_t bytes, uint32_t origin, uint64_t iteration);
bool is_filled(const uint8_t* block, size_t bytes, uint32_t origin, uint64_t iteration);
// All blocks of a gathered result.
bool is_gathered(const Job& job, const uint8_t* result, size_t block_bytes, uint64_t iteration);

// Scenarios.
void run_deep(Job& job);
void run_overwrite(Job& job);
void run_death(Job& job);
void run_fork(Job& job);
void run_soak(Job& job);
void run_disagree(Job& job);
void run_choice(Job& job);
void run_rules(Job& job);
void run_input(Job& job);
void run_card_gone(Job& job);
void run_sleep(Job& job);
void run_epoll(Job& job);
void run_timeout(Job& job);
void run_threads(Job& job);
void run_churn(Job& job);
void run_overlap(Job& job);
void run_exit(Job& job);
void run_gate(Job& job);
void run_exhaust(Job& job);
void run_many(Job& job);
void run_abort(Job& job);
void run_steps(Job& job);
void run_any(Job& job);
void run_signals(Job& job);
void run_unmapped(Job& job);
void run_remapped(Job& job);
void run_buffers(Job& job);
void run_broadcast(Job& job);
void run_alltoall(Job& job);
void run_mixed(Job& job);
void run_mixed_threads(Job& job);
void run_late(Job& job);
void run_disagree_on(Job& job);
void run_death_in(Job& job);
void run_allgatherv(Job& job);
void run_alltoallv(Job& job);
void run_p2p_ring(Job& job);
void run_p2p_gather(Job& job);
void run_p2p_tags(Job& job);
void run_p2p_memory(Job& job);
void run_p2p_refused(Job& job);
void run_p2p_truncated(Job& job);
void run_p2p_death(Job& job);
void run_persistent(Job& job);
void run_persistent_disagree(Job& job);
void run_persistent_death(Job& job);
void run_persistent_descriptors(Job& job);
void run_programs(Job& job);
void run_programs_bad(Job& job);
void run_programs_free(Job& job);
void run_programs_many(Job& job);
void run_programs_one_engine(Job& job);
void run_programs_trinary(Job& job);
void run_programs_death(Job& job);
void run_programs_stopped(Job& job);

}  // namespace peal::e2e
