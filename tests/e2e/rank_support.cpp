// SPDX-License-Identifier: BSD-2-Clause
// Shared by all scenarios; see rank_support.h.
#include "tests/e2e/rank_support.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/peal-perf/pattern.h"

namespace peal::e2e {

uint64_t Job::number(size_t index, uint64_t otherwise) const {
  return index < arguments.size() ? strtoull(arguments[index].c_str(), nullptr, 10) : otherwise;
}

void Job::barrier() const {
  const uint8_t here = 1;
  std::vector<uint8_t> all(size);
  EXPECT_OK(*this, static_cast<peal_error>(peal_oob_exchange(oob, &here, all.data(), 1)));
}

void Job::wait_for_script() const {
  barrier();
  if (rank == 0) {
    puts("ready");
    fflush(stdout);
    getchar();
  }
  barrier();
}

void fail(const Job& job, const char* file, int line, const std::string& what) {
  fprintf(stderr, "%s:%d: rank %u: %s\n", file, line, job.rank, what.c_str());
  fflush(nullptr);
  _Exit(1);
}

void expect_error(const Job& job, const char* file, int line, const char* call, peal_error got,
                  peal_error wanted) {
  if (got == wanted) {
    // An error must come with its explanation.
    if (got == PEAL_OK || strlen(peal_last_error_text()) != 0) return;
    fail(job, file, line, std::string(call) + ": no text for \"" + peal_strerror(got) + "\"");
  }
  fail(job, file, line,
       std::string(call) + ": \"" + peal_strerror(got) + "\" instead of \"" +
           peal_strerror(wanted) + "\"; last text: " + peal_last_error_text());
}

void open_all(Job& job, peal_allgather_algorithm algorithm) {
  EXPECT_OK(job, peal_open(nullptr, &job.card));
  peal_group_params params = {};
  params.struct_bytes = sizeof(params);
  params.allgather_algorithm = algorithm;
  EXPECT_OK(job, peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob,
                                   &params, &job.group));
}

void close_all(Job& job) {
  EXPECT_OK(job, peal_group_destroy(job.group));
  peal_close(job.card);
}

uint8_t* allocate(const Job& job, size_t bytes) {
  void* memory = nullptr;
  EXPECT_OK(job, peal_alloc(job.card, bytes, &memory));
  return static_cast<uint8_t*>(memory);
}

void fill(uint8_t* block, size_t bytes, uint32_t origin, uint64_t iteration) {
  perf::fill_pattern(block, bytes, origin, iteration);
}

bool is_filled(const uint8_t* block, size_t bytes, uint32_t origin, uint64_t iteration) {
  return perf::check_pattern(block, bytes, origin, iteration);
}

bool is_gathered(const Job& job, const uint8_t* result, size_t block_bytes, uint64_t iteration) {
  for (uint32_t origin = 0; origin < job.size; origin++) {
    if (!is_filled(result + origin * block_bytes, block_bytes, origin, iteration)) return false;
  }
  return true;
}

}  // namespace peal::e2e
