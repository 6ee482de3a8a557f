// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/broadcast/binomial_repair.h"

#include <bit>

#include "firmware/group/early.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/repair.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/transmit.h"

namespace peal::binomial {
namespace {

// In which the fragment lies; null: it lies elsewhere.
Packet* packet_of(const Scope& scope, uint32_t number, uint32_t fragment) {
  Packet* sent = sent_block_find(scope, fragment, number);
  if (sent != nullptr) return sent;
  return early_find(scope.card, piece_slot(scope.operation, number), fragment);
}

// Sends a fragment again: from its packet, from the channel, or from the user's memory, for which
// the operation waits. False: not now.
bool repair_fragment(const Scope& scope, uint32_t number, uint32_t fragment, uint8_t hop) {
  auto& [card, member, operation] = scope;
  const ImagePart part = {number, 0, fragment * kFragmentBytes,
                          fragment_length(operation, number, fragment)};
  const DataPlace place = {operation.root, hop, static_cast<uint8_t>(fragment)};
  if (!may_repair(card)) return false;
  Packet* stays = packet_of(scope, number, fragment);
  if (stays != nullptr) return repair_from_packet(scope, part, stays, place, peer_ahead(hop));
  const uint32_t in_card = own_state<Kept>(piece_slot(operation, number)).in_card;
  if ((in_card >> fragment & 1) != 0) {
    return send_from_image(scope, part, place, peer_ahead(hop), true);
  }
  return repair_from_user(scope, part, behind(user_piece(scope, number), fragment), place,
                          peer_ahead(hop));
}

// What of a piece can be sent again: what the user gets back soon is not the card's to read.
uint32_t repairable(const Scope& scope, uint32_t number) {
  const auto& kept = own_state<Kept>(piece_slot(scope.operation, number));
  const bool over = scope.operation.phase == OperationPhase::kFinished;
  return over ? kept.in_card : kept.in_card | kept.in_user;
}

}  // namespace

Answer repair_fragments(const Scope& scope, uint32_t number, uint64_t fragments, uint8_t hop) {
  if (!piece_is_open(scope.operation, number)) return Answer::kNotYet;
  Answer answer = Answer::kNotYet;
  fragments &= repairable(scope, number);
  for (; fragments != 0; fragments &= fragments - 1) {
    const auto fragment = static_cast<uint32_t>(std::countr_zero(fragments));
    if (!repair_fragment(scope, number, fragment, hop)) return Answer::kHeld;
    answer = Answer::kRepaired;
  }
  return answer;
}

void promise(const Scope& scope, uint32_t number, uint64_t fragments, uint8_t hop) {
  if (!piece_is_open(scope.operation, number)) return;
  Piece& piece = piece_slot(scope.operation, number);
  auto& kept = own_state<Kept>(piece);
  fragments &= piece.bits[0] & ~uint64_t{repairable(scope, number)};
  if (fragments == 0) return;
  kept.promised |= static_cast<uint32_t>(fragments);
  kept.asked_by = static_cast<uint16_t>(kept.asked_by | 1u << hop);
}

void on_there(const Scope& scope, uint32_t number, uint32_t fragment, uint32_t Kept::*where) {
  auto& kept = own_state<Kept>(piece_slot(scope.operation, number));
  const uint32_t bit = 1u << fragment;
  kept.*where |= bit;
  if ((kept.promised & bit) == 0) return;
  for (uint32_t hop = 0; kept.asked_by >> hop != 0; ++hop) {
    if ((kept.asked_by >> hop & 1) == 0) continue;
    (void)repair_fragments(scope, number, bit, static_cast<uint8_t>(hop));
  }
  kept.promised &= ~bit;
  if (kept.promised == 0) kept.asked_by = 0;
}

}  // namespace peal::binomial
