// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/pieces.h"

#include "firmware/base/clear.h"
#include "firmware/group/staging.h"
#include "firmware/operation/algorithm.h"

namespace peal {

void pieces_open(const Scope& scope, uint32_t piece_bytes, uint32_t gather_bytes,
                 uint32_t image_blocks) {
  auto& [card, member, operation] = scope;
  PEAL_ASSERT(operation.algorithm->release != Release::kNoPieces);
  operation.piece_bytes = piece_bytes;
  operation.piece_count =
      operation.block_bytes <= piece_bytes ? 1 : (operation.block_bytes - 1) / piece_bytes + 1;
  operation.base = 0;
  operation.own_next = 0;
  operation.mover = {};
  for (Piece& piece : operation.pieces) {
    piece.number = 0;
    piece.dma = 0;
  }
  const uint64_t bytes = uint64_t{image_blocks} * operation.block_bytes;
  operation.short_image =
      operation.piece_count == 1 && image_blocks != kWholePlaces && bytes <= kShortImageBytes;
  const bool gathers = operation.block_bytes <= gather_bytes && operation.piece_count == 1;
  if (!gathers || bytes == 0 || bytes > CONFIG_STAGING_BYTES) return;
  take_staging(card, member, operation, static_cast<uint32_t>(bytes));
}

void piece_begin(Piece& piece, uint32_t number) {
  PEAL_ASSERT(piece.dma == 0 && piece.waiting == 0);
  clear(piece);
  piece.number = number + 1;
}

}  // namespace peal
