// SPDX-License-Identifier: BSD-2-Clause
// Data that tells where it comes from: each 8-byte word depends on its origin, its iteration and
// its offset, so that a block in the wrong place, of another time, or shifted, is wrong in every
// word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace peal::perf {

inline uint64_t pattern_base(uint32_t origin, uint64_t iteration) {
  uint64_t x = (uint64_t{origin} + 1) * 0x9e3779b97f4a7c15u + iteration * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline void fill_pattern(uint8_t* block, size_t bytes, uint32_t origin, uint64_t iteration) {
  const uint64_t base = pattern_base(origin, iteration);
  size_t at = 0;
  for (uint64_t word = 0; at + 8 <= bytes; at += 8, word++) {
    const uint64_t value = base + word;
    memcpy(block + at, &value, 8);
  }
  const uint64_t value = base + at / 8;
  memcpy(block + at, &value, bytes - at);
}

// Reads the whole block.
inline bool check_pattern(const uint8_t* block, size_t bytes, uint32_t origin, uint64_t iteration) {
  const uint64_t base = pattern_base(origin, iteration);
  uint64_t wrong = 0;
  size_t at = 0;
  for (uint64_t word = 0; at + 8 <= bytes; at += 8, word++) {
    uint64_t value = 0;
    memcpy(&value, block + at, 8);
    wrong |= value ^ (base + word);
  }
  const uint64_t value = base + at / 8;
  return wrong == 0 && memcmp(block + at, &value, bytes - at) == 0;
}

}  // namespace peal::perf
