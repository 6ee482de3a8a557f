// SPDX-License-Identifier: BSD-2-Clause
// Writing and checking; see data.h.
#include "tools/peal-perf/data.h"

#include <cstdio>

#include "tools/peal-perf/pattern.h"

namespace peal::perf {
namespace {

// Of the block that one rank has for another, in an all-to-all.
uint32_t origin_of(const Job& job, uint32_t from, uint32_t to) { return from * job.size + to; }

bool check_block(const Job& job, const uint8_t* block, uint64_t bytes, uint32_t from,
                 uint32_t origin, uint64_t iteration) {
  if (check_pattern(block, bytes, origin, iteration)) return true;
  fprintf(stderr, "peal-perf: rank %u: iteration %llu: the block of rank %u is wrong\n", job.rank,
          static_cast<unsigned long long>(iteration), from);
  return false;
}

}  // namespace

void write_data(const Job& job, Side& side, const Call& call, uint64_t iteration) {
  const uint64_t bytes = call.block_bytes;
  const ideal::Lengths lengths = call.lengths(job);
  switch (call.operation) {
    case PEAL_OPERATION_ALLGATHER:
    case PEAL_OPERATION_ALLGATHERV:
      fill_pattern(side.send_buffer(), lengths.sent_by(job.rank), job.rank, iteration);
      break;
    case PEAL_OPERATION_ALLTOALL:
    case PEAL_OPERATION_ALLTOALLV:
      for (uint32_t r = 0; r < job.size; r++) {
        fill_pattern(side.send_buffer() + lengths.offset_in_send(job.rank, r),
                     lengths.bytes(job.rank, r), origin_of(job, job.rank, r), iteration);
      }
      break;
    case PEAL_OPERATION_BROADCAST:
      if (job.rank == call.root) fill_pattern(side.send_buffer(), bytes, call.root, iteration);
      break;
    default:;
  }
}

bool read_data(const Job& job, Side& side, const Call& call, uint64_t iteration) {
  const uint8_t* const result = side.receive_buffer();
  const ideal::Lengths lengths = call.lengths(job);
  if (call.operation == PEAL_OPERATION_BARRIER) return true;
  if (call.operation == PEAL_OPERATION_BROADCAST) {
    return job.rank == call.root ||
           check_block(job, result, call.block_bytes, call.root, call.root, iteration);
  }
  const bool to_each =
      call.operation == PEAL_OPERATION_ALLTOALL || call.operation == PEAL_OPERATION_ALLTOALLV;
  bool good = true;
  for (uint32_t r = 0; good && r < job.size; r++) {
    good = check_block(job, result + lengths.offset_in_receive(r, job.rank),
                       lengths.bytes(r, job.rank), r, to_each ? origin_of(job, r, job.rank) : r,
                       iteration);
  }
  return good;
}

}  // namespace peal::perf
