// SPDX-License-Identifier: BSD-2-Clause
// A binomial tree of ranks, in the modulo form of docs/decisions/0002 (allgather paper, section
// 4.1.2): with r = (rank - root) mod N, what came by a hop 2^j goes on to r + 2^(j+1), r +
// 2^(j+2), … while below N. So the hop that reaches r is its highest bit, and its parent is r
// without that bit.
#pragma once

#include <bit>
#include <cstdint>

#include "firmware/base/ranks.h"

namespace peal::hopping {

// Place of a rank in the root's tree; 0 is the root.
constexpr uint32_t place(Rank rank, Rank root, uint32_t ranks) { return minus(rank, root, ranks); }
// Log distance of the hop that reaches a place >= 1; its parent is 2^that ranks behind.
constexpr uint32_t arriving_hop(uint32_t place) { return floor_log2(place); }
// Log distance of the first hop that leaves a place.
// The next one leaves while place + 2^hop < ranks.
constexpr uint32_t first_leaving_hop(uint32_t place) {
  return static_cast<uint32_t>(std::bit_width(place));
}
// All hops that leave a place, a bit each.
constexpr uint32_t leaving_hops(uint32_t place, uint32_t ranks) {
  const uint32_t further = ranks - 1 - place;
  const uint32_t first = first_leaving_hop(place);
  return ((1u << std::bit_width(further)) - 1) >> first << first;
}

}  // namespace peal::hopping
