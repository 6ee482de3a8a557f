// SPDX-License-Identifier: BSD-2-Clause
// The emulator's only source of chance: xoshiro256** (Blackman, Vigna: "Scrambled linear
// pseudorandom number generators"), started by splitmix64. Our own, because the standard library's
// distributions differ between implementations, and a seed must mean the same run everywhere.
#pragma once

#include <array>
#include <cstdint>

namespace peal::emulator {

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }

  uint64_t next() {
    const uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound); 0 when bound is 0. By multiplication (Lemire), whose bias of bound /
  // 2^64 nobody can see; one draw always, so that the number of draws never depends on what was
  // drawn.
  uint64_t below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }

 private:
  static constexpr uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  std::array<uint64_t, 4> state_;
};

}  // namespace peal::emulator
