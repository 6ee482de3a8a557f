// SPDX-License-Identifier: BSD-2-Clause
// By which peal-perf and the tests' ranks know a wrong result.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tools/peal-perf/pattern.h"

namespace peal::perf {
namespace {

std::vector<uint8_t> block(size_t bytes, uint32_t origin, uint64_t iteration) {
  std::vector<uint8_t> block(bytes);
  fill_pattern(block.data(), bytes, origin, iteration);
  return block;
}

TEST(Pattern, EveryByteCounts) {
  for (const size_t bytes : {1u, 7u, 8u, 9u, 64u, 131u}) {
    auto found = block(bytes, 3, 5);
    EXPECT_TRUE(check_pattern(found.data(), bytes, 3, 5));
    for (size_t at = 0; at < bytes; at++) {
      for (const uint8_t bit : {0x01, 0x80}) {
        found[at] ^= bit;
        EXPECT_FALSE(check_pattern(found.data(), bytes, 3, 5)) << bytes << " bytes, at " << at;
        found[at] ^= bit;
      }
    }
  }
}

TEST(Pattern, AnothersBlockIsWrong) {
  const auto found = block(24, 3, 5);
  EXPECT_FALSE(check_pattern(found.data(), 24, 2, 5));
  EXPECT_FALSE(check_pattern(found.data(), 24, 3, 4));
}

TEST(Pattern, AShiftedBlockIsWrongInEveryWord) {
  const auto found = block(64, 3, 5);
  for (size_t shift = 1; shift < 64; shift++) {
    auto shifted = found;
    std::rotate(shifted.begin(), shifted.begin() + static_cast<ptrdiff_t>(shift), shifted.end());
    for (size_t at = 0; at + 8 <= shifted.size(); at += 8)
      EXPECT_FALSE(std::equal(shifted.begin() + static_cast<ptrdiff_t>(at),
                              shifted.begin() + static_cast<ptrdiff_t>(at + 8),
                              found.begin() + static_cast<ptrdiff_t>(at)));
  }
}

}  // namespace
}  // namespace peal::perf
