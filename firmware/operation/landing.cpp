// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/landing.h"

#include "firmware/group/early.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/transfer.h"

namespace peal {
namespace {

// False: there is no DMA record.
bool land_piece(const Scope& scope, Piece& piece, uint8_t step, IsFree is_free, PlaceOf place_of) {
  auto& [card, member, operation] = scope;
  const uint32_t number = piece.number - 1;
  for (uint32_t left = piece.waiting; left > 0 && piece.dma < kPieceTransfers; --left) {
    const EarlyPacket& early = early_first(card, piece);
    if (!is_free(scope, piece, early.origin)) {
      early_put_back(card, piece);
      continue;
    }
    const uint32_t bytes = early.packet->header->length;
    if (bytes > 0) {
      if (!has_dma_or_starves(scope)) return false;
      transfer_write(scope, {.step = step,
                             .piece = number,
                             .host = place_of(scope, number, early.origin),
                             .card = early.packet->payload,
                             .bytes = bytes,
                             .packet = early.packet});
    }
    early_pop(card, operation, piece);
  }
  return true;
}

}  // namespace

void land_early(const Scope& scope, uint8_t step, IsFree is_free, PlaceOf place_of) {
  Operation& operation = scope.operation;
  const uint32_t end = operation.base + kPieceSlots;
  for (uint32_t number = operation.base; early_waits(operation) && number < end; ++number) {
    if (!piece_is_open(operation, number)) continue;
    if (!land_piece(scope, piece_slot(operation, number), step, is_free, place_of)) return;
  }
}

}  // namespace peal
