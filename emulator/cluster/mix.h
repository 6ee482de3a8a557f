// SPDX-License-Identifier: BSD-2-Clause
// One good 64-bit mixing function (the finalizer of splitmix64), for patterns, trace hashes and
// seeds of streams.
#pragma once

#include <cstdint>

namespace peal::sim {

// Of a word, or of each of a register's. (These are neither passed nor returned.)
template <typename Words>
[[gnu::always_inline]] inline void mix_in_place(Words& z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
}

inline uint64_t mix(uint64_t z) {
  mix_in_place(z);
  return z;
}

inline uint64_t mix(uint64_t a, uint64_t b) { return mix(mix(a) ^ b); }
inline uint64_t mix(uint64_t a, uint64_t b, uint64_t c) { return mix(mix(a, b) ^ c); }

}  // namespace peal::sim
