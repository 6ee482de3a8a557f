// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/broadcast/binomial_questions.h"

#include <bit>

#include "firmware/collective/broadcast/binomial_tree.h"
#include "firmware/group/inquiry.h"
#include "firmware/operation/operation.h"
#include "firmware/wire/transmit.h"

namespace peal::binomial {
namespace {

void ask(const Scope& scope, const peal_peer_address& whom, uint32_t hop, uint32_t number,
         uint64_t fragments) {
  auto& [card, member, operation] = scope;
  peal_nack nack = question(card, fragments);
  // A credit that was lost keeps its sender waiting, too: it is said again.
  nack.credit = tree_of(scope).whole;
  const SmallPacket what = {
      .piece = number, .hop = static_cast<uint8_t>(hop), .payload = &nack, .length = sizeof(nack)};
  if (send_small(card, member.membership, whom, packet_kind(operation, PEAL_PACKET_NACK), what)) {
    count(card, PEAL_COUNTER_SENT_NACK);
  }
}

// Asks for all that is missing of a piece; `last`: nothing of a later one has come.
void ask_parent(const Scope& scope, uint32_t number, bool last) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  uint64_t missing = all_fragments(operation, number);
  if (piece_is_open(operation, number)) {
    const uint64_t come = piece_slot(operation, number).bits[0];
    missing &= ~come;
    // At a gap: what is behind the last packet that has come is on its way.
    if (follows_perhaps(operation.inquiry) && last && come != 0) {
      missing &= std::bit_floor(come) - 1;
    }
  }
  if (missing == 0) return;
  const uint32_t hop = hopping::arriving_hop(place_of(scope));
  const peal_peer_address& parent = self.peers[peer_behind(hop)].address;
  if (operation_may_ask(scope, parent.rank)) ask(scope, parent, hop, number, missing);
}

// Whoever holds up the window owes a credit, and is asked for it: nobody else may hear that its
// card is dead, and if its host is late, all others may know.
void chase_credits(const Scope& scope) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const uint32_t whole = tree_of(scope).whole;
  if (whole >= operation.base || whole + kPieceSlots >= operation.piece_count) return;
  const uint32_t owing =
      children_of(scope) & ~uint32_t{own_state<Kept>(piece_slot(operation, whole)).credited};
  for (uint32_t hop = 0; owing >> hop != 0; ++hop) {
    if ((owing >> hop & 1) == 0) continue;
    const peal_peer_address& child = self.peers[peer_ahead(hop)].address;
    if (operation_may_ask(scope, child.rank)) ask(scope, child, hop, whole, 0);
  }
}

}  // namespace

void chase(const Scope& scope) {
  Operation& operation = scope.operation;
  chase_credits(scope);
  if (place_of(scope) == 0) return;
  const uint32_t end = window_end(scope);
  uint32_t number = operation.base;
  while (number < end && has_arrived(operation, number)) ++number;
  if (number >= operation.piece_count) return;
  // What comes next is asked for though it cannot come yet: the credit goes with the question. But
  // a host that is late holds up the window itself.
  if (number >= end && !is_posted(operation)) return;
  uint32_t last = end;  // of those that have begun
  while (last > number + 1 && !piece_is_open(operation, last - 1)) --last;
  ask_parent(scope, number, last <= number + 1);
  for (++number; number < last; ++number) {
    if (piece_is_open(operation, number) && !has_arrived(operation, number)) {
      ask_parent(scope, number, number + 1 == last);
    }
  }
}

}  // namespace peal::binomial
