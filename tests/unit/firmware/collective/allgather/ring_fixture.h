// SPDX-License-Identifier: BSD-2-Clause
// Rank 1 of a ring of 8: its left neighbour is rank 0, its right one rank 2. The blocks come in the
// order 0, 7, 6, 5, 4, 3, 2, which are 1, 2, …, 7 hops away.
#pragma once

#include "firmware/operation/layout.h"
#include "tests/support/log_lines.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {

class RingTest : public GroupTest {
 protected:
  static constexpr uint32_t kWindow = CONFIG_PIECE_WINDOW;
  static constexpr size_t kMost = (2 * kWindow + 2) * CONFIG_MTU_BYTES;

  explicit RingTest(const BenchOptions& options = {})
      : GroupTest(8, 1, options),
        given(bench.add_memory("given", kMost, PEAL_ACCESS_READ)),
        result(bench.add_memory("result", kMost * 8)) {
    bench.take_log();
  }

  void post(size_t block = kBlock, uint64_t sequence = 0, bool in_place = false) {
    auto& bytes = bench.port.bytes(in_place ? result.region : given.region);
    const auto own = pattern_block(sequence, rank, 0, block);
    std::copy(own.begin(), own.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(in_place ? rank * block : 0));
    peal_submission entry = allgather_entry(member, sequence, 100 + sequence, PEAL_ALGORITHM_RING,
                                            block, in_place ? 0 : given.key, result.key);
    if (in_place) entry.flags = PEAL_SUBMIT_IN_PLACE;
    bench.submit(entry);
  }
  void scribble() {
    for (const Memory& memory : {given, result}) {
      auto& bytes = bench.port.bytes(memory.region);
      std::fill(bytes.begin(), bytes.end(), uint8_t{0x5c});
    }
  }
  [[nodiscard]] bool right(size_t block = kBlock) {
    const auto expected = pattern_result(0, ranks, block);
    return std::equal(expected.begin(), expected.end(), bench.port.bytes(result.region).begin());
  }
  [[nodiscard]] std::vector<uint8_t> part(uint32_t of, size_t block = kBlock,
                                          uint32_t piece = 0) const {
    const uint32_t most = piece_bytes_for(ranks);
    const size_t before = size_t{piece} * most;
    return pattern_block(0, of, before, std::min<size_t>(block - before, most));
  }
  // The block of the rank so many hops away.
  [[nodiscard]] uint32_t origin_at(uint32_t distance) const {
    return (rank + ranks - distance) % ranks;
  }
  [[nodiscard]] Frame block_at(uint32_t distance, uint32_t held_back = 0, size_t block = kBlock,
                               uint32_t piece = 0) const {
    const uint32_t origin = origin_at(distance);
    return wire.ring(ring_shape(block), 0, piece, origin, part(origin, block, piece), held_back);
  }
  // What comes of it, on the wire.
  std::string heard(uint32_t distance, uint32_t held_back = 0, size_t block = kBlock,
                    uint32_t piece = 0) {
    return answer(block_at(distance, held_back, block, piece));
  }
  void deliver_all(size_t block = kBlock, uint32_t piece = 0) {
    for (uint32_t distance = 1; distance < ranks; distance++) {
      bench.deliver(block_at(distance, 0, block, piece));
      bench.finish_all_dma();
    }
  }
  // What the right neighbour is answered.
  std::string asked(uint32_t origin, uint64_t bits = 1, size_t block = kBlock, uint32_t piece = 0) {
    return answer(wire.nack(2, ring_shape(block), 0, piece, origin, 0, bits));
  }

  Memory given;
  Memory result;
};

}  // namespace peal::test
