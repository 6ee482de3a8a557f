// SPDX-License-Identifier: BSD-2-Clause
// FNV-1a, for what ranks compare with each other.
#pragma once

#include <cstdint>

namespace peal::host {

inline constexpr uint32_t kHashBasis = 2166136261u;

inline uint32_t hash_word(uint32_t hash, uint64_t word) {
  for (int byte = 0; byte < 8; byte++) {
    hash = (hash ^ static_cast<uint8_t>(word >> (8 * byte))) * 16777619u;
  }
  return hash;
}

}  // namespace peal::host
