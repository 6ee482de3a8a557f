// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/stepping.h"

#include "firmware/operation/layout.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/transfer.h"

namespace peal::stepping {

void write_landed(const Scope& scope, Piece& piece, Packet* packet, uint8_t* from,
                  const ImagePart& to) {
  auto& [card, member, operation] = scope;
  const uint32_t k = packet->header->hop;
  ++own_state<Steps>(piece).landing[k];
  transfer_write(scope, {.step = kLand,
                         .piece = to.piece,
                         .host = image_address(member, operation, to.piece, to.position, to.offset),
                         .card = from,
                         .bytes = to.bytes,
                         .packet = packet,
                         .detail = k});
}

bool staged_has_left(const Scope& scope, const TransferDone& done) {
  Piece& piece = staged_piece(scope);
  if (!done.ok) return true;
  if (done.step == mover::kDeliver) piece.delivery = Delivery::kDelivered;
  if (piece.dma > 0) return false;
  if (is_refused(scope.operation)) return true;
  staged_is_delivered(scope);
  return false;
}

bool is_wanted(const Scope& /*scope*/, uint32_t /*piece*/, uint32_t /*position*/) { return true; }

bool image_has_left(const Scope& scope) {
  Mover& mover = scope.operation.mover;
  if (mover.in_flight > 0) return false;
  piece_slot(scope.operation, mover.piece).delivery = Delivery::kDelivered;
  mover.active = false;
  return true;
}

}  // namespace peal::stepping
