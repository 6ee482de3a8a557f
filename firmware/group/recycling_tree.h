// SPDX-License-Identifier: BSD-2-Clause
// By what packets it becomes known that all have finished an epoch: a combining tree (Yew, Tzeng,
// Lawrie, "Distributing Hot-Spot Addressing in Large-Scale Multiprocessors", 1987). When all from a
// rank down have finished, it says so to the one above (PEAL_RECYCLE_BELOW); when the root has
// heard it, all have, which goes down (PEAL_RECYCLE_ALL): N - 1 packets each way.
//
// Two binomial trees, as each packet goes to a rank 2^hop ahead: what goes down takes that of the
// root's data, and what goes up its mirror image, in which the rank N - r ahead of the root stands
// where the one r ahead does: the last to get data is the first below the root. The root is that of
// the epoch's last operation; where ranks disagree, rank 0. All packets name it as their origin.
// docs/decisions/0079
#pragma once

#include "firmware/base/hops.h"
#include "firmware/card_types.h"
#include "firmware/wire/transmit.h"

namespace peal {

inline constexpr uint8_t kRecyclingAlgorithm = PEAL_ALGORITHM_BINOMIAL;

// Outside, and of no root yet: what others say is noted.
inline EpochTree epoch_tree_start() {
  return {.missing = 1, .root = kNoTree, .told = false, .split = false, .asked = 0};
}
// Of this root: nobody below has said it yet.
void epoch_tree_root(const Membership& self, EpochTree& state, Rank root);
inline bool is_tree_root(const Membership& self, const EpochTree& state) {
  return state.root == self.rank;
}
inline void epoch_tree_enter(EpochTree& state) { state.missing &= ~1u; }
inline bool is_entered(const EpochTree& state) { return (state.missing & 1) == 0; }
// All from this rank down have finished it.
inline bool is_passed(const EpochTree& state) { return state.missing == 0; }
// The one below by that hop has said it. False: a duplicate.
inline bool epoch_tree_passed(EpochTree& state, uint32_t hop) {
  const uint32_t bit = 2u << hop;
  if ((state.missing & bit) == 0) return false;
  state.missing &= ~bit;
  return true;
}

// Header of all packets of recycling, but for epoch, hop and what they are about.
peal_wire_header pattern_of_recycling(const Membership& self);
// Is there such an edge in the tree of its origin, and does it lead from the sender? (A question
// comes from whom its answer would go to.) kPacketGood, or the drop counter.
peal_counter check_tree_edge(const Membership& self, const peal_wire_header& header);

// Says, in the tree of that root and for the first time, that all below have finished the epoch, or
// that all have: to all whom it tells so, or by one hop. Where the pool is empty the signal counts
// as lost, which the edge's next packet shows.
void signal_below(Card& card, Member& member, uint64_t epoch, Rank root);
void signal_all_by(Card& card, Member& member, uint64_t epoch, Rank root, uint32_t hop);
void signal_all(Card& card, Member& member, uint64_t epoch, Rank root);
// Hop by which this member, which is not the root, hears that all have.
inline uint32_t hop_from_above(const Membership& self, Rank root) {
  return hopping::arriving_hop(hopping::place(self.rank, root, self.ranks));
}
// To who asked: it is so.
void tell_again(Card& card, const Membership& self, const peal_wire_header& question);

}  // namespace peal
