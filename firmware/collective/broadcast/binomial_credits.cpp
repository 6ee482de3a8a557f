// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/broadcast/binomial_credits.h"

#include <algorithm>

#include "firmware/operation/operation.h"
#include "firmware/wire/transmit.h"

namespace peal::binomial {
namespace {

// A credit is due after so many pieces: often enough that the root need not stop for it.
constexpr uint32_t kCreditPieces = std::max(kPieceWindow / 2, 1u);

}  // namespace

void pass_pieces(const Scope& scope) {
  Operation& operation = scope.operation;
  while (operation.base < operation.piece_count && is_done(operation, operation.base)) {
    ++operation.base;
  }
  const uint16_t children = children_of(scope);
  uint32_t& whole = tree_of(scope).whole;
  while (whole < operation.base &&
         own_state<Kept>(piece_slot(operation, whole)).credited == children) {
    ++whole;
  }
}

bool tell_credit(const Scope& scope, bool again) {
  auto& [card, member, operation] = scope;
  Tree& tree = tree_of(scope);
  Membership& self = member.membership;
  const uint32_t hop = hopping::arriving_hop(place_of(scope));
  Peer& parent =
      self.peers[peer_entry(self.rank, minus(self.rank, 1u << hop, self.ranks), self.ranks)];
  const SmallPacket what = {.piece = tree.whole,
                            .hop = static_cast<uint8_t>(hop),
                            .flags = again ? uint8_t{PEAL_PACKET_REPAIR} : uint8_t{0},
                            .counted = again ? nullptr : &parent};
  if (!send_small(card, self, parent.address, packet_kind(operation, PEAL_PACKET_SIGNAL), what)) {
    return false;
  }
  tree.told = tree.whole;
  count(card, again ? PEAL_COUNTER_SENT_REPAIR : PEAL_COUNTER_SENT_SIGNAL);
  return true;
}

void send_credit(const Scope& scope) {
  const Tree& tree = tree_of(scope);
  if (place_of(scope) == 0 || tree.told + kPieceSlots >= scope.operation.piece_count) return;
  if (tree.whole < tree.told + kCreditPieces) return;
  if (!tell_credit(scope, false)) operation_starved(scope);
}

peal_counter take_credit(const Scope& scope, uint32_t hop, uint32_t credit) {
  Operation& operation = scope.operation;
  const uint32_t whole = tree_of(scope).whole;
  if (credit > operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (operation.phase == OperationPhase::kFinished || credit <= whole) {
    return PEAL_COUNTER_DUPLICATE;
  }
  // Nobody below has what has not come here.
  for (uint32_t number = whole; number < credit; ++number) {
    if (!has_arrived(operation, number)) return PEAL_COUNTER_DROP_PIECE;
  }
  const auto bit = static_cast<uint16_t>(1u << hop);
  bool news = false;
  for (uint32_t number = whole; number < credit; ++number) {
    auto& kept = own_state<Kept>(piece_slot(operation, number));
    news = news || (kept.credited & bit) == 0;
    kept.credited |= bit;
  }
  if (!news) return PEAL_COUNTER_DUPLICATE;
  operation_progressed(scope);
  return PEAL_COUNTER_RECEIVED;
}

}  // namespace peal::binomial
