// SPDX-License-Identifier: BSD-2-Clause
// A program of docs/write-a-program.md on real processes: a pipelined broadcast down a chain,
// started often, several starts outstanding, with other bytes each time.
#include <vector>

#include "tests/e2e/rank_support.h"

namespace peal::e2e {
namespace {

struct Name {
  uint64_t offset;
  uint64_t key;
};

// Where the next rank's buffer lies, by what all have said.
Name next_buffer(const Job& job, void* buffer, size_t bytes) {
  auto* names = reinterpret_cast<Name*>(allocate(job, (1 + job.size) * sizeof(Name)));
  uint32_t key = 0;
  uint64_t offset = 0;
  EXPECT_OK(job, peal_memory_name(job.card, buffer, bytes, &key, &offset));
  names[0] = {offset, key};
  EXPECT_OK(job, peal_allgather(job.group, names, names + 1, sizeof(Name)));
  const Name next = names[1 + (job.rank + 1) % job.size];
  EXPECT_OK(job, peal_free(job.card, names));
  return next;
}

peal_program* write_chain(const Job& job, uint8_t* buffer, size_t segment, uint32_t segments) {
  const uint32_t last = job.size - 1;
  const bool paced = job.rank != 0 && job.rank != last;
  const Name next = next_buffer(job, buffer, segment * segments);
  const peal_program_params params = {sizeof(params), paced ? PEAL_PROGRAM_IN_SESSION : 0,
                                      paced ? 2u : 0u};
  peal_program* program = nullptr;
  EXPECT_OK(job, peal_program_create(job.rank, job.size, &params, &program));
  uint32_t counter = 0;
  const uint32_t before = job.rank == 0 ? 0 : job.rank - 1;
  EXPECT_OK(job, peal_program_counter(program, before, &counter));
  const uint32_t behind = job.rank == last ? last : job.rank + 1;
  EXPECT_OK(job, peal_program_counter(program, behind, &counter));
  const peal_program_notice arrived = {nullptr, 0, 1};
  const peal_program_notice ready = {nullptr, 1, 1};
  if (job.rank != 0) EXPECT_OK(job, peal_program_signal(program, before, &ready, PEAL_NO_COUNT));
  if (job.rank != last) EXPECT_OK(job, peal_program_wait(program, 1, 1));
  if (job.rank == last && last != 0) EXPECT_OK(job, peal_program_wait(program, 0, segments));
  for (uint32_t i = 0; i < segments && job.rank != last; i++) {
    EXPECT_OK(job, peal_program_put(program, behind, buffer + i * segment, segment,
                                    static_cast<uint32_t>(next.key), next.offset + i * segment,
                                    &arrived, PEAL_NO_COUNT));
  }
  char text[64] = "";
  EXPECT_OK(job, peal_program_check(program, text, sizeof(text), nullptr));
  return program;
}

}  // namespace

// STARTS SEGMENT_BYTES SEGMENTS
void run_program(Job& job) {
  const uint64_t starts = job.number(0, 20);
  const size_t segment = job.number(1, 5000);
  const auto segments = static_cast<uint32_t>(job.number(2, 7));
  const size_t bytes = segment * segments;
  open_all(job);
  uint8_t* buffer = allocate(job, bytes);
  peal_program* program = write_chain(job, buffer, segment, segments);
  EXPECT_OK(job, peal_program_commit(job.group, program));
  for (uint64_t i = 0; i < starts; i++) {
    if (job.rank == 0) fill(buffer, bytes, 0, i);
    peal_request* request = nullptr;
    EXPECT_OK(job, peal_program_start(program, 1, &request));
    EXPECT_OK(job, peal_wait(request));
    EXPECT_OK(job, peal_request_free(request));
    EXPECT_TRUE(job, is_filled(buffer, bytes, 0, i));
  }
  // The same again and again, with no host between; two such starts outstanding. One rank alone has
  // nobody to wait for, and may not.
  const uint32_t iterations = job.size > 1 ? 50 : 1;
  peal_request* often[2] = {};
  for (peal_request*& request : often) {
    EXPECT_OK(job, peal_program_start(program, iterations, &request));
  }
  EXPECT_OK(job, peal_wait_all(often, 2));
  for (peal_request* request : often) EXPECT_OK(job, peal_request_free(request));
  EXPECT_TRUE(job, is_filled(buffer, bytes, 0, starts - 1));
  EXPECT_OK(job, peal_barrier(job.group));
  EXPECT_OK(job, peal_program_free(program));
  // What one rank writes wrongly is committed by none.
  peal_program* wrong = nullptr;
  EXPECT_OK(job, peal_program_create(job.rank, job.size, nullptr, &wrong));
  if (job.rank == 0) EXPECT_OK(job, peal_program_wait(wrong, 9, 1));
  EXPECT_ERROR(job, peal_program_commit(job.group, wrong),
               job.rank == 0 ? PEAL_ERR_BAD_PROGRAM : PEAL_ERR_PEER_REFUSED);
  EXPECT_OK(job, peal_program_free(wrong));
  EXPECT_OK(job, peal_free(job.card, buffer));
  close_all(job);
}

}  // namespace peal::e2e
