// SPDX-License-Identifier: BSD-2-Clause
// For tests of Bruck's all-to-all: what others send in a step.
#pragma once

#include "tests/unit/firmware/collective/alltoall/alltoall_fixture.h"

namespace peal::test {

class BruckTest : public AlltoallTest {
 protected:
  static constexpr size_t kSmall = 64;  // in staging
  static constexpr uint32_t kWindow = CONFIG_PIECE_WINDOW;

  explicit BruckTest(uint32_t ranks_ = 4, uint32_t rank_ = 1, size_t block_max = kBlockMax)
      : AlltoallTest(PEAL_ALGORITHM_BRUCK, ranks_, rank_, block_max) {}

  // What a rank sends in step k: the blocks whose way has bit k, of which lower bits were done.
  [[nodiscard]] std::vector<uint8_t> lot(uint32_t sender, uint32_t k, uint64_t sequence,
                                         size_t offset, size_t bytes) const {
    std::vector<uint8_t> payload;
    for (uint32_t way = 1; way < ranks; way++) {
      if ((way >> k & 1) == 0) continue;
      const uint32_t from = (sender + way % (1u << k)) % ranks;
      const auto block =
          pattern_between(sequence, from, (from + ranks - way) % ranks, offset, bytes);
      payload.insert(payload.end(), block.begin(), block.end());
    }
    return payload;
  }
  [[nodiscard]] uint32_t below(uint32_t k) const { return (rank + ranks - (1u << k)) % ranks; }
  [[nodiscard]] uint32_t above(uint32_t k) const { return (rank + (1u << k)) % ranks; }
  // The whole step in one packet.
  [[nodiscard]] Frame step(uint32_t k, uint64_t sequence = 0, size_t block = kSmall) const {
    return wire.bruck(bruck_shape(block), static_cast<uint32_t>(sequence), 0, k, 0,
                      lot(above(k), k, sequence, 0, block));
  }
  std::string answer(uint32_t from, uint32_t k, size_t block = kSmall, uint32_t piece = 0,
                     uint64_t fragments = 1) {
    return AlltoallTest::answer(wire.nack(from, bruck_shape(block), 0, piece, 0, k, fragments));
  }
};

}  // namespace peal::test
