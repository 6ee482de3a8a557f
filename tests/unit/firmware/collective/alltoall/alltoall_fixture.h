// SPDX-License-Identifier: BSD-2-Clause
// For tests of all-to-alls as one rank sees them: buffers of a block for each rank.
#pragma once

#include "tests/unit/card_fixture.h"

namespace peal::test {

class AlltoallTest : public GroupTest {
 protected:
  AlltoallTest(peal_algorithm algorithm_, uint32_t ranks_, uint32_t rank_, size_t block_max,
               const BenchOptions& options = {})
      : GroupTest(ranks_, rank_, options),
        algorithm(algorithm_),
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
  [[nodiscard]] peal_submission entry(uint64_t sequence, size_t block, bool in_place) const {
    peal_submission entry = alltoall_entry(member, sequence, 100 + sequence, block,
                                           in_place ? 0 : given.key, result.key);
    entry.algorithm = static_cast<uint8_t>(algorithm);
    entry.flags = in_place ? PEAL_SUBMIT_IN_PLACE : 0;
    return entry;
  }
  void post(uint64_t sequence, size_t block) {
    put(given, sequence, block);
    bench.submit(entry(sequence, block, false));
  }
  void post_in_place(uint64_t sequence, size_t block) {
    put(result, sequence, block);
    bench.submit(entry(sequence, block, true));
  }
  // The user takes both buffers back.
  void scribble() {
    for (const Memory& memory : {given, result}) {
      auto& bytes = bench.port.bytes(memory.region);
      std::fill(bytes.begin(), bytes.end(), uint8_t{0x5c});
    }
  }
  // First byte of the result that is not what it should be, or -1.
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
  // What is sent when that is asked for.
  std::string answer(const Frame& nack) {
    bench.port.take_sent();
    return GroupTest::answer(nack);
  }

  peal_algorithm algorithm;
  Memory given;
  Memory result;
};

}  // namespace peal::test
