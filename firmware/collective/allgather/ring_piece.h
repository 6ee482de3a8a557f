// SPDX-License-Identifier: BSD-2-Clause
// What a rank of a ring knows of a piece, and who its neighbours are.
#pragma once

#include "firmware/collective/allgather/ring_order.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/pieces.h"

namespace peal::ring {

struct Blocks {
  Heard heard;      // of the edge from the left
  uint16_t passed;  // on the edge to the right: the farthest block's distance, plus one; 0: none
  // By origin. Lie in the channel, to be asked for by the right neighbour.
  uint64_t kept[kRankWords];
  // Lie in the channel alone, from where the mover takes them.
  uint64_t early[kRankWords];
};

inline Rank left_of(const Membership& self) { return minus(self.rank, 1, self.ranks); }
inline Rank right_of(const Membership& self) { return plus(self.rank, 1, self.ranks); }
inline uint32_t left_entry(const Membership& self) {
  return peer_entry(self.rank, left_of(self), self.ranks);
}
inline uint32_t right_entry(const Membership& self) {
  return peer_entry(self.rank, right_of(self), self.ranks);
}
// How many hops a block makes to this rank.
inline uint32_t distance_of(const Membership& self, Rank origin) {
  return minus(self.rank, origin, self.ranks);
}

// Blocks of a piece that have come from the left.
inline uint32_t come_of(const Membership& self, const Piece& piece) {
  return piece.arrived - (has_bit(piece, self.rank) ? 1u : 0u);
}

}  // namespace peal::ring
