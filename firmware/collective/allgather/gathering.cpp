// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/gathering.h"

#include "firmware/operation/layout.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/transmit.h"

namespace peal::gathering {

bool next_early_piece(const Scope& scope) {
  Mover& mover = scope.operation.mover;
  ++mover.piece;
  mover.next = 0;
  mover.active = mover.piece < kPieceSlots && mover.piece < scope.operation.piece_count;
  return true;
}

HostAddress result_address(const Scope& scope, uint32_t number, Rank origin) {
  return user_address(scope.operation, origin, number);
}

bool read_own(const Scope& scope, Piece& piece, uint32_t number, uint8_t step,
              OwnIsRead own_is_read) {
  auto& [card, member, operation] = scope;
  const uint32_t length = piece_length(operation, number);
  // The read, then the two transfers of what it brought.
  Packet* packet = take_bounce(card, length > 0 ? 3 : 0);
  if (packet == nullptr) return false;
  piece.own = OwnBlock::kReading;
  packet->payload_bytes = length;
  if (length == 0) {
    ++packet->holds;
    own_is_read(scope, packet, number);
    unhold_packet(card, packet);
    return true;
  }
  transfer_start(scope,
                 {.step = step,
                  .piece = number,
                  .host = own_address(operation, number),
                  .card = packet->payload,
                  .bytes = length,
                  .packet = packet},
                 DmaKind::kRead);
  return true;
}

bool has_dma_or_reads_again(const Scope& scope, Piece& piece, uint32_t number) {
  Operation& operation = scope.operation;
  if (has_dma_or_starves(scope, 2)) return true;
  piece.own = OwnBlock::kUnread;
  if (number < operation.own_next) operation.own_next = number;
  return false;
}

}  // namespace peal::gathering
