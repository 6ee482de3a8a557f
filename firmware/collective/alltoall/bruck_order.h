// SPDX-License-Identifier: BSD-2-Clause
// Which blocks go when, and where they lie meanwhile. The way of a block is (origin - destination)
// mod N, and step k takes all blocks whose way has bit k down to rank - 2^k. The image of a piece
// has an area for each step, of what this rank sends in it, in the order of ways: nothing that was
// sent is overwritten by what comes later. What has arrived for good lies before them, N positions
// in the order of ways: position x is from rank + x.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "firmware/base/ranks.h"
#include "peal_config.h"

namespace peal::bruck_order {

// A packet's blocks go to at most so many places, and are written there by as many DMA. The cards
// of a group must agree on it; the smallest has 16 DMA records.
inline constexpr uint32_t kRunsMax = 8;

// How many ways below this one have bit k.
constexpr uint32_t ways_below(uint32_t way, uint32_t k) {
  const uint32_t bit = 1u << k;
  const uint32_t rest = way & (2 * bit - 1);
  return (way >> (k + 1) << k) + (rest > bit ? rest - bit : 0);
}

// Blocks that step k sends.
constexpr uint32_t step_blocks(uint32_t k, uint32_t ranks) { return ways_below(ranks, k); }

// The way of the block with this index in step k.
constexpr uint32_t way_of(uint32_t k, uint32_t index) {
  const uint32_t bit = 1u << k;
  return (index >> k << (k + 1)) | bit | (index & (bit - 1));
}

// First position of what step k sends; of step ⌈log2 N⌉, which there is not, the end of the image.
constexpr uint32_t area_of(uint32_t k, uint32_t ranks) {
  uint32_t first = ranks;
  for (uint32_t before = 0; before < k; ++before) first += step_blocks(before, ranks);
  return first;
}

// Blocks that the image of a piece holds.
constexpr uint32_t image_blocks(uint32_t ranks) { return area_of(ceil_log2(ranks), ranks); }

// Where a block lies that has done the first `steps` steps of its way.
constexpr uint32_t position_of(uint32_t way, uint32_t steps, uint32_t ranks) {
  const uint32_t left = way >> steps << steps;
  if (left == 0) return way;
  const auto next = static_cast<uint32_t>(std::countr_zero(left));
  return area_of(next, ranks) + ways_below(way, next);
}

// Blocks of step k from this index on that lie side by side where they are received.
constexpr uint32_t run_blocks(uint32_t k, uint32_t index) {
  return (1u << k) - (index & ((1u << k) - 1));
}

// Blocks in a packet of step k: whole ones, and whole runs where one has room.
constexpr uint32_t fragment_blocks(uint32_t k, uint32_t block_bytes) {
  const uint32_t room = CONFIG_MTU_BYTES / block_bytes;
  return room >> k == 0 ? room : std::min(room >> k, kRunsMax) << k;
}

// Packets of step k.
constexpr uint32_t fragment_count(uint32_t k, uint32_t ranks, uint32_t block_bytes) {
  if (block_bytes == 0) return 1;
  const uint32_t blocks = fragment_blocks(k, block_bytes);
  return (step_blocks(k, ranks) + blocks - 1) / blocks;
}

}  // namespace peal::bruck_order
