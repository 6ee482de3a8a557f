// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/landing.h"

#include "firmware/group/early.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/transfer.h"

namespace peal {

bool land_waiting(const Scope& scope, Piece& piece, const Landing& landing) {
  auto& [card, member, operation] = scope;
  for (uint32_t left = piece.waiting; left > 0 && piece.dma < kPieceTransfers; --left) {
    const auto [packet, next, origin] = early_first(card, piece);
    const uint32_t number = packet->header->piece;
    const bool free =
        landing.is_free != nullptr ? landing.is_free(scope, number, origin) : is_posted(operation);
    if (!free) {
      early_put_back(card, piece);
      continue;
    }
    const uint32_t bytes = packet->header->length;
    if (bytes > 0) {
      if (!has_dma_or_starves(scope)) return false;
      transfer_write(scope, {.step = landing.step,
                             .piece = number,
                             .host = landing.place_of(scope, number, origin),
                             .card = packet->payload,
                             .bytes = bytes,
                             .packet = packet});
    }
    early_pop(card, operation, piece);
    if (landing.landed != nullptr) landing.landed(scope, number, origin, bytes);
  }
  return true;
}

void land_early(const Scope& scope, const Landing& landing) {
  Operation& operation = scope.operation;
  const uint32_t end = operation.base + kPieceSlots;
  for (uint32_t number = operation.base; early_waits(operation) && number < end; ++number) {
    if (!piece_is_open(operation, number)) continue;
    if (!land_waiting(scope, piece_slot(operation, number), landing)) return;
  }
}

}  // namespace peal
