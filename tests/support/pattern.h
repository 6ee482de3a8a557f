// SPDX-License-Identifier: BSD-2-Clause
// Test data that tells where it belongs: every byte depends on the operation, the origin and the
// offset, so a block in the wrong place, of the wrong operation or cut at the wrong byte is seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace peal::test {

inline uint8_t pattern_byte(uint64_t sequence, uint32_t origin, uint64_t offset) {
  uint64_t mixed = (sequence * 0x9e3779b97f4a7c15u) ^ (uint64_t{origin} << 40) ^ offset;
  mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9u;
  return static_cast<uint8_t>((mixed ^ (mixed >> 31)) >> 13);
}

inline std::vector<uint8_t> pattern_block(uint64_t sequence, uint32_t origin, uint64_t offset,
                                          size_t bytes) {
  std::vector<uint8_t> block(bytes);
  uint8_t* const at = block.data();
  for (size_t i = 0; i < bytes; i++) at[i] = pattern_byte(sequence, origin, offset + i);
  return block;
}

// The block that a rank has for another in an all-to-all.
inline std::vector<uint8_t> pattern_between(uint64_t sequence, uint32_t from, uint32_t to,
                                            uint64_t offset, size_t bytes) {
  return pattern_block(sequence, from << 12 | to, offset, bytes);
}

// The result of an allgather of `ranks` such blocks.
inline std::vector<uint8_t> pattern_result(uint64_t sequence, uint32_t ranks, size_t block_bytes) {
  std::vector<uint8_t> result;
  result.reserve(ranks * block_bytes);
  for (uint32_t origin = 0; origin < ranks; origin++) {
    const auto block = pattern_block(sequence, origin, 0, block_bytes);
    result.insert(result.end(), block.begin(), block.end());
  }
  return result;
}

}  // namespace peal::test
