// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/broadcast_all_repair.h"

#include <bit>

#include "firmware/base/assert.h"
#include "firmware/collective/allgather/broadcast_all_blocks.h"
#include "firmware/host/keys.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/repair.h"

namespace peal::broadcast_all {

bool reads_result(const Scope& scope) {
  auto& [card, member, operation] = scope;
  if (!is_posted(operation) || is_refused(operation)) return false;
  if (operation.base == operation.piece_count) return false;
  return may_read(card, member.context, operation.command.receive_key);
}

bool has_landed(const Operation& operation, const Piece& piece) {
  const bool moved = !operation.mover.active || operation.mover.piece >= piece.number;
  return moved && piece.dma == 0 && piece.waiting == 0;
}

bool repair_block(const Scope& scope, uint32_t number, Rank origin,
                  const peal_peer_address& child) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  if (!piece_is_open(operation, number)) return false;
  const Piece& piece = piece_slot(operation, number);
  const bool own = origin == self.rank;
  const bool image = is_staged(operation) || operation.block_bytes == 0 || (own && piece.retained);
  if (!image && (own || !reads_result(scope) || !has_landed(operation, piece))) return false;
  if (!has_bit(piece, origin) || !may_repair(card)) return false;
  const uint32_t place = hopping::place(child.rank, origin, self.ranks);
  const uint32_t hop = hopping::arriving_hop(place);
  const DataPlace to = {
      .origin = static_cast<uint16_t>(origin), .hop = static_cast<uint8_t>(hop), .fragment = 0};
  const ImagePart part = {number, origin, 0, piece_length(operation, number)};
  return image ? send_from_image(scope, part, to, peer_ahead(hop), true)
               : repair_from_user(scope, part, user_address(operation, origin, number), to,
                                  peer_ahead(hop));
}

namespace {

// Sends what is owed and has landed meanwhile to the children that asked for it. False: not all of
// it could be sent now.
bool settle_debts(const Scope& scope, Piece& piece) {
  const Membership& self = scope.member.membership;
  const auto& blocks = own_state<Blocks>(piece);
  for (uint32_t word = 0; word < kRankWords && blocks.debts != 0; ++word) {
    for (uint64_t bits = blocks.owed[word]; bits != 0; bits &= bits - 1) {
      const uint32_t debt = 64 * word + static_cast<uint32_t>(std::countr_zero(bits));
      PEAL_ASSERT(debt != 0);  // the place of the origin, who is nobody's child
      const Peer& child = self.peers[peer_ahead(hopping::arriving_hop(debt))];
      if (!repair_block(scope, piece.number - 1, origin_of(self, debt), child.address)) {
        return false;
      }
      pay(piece, debt);
    }
  }
  return true;
}

}  // namespace

void settle_landed(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!reads_result(scope)) return;
  operation.in_debt = false;
  for (Piece& piece : operation.pieces) {
    if (piece.number == 0 || own_state<Blocks>(piece).debts == 0) continue;
    if (has_landed(operation, piece) && !settle_debts(scope, piece)) operation_starved(scope);
    operation.in_debt |= own_state<Blocks>(piece).debts != 0;
  }
}

}  // namespace peal::broadcast_all
