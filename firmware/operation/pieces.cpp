// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/pieces.h"

#include <cstring>

#include "firmware/operation/algorithm.h"

namespace peal {
namespace {

void take_staging(Member& member, Operation& operation, uint32_t gather_bytes,
                  uint32_t image_blocks) {
  const uint64_t bytes = uint64_t{image_blocks} * operation.block_bytes;
  const bool gathers = operation.block_bytes <= gather_bytes;
  if (!gathers || bytes == 0 || operation.piece_count != 1 || bytes > CONFIG_STAGING_BYTES) return;
  const auto units = static_cast<uint32_t>((bytes + kStagingUnitBytes - 1) / kStagingUnitBytes);
  const uint32_t run = (1u << units) - 1;
  for (uint32_t first = 0; first + units <= kStagingUnits; ++first) {
    if ((member.staging_used & run << first) != 0) continue;
    member.staging_used |= run << first;
    operation.staging_mask = static_cast<uint16_t>(run << first);
    operation.staging_unit = static_cast<uint8_t>(first);
    return;
  }
}

}  // namespace

void pieces_open(const Scope& scope, uint32_t piece_bytes, uint32_t gather_bytes,
                 uint32_t image_blocks) {
  auto& [card, member, operation] = scope;
  PEAL_ASSERT(operation.algorithm->release != Release::kNoPieces);
  operation.piece_bytes = piece_bytes;
  const uint64_t rounded = uint64_t{operation.block_bytes} + operation.piece_bytes - 1;
  operation.piece_count =
      operation.block_bytes == 0 ? 1 : static_cast<uint32_t>(rounded / operation.piece_bytes);
  operation.base = 0;
  operation.own_next = 0;
  operation.mover = {};
  for (Piece& piece : operation.pieces) {
    piece.number = 0;
    piece.dma = 0;
  }
  take_staging(member, operation, gather_bytes, image_blocks);
}

void piece_begin(Piece& piece, uint32_t number) {
  PEAL_ASSERT(piece.dma == 0);
  std::memset(static_cast<void*>(&piece), 0, sizeof(piece));
  piece.number = number + 1;
}

}  // namespace peal
