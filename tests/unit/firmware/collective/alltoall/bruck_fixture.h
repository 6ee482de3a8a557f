// SPDX-License-Identifier: BSD-2-Clause
// For tests of Bruck's all-to-all: buffers of a block for each rank, and what others send in a
// step.
#pragma once

#include "tests/unit/card_fixture.h"

namespace peal::test {

class BruckBase : public GroupTest {
 protected:
  static constexpr size_t kSmall = 64;  // in staging
  static constexpr uint32_t kWindow = CONFIG_PIECE_WINDOW;

  explicit BruckBase(uint32_t ranks_ = 4, uint32_t rank_ = 1, size_t block_max = kBlockMax)
      : GroupTest(ranks_, rank_),
        given(bench.add_memory("given", block_max * ranks, PEAL_ACCESS_READ)),
        result(bench.add_memory("result", block_max * ranks)) {
    bench.take_log();
  }

  void put(const Memory& memory, uint64_t sequence, size_t block) {
    auto at = bench.port.bytes(memory.region).begin();
    for (uint32_t to = 0; to < ranks; to++) {
      const auto own = pattern_between(sequence, rank, to, 0, block);
      at = std::copy(own.begin(), own.end(), at);
    }
  }
  void post(uint64_t sequence, size_t block) {
    put(given, sequence, block);
    bench.submit(alltoall_entry(member, sequence, 100 + sequence, block, given.key, result.key));
  }
  void post_in_place(uint64_t sequence, size_t block) {
    put(result, sequence, block);
    peal_submission entry = alltoall_entry(member, sequence, 100 + sequence, block, 0, result.key);
    entry.flags = PEAL_SUBMIT_IN_PLACE;
    bench.submit(entry);
  }
  void scribble() {
    for (const Memory& memory : {given, result}) {
      auto& bytes = bench.port.bytes(memory.region);
      std::fill(bytes.begin(), bytes.end(), uint8_t{0x5c});
    }
  }
  [[nodiscard]] long wrong_byte(uint64_t sequence, size_t block) {
    const auto& bytes = bench.port.bytes(result.region);
    for (uint32_t from = 0; from < ranks; from++) {
      const auto expected = pattern_between(sequence, from, rank, 0, block);
      for (size_t i = 0; i < block; i++) {
        if (bytes[from * block + i] != expected[i]) return static_cast<long>(from * block + i);
      }
    }
    return -1;
  }
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
    bench.take_log();
    bench.port.take_sent();
    bench.deliver(wire.nack(from, bruck_shape(block), 0, piece, 0, k, fragments));
    bench.finish_all_dma();
    return bench.take_wire_log();
  }

  Memory given;
  Memory result;
};

}  // namespace peal::test
