// SPDX-License-Identifier: BSD-2-Clause
// Rank 1 of 8 in a direct all-to-all. Its peers are 0, 2, 3, 5 and 7; ranks 4 and 6 are none, and
// are known by a table of addresses alone.
#pragma once

#include "tests/unit/card_fixture.h"

namespace peal::test {

class DirectTest : public GroupTest {
 protected:
  static constexpr size_t kBlock = 64;
  static constexpr size_t kMost = (2 * CONFIG_PIECE_WINDOW + 2) * CONFIG_MTU_BYTES;

  DirectTest()
      : GroupTest(8, 1, with_tables()),
        given(bench.add_memory("given", kMost * 8, PEAL_ACCESS_READ)),
        result(bench.add_memory("result", kMost * 8)) {
    bench.take_log();
  }

  static BenchOptions with_tables() {
    BenchOptions options;
    options.tables = true;
    return options;
  }
  void put(const Memory& memory, size_t block) {
    auto at = bench.port.bytes(memory.region).begin();
    for (uint32_t to = 0; to < ranks; to++) {
      const auto own = pattern_between(0, rank, to, 0, block);
      at = std::copy(own.begin(), own.end(), at);
    }
  }
  void post(size_t block = kBlock) {
    put(given, block);
    peal_submission entry = alltoall_entry(member, 0, 100, block, given.key, result.key);
    entry.algorithm = PEAL_ALGORITHM_DIRECT;
    bench.submit(entry);
  }
  void post_in_place(size_t block = kBlock) {
    put(result, block);
    peal_submission entry = alltoall_entry(member, 0, 100, block, 0, result.key);
    entry.algorithm = PEAL_ALGORITHM_DIRECT;
    entry.flags = PEAL_SUBMIT_IN_PLACE;
    bench.submit(entry);
  }
  // The user takes both buffers back.
  void scribble() {
    for (const Memory& memory : {given, result}) {
      auto& bytes = bench.port.bytes(memory.region);
      std::fill(bytes.begin(), bytes.end(), uint8_t{0x5c});
    }
  }
  [[nodiscard]] long wrong(size_t block = kBlock) {
    const auto& bytes = bench.port.bytes(result.region);
    for (uint32_t from = 0; from < ranks; from++) {
      const auto expected = pattern_between(0, from, rank, 0, block);
      for (size_t i = 0; i < block; i++) {
        if (bytes[from * block + i] != expected[i]) return static_cast<long>(from * block + i);
      }
    }
    return -1;
  }
  // What a rank sends us of a piece.
  [[nodiscard]] Frame from(uint32_t sender, size_t block = kBlock, uint32_t piece = 0) const {
    const size_t before = size_t{piece} * CONFIG_MTU_BYTES;
    const size_t bytes = std::min<size_t>(block - before, CONFIG_MTU_BYTES);
    return wire.direct(sender, direct_shape(block), 0, piece,
                       pattern_between(0, sender, rank, before, bytes));
  }
  void deliver_all(size_t block = kBlock, uint32_t piece = 0) {
    for (uint32_t sender = 0; sender < ranks; sender++) {
      if (sender != rank) bench.deliver(from(sender, block, piece));
      bench.finish_all_dma();
    }
  }
  // What we send a rank of a piece.
  [[nodiscard]] std::vector<uint8_t> own(uint32_t to, size_t block = kBlock,
                                         uint32_t piece = 0) const {
    const size_t before = size_t{piece} * CONFIG_MTU_BYTES;
    return pattern_between(0, rank, to, before, std::min<size_t>(block - before, CONFIG_MTU_BYTES));
  }
  std::string change(const Frame& frame) {
    const auto before = bench.counters();
    bench.deliver(frame);
    return bench.counter_changes(before);
  }
  std::string answer(uint32_t asker, size_t block = kBlock, uint32_t piece = 0,
                     uint64_t fragments = 1) {
    bench.take_log();
    bench.port.take_sent();
    bench.deliver(wire.nack(asker, direct_shape(block), 0, piece, rank, 0, fragments));
    bench.finish_all_dma();
    return bench.take_wire_log();
  }

  Memory given;
  Memory result;
};

}  // namespace peal::test
