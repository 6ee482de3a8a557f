// SPDX-License-Identifier: BSD-2-Clause
// What a rank of an all-to-all broadcast knows of an operation and of a piece's blocks, and what it
// owes to ranks below.
#pragma once

#include "firmware/collective/allgather/gathering.h"
#include "firmware/collective/hopping.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/pieces.h"

namespace peal::broadcast_all {

// What a record keeps between questions.
struct Turn {
  uint32_t debt;      // piece slot and debt where the next questions start: all get their turn
  bool wanted;        // somebody below has asked for what has not come
  uint16_t gathers;   // bytes of each block, as long as blocks may come into staging; else kNoBytes
  TimeNs held_up_ns;  // it asks no sooner again for what holds it up
};
constexpr uint16_t kNoBytes = 0xffff;  // as no packet has
static_assert(CONFIG_MTU_BYTES < kNoBytes);

// A piece's blocks.
//
// A debt is a block that a child has asked for and that cannot be sent now: it is on its way to the
// user's memory, from where it can be sent again as long as that is the card's; or that is the
// card's no more, and the block is asked of the parent and passed on when it comes. A debt has a
// bit of its own, which one packet pays: its number is the child's place in the origin's tree,
// whose highest bit is the hop that leads there, and the rest of it this rank's own place.
struct Blocks {
  uint32_t debts;  // so many bits
  uint64_t owed[kRankWords];
  // Lie in the channel, from where the mover takes them, by origin.
  uint64_t early[kRankWords];
};

inline bool owes(const Piece& piece, uint32_t debt) {
  const auto& blocks = own_state<Blocks>(piece);
  return blocks.debts != 0 && gathering::is_in(blocks.owed, debt);
}

inline void owe(Piece& piece, uint32_t debt) {
  if (owes(piece, debt)) return;
  auto& blocks = own_state<Blocks>(piece);
  ++blocks.debts;
  gathering::put_in(blocks.owed, debt);
}

inline void pay(Piece& piece, uint32_t debt) {
  auto& blocks = own_state<Blocks>(piece);
  --blocks.debts;
  gathering::take_from(blocks.owed, debt);
}

inline Rank origin_of(const Membership& self, uint32_t debt) {
  return minus(self.rank, debt - (1u << hopping::arriving_hop(debt)), self.ranks);
}

// The hops over which the origin's block is owed, a bit each.
inline uint32_t hops_owed(const Membership& self, const Piece& piece, Rank origin) {
  if (own_state<Blocks>(piece).debts == 0) return 0;
  const uint32_t own = hopping::place(self.rank, origin, self.ranks);
  uint32_t hops = 0;
  for (uint32_t hop = hopping::first_leaving_hop(own); own + (1u << hop) < self.ranks; ++hop) {
    if (owes(piece, own + (1u << hop))) hops |= 1u << hop;
  }
  return hops;
}

}  // namespace peal::broadcast_all
