// SPDX-License-Identifier: BSD-2-Clause
// What users' buffers hold: word i of a pattern is base + i * kPatternStep, cheap, and different at
// every offset of every base. Written, and compared in whole, as wide as the processor can; what
// comes out is the same on all of them.
#pragma once

#include <cstdint>

namespace peal::sim {

inline constexpr uint64_t kPatternStep = 0x9e3779b97f4a7c15u;

void write_pattern(uint8_t* to, uint64_t bytes, uint64_t base);
// Offset of the first word that differs, or `bytes` when none does.
[[nodiscard]] uint64_t compare_pattern(const uint8_t* with, uint64_t bytes, uint64_t base);
// Whether bytes `from` to `to` behind the beginning are the pattern's.
[[nodiscard]] bool has_pattern(const uint8_t* begin, uint64_t from, uint64_t to, uint64_t base);

// Blocks side by side, of one length, a multiple of 64: the base of block i is
// mix(family ^ (first + i)).
struct BlockRun {
  uint64_t block_bytes;
  uint32_t count;
  uint64_t family;
  uint64_t first;
};
// Whether all of them are right: short blocks take longer to find one by one than to compare.
[[nodiscard]] bool run_is_right(const uint8_t* with, const BlockRun& run);

}  // namespace peal::sim
