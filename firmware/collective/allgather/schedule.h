// SPDX-License-Identifier: BSD-2-Clause
// Whom to exchange with at step k of an allgather in ⌈log2 N⌉ steps, and which blocks. Recursive
// doubling (Thakur, Gropp) where N is a power of two; Bruck's order for all others. Positions are
// in the image of the result: by rank for recursive doubling; for Bruck position x holds the block
// of rank + x, and the copy to the user rotates it back.
#pragma once

#include <bit>
#include <cstdint>

#include "firmware/base/ranks.h"

namespace peal::schedule {

struct Step {
  Rank to;
  Rank from;
  uint32_t send_first;     // position of the first block sent
  uint32_t receive_first;  // position of the first block received
  uint32_t blocks;         // in each direction
};

constexpr bool rotated(uint32_t ranks) { return !std::has_single_bit(ranks); }

constexpr uint32_t own_position(Rank rank, uint32_t ranks) { return rotated(ranks) ? 0 : rank; }

constexpr Rank rank_at(uint32_t position, Rank rank, uint32_t ranks) {
  return rotated(ranks) ? plus(rank, position, ranks) : position;
}

constexpr Step step(uint32_t k, Rank rank, uint32_t ranks) {
  const uint32_t distance = 1u << k;
  if (!rotated(ranks)) {
    const Rank partner = rank ^ distance;
    return {partner, partner, rank & ~(distance - 1), partner & ~(distance - 1), distance};
  }
  const uint32_t left = ranks - distance;
  return {minus(rank, distance, ranks), plus(rank, distance, ranks), 0, distance,
          distance < left ? distance : left};
}

}  // namespace peal::schedule
