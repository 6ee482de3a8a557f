// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/program_collectives.h"

#include <algorithm>

namespace peal::host {
namespace {

const uint8_t* at(const void* buffer, uint64_t offset) {
  return static_cast<const uint8_t*>(buffer) + offset;
}

}  // namespace

Program chain_broadcast(uint32_t rank, uint32_t ranks, uint32_t root, void* buffer, uint64_t bytes,
                        uint64_t segment_bytes, const std::vector<Program::Remote>& buffers) {
  const uint32_t place = (rank + ranks - root) % ranks;
  const uint32_t before = (rank + ranks - 1) % ranks;
  const uint32_t behind = (rank + 1) % ranks;
  const bool first = place == 0;
  const bool last = place + 1 == ranks;
  const uint64_t segment = std::max<uint64_t>(segment_bytes, 1);
  const uint64_t segments = std::max<uint64_t>((bytes + segment - 1) / segment, 1);

  // Whoever has nobody before it, or behind it, has nothing to pace.
  const bool paced = !first && !last;
  Program program({.rank = rank,
                   .ranks = ranks,
                   .mode = paced ? PEAL_PROGRAM_MODE_SESSION : PEAL_PROGRAM_MODE_TASKS});
  const uint16_t arrived = program.add_counter(first ? rank : before);
  const uint16_t ready = program.add_counter(last ? rank : behind);
  if (!first) program.signal(before, {.counter = ready});
  if (!last) program.wait(ready, 1);
  if (paced) program.schedule(static_cast<uint32_t>(program.steps().size()));
  if (last && !first) program.wait(arrived, segments);
  for (uint64_t i = 0; i < segments && !last; i++) {
    const uint64_t offset = i * segment;
    const Program::Notice notice = {.counter = arrived};
    const Program::Remote to = {buffers[behind].key, buffers[behind].offset + offset};
    program.put(behind, at(buffer, offset), std::min(segment, bytes - offset), to, &notice);
  }
  return program;
}

Program pairwise_alltoall(uint32_t rank, uint32_t ranks, const void* send, uint64_t block_bytes,
                          uint32_t window, const std::vector<Program::Remote>& receives) {
  Program program({.rank = rank, .ranks = ranks});
  const uint16_t arrived = program.add_counter(PEAL_ANY_RANK);
  // Counter k: rank + k is ready.
  for (uint32_t k = 1; k < ranks; k++) program.add_counter((rank + k) % ranks);
  const uint16_t sent = program.add_counter(rank);
  const auto block_for = [&](uint32_t to) -> Program::Remote {
    return {receives[to].key, receives[to].offset + rank * block_bytes};
  };
  for (uint32_t k = 1; k < ranks; k++) {
    program.signal((rank + ranks - k) % ranks, {.counter = static_cast<uint16_t>(k)});
  }
  if (block_bytes != 0) {
    program.put(rank, at(send, rank * block_bytes), block_bytes, block_for(rank), nullptr);
  }
  for (uint32_t k = 1; k < ranks; k++) {
    const uint32_t to = (rank + k) % ranks;
    if (k > window) program.wait(sent, k - window);
    program.wait(static_cast<uint16_t>(k), 1);
    const Program::Notice notice = {.counter = arrived};
    program.put(to, at(send, to * block_bytes), block_bytes, block_for(to), &notice, sent);
  }
  program.wait(arrived, ranks - 1);
  return program;
}

}  // namespace peal::host
