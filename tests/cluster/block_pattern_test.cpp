// SPDX-License-Identifier: BSD-2-Clause
// Patterns of every length up to four lines, at every alignment of a word, against one that is
// written word by word; and every byte of them wrong, once.
#include "emulator/cluster/block_pattern.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "emulator/cluster/mix.h"

namespace peal::sim {
namespace {

constexpr uint64_t kBase = 0xfedcba9876543210u;  // runs over in the first line
constexpr uint64_t kLengthMax = 4 * 64 + 9;
constexpr uint8_t kAround = 0xa5;

std::vector<uint8_t> simple_pattern(uint64_t bytes, uint64_t base) {
  std::vector<uint8_t> pattern(bytes);
  for (uint64_t at = 0; at < bytes; at++)
    pattern[at] = static_cast<uint8_t>((base + at / 8 * kPatternStep) >> at % 8 * 8);
  return pattern;
}

TEST(BlockPattern, IsWrittenAndNothingAroundIt) {
  for (uint64_t bytes = 0; bytes <= kLengthMax; bytes++) {
    const std::vector<uint8_t> pattern = simple_pattern(bytes, kBase);
    for (uint64_t shift = 1; shift <= 8; shift++) {
      std::vector<uint8_t> buffer(shift + bytes + 64, kAround);
      std::vector<uint8_t> expected = buffer;
      if (bytes > 0) std::memcpy(expected.data() + shift, pattern.data(), bytes);
      write_pattern(buffer.data() + shift, bytes, kBase);
      ASSERT_EQ(buffer, expected) << bytes << " bytes at " << shift;
      ASSERT_EQ(compare_pattern(buffer.data() + shift, bytes, kBase), bytes);
    }
  }
}

TEST(BlockPattern, EveryWrongByteIsFoundInItsWord) {
  for (uint64_t bytes = 0; bytes <= kLengthMax; bytes++) {
    std::vector<uint8_t> pattern = simple_pattern(bytes, kBase);
    pattern.push_back(kAround);
    for (uint64_t at = 0; at < bytes; at++) {
      pattern[at] ^= uint8_t{1} << at % 8;
      ASSERT_EQ(compare_pattern(pattern.data(), bytes, kBase), at / 8 * 8) << bytes;
      pattern[at] ^= uint8_t{1} << at % 8;
    }
  }
}

TEST(BlockPattern, APartOfItIsComparedAndNothingElse) {
  std::vector<uint8_t> pattern = simple_pattern(kLengthMax, kBase);
  for (uint64_t at = 0; at < kLengthMax; at++) {
    pattern[at] ^= 0x40;
    for (const uint64_t before : {0, 1, 7, 8, 64, 130})
      for (const uint64_t behind : {0, 1, 7, 8, 64, 130}) {
        if (before > at || at + 1 + behind > kLengthMax) continue;
        ASSERT_FALSE(has_pattern(pattern.data(), at - before, at + 1 + behind, kBase));
      }
    ASSERT_TRUE(has_pattern(pattern.data(), 0, at, kBase));
    ASSERT_TRUE(has_pattern(pattern.data(), at + 1, kLengthMax, kBase));
    pattern[at] ^= 0x40;
  }
}

TEST(BlockPattern, EveryWrongByteOfARunOfBlocksIsFound) {
  for (const uint64_t block : {0, 64, 128, 320}) {
    const BlockRun run = {block, 5, mix(uint64_t{77}), 3};
    std::vector<uint8_t> result;
    for (uint64_t i = 0; i < run.count; i++) {
      const std::vector<uint8_t> one = simple_pattern(block, mix(run.family ^ (run.first + i)));
      result.insert(result.end(), one.begin(), one.end());
    }
    result.push_back(kAround);
    EXPECT_TRUE(run_is_right(result.data(), run));
    for (uint64_t at = 0; at + 1 < result.size(); at++) {
      result[at] ^= uint8_t{1} << at % 8;
      ASSERT_FALSE(run_is_right(result.data(), run)) << block << " " << at;
      result[at] ^= uint8_t{1} << at % 8;
    }
    EXPECT_NE(block > 0, run_is_right(result.data(), {block, 5, run.family, 2}));
    // A run that differs in one thing has other bases, or fewer of them.
    EXPECT_NE(block > 0, run_is_right(result.data(), {block, 5, run.family ^ 1 << 20, 3}));
    EXPECT_TRUE(run_is_right(result.data(), {block, 4, run.family, 3}));
    EXPECT_TRUE(run_is_right(result.data(), run));
  }
}

}  // namespace
}  // namespace peal::sim
