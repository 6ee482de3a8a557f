// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/pieces.h"

#include <cstring>

namespace peal {
namespace {

void take_staging(Member& member, Operation& operation) {
  const uint64_t bytes = uint64_t{member.membership.ranks} * operation.block_bytes;
  const bool gathers = operation.algorithm == PEAL_ALGORITHM_RECURSIVE_DOUBLING ||
                       operation.block_bytes <= CONFIG_STAGING_BLOCK_BYTES;
  operation.staging_mask = 0;
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

void clear_piece(Piece& piece) {
  const uint32_t words = kPieceWords;
  std::memset(&piece, 0, offsetof(Piece, bits));
  for (uint32_t i = 0; i < words; ++i) piece.bits[i] = 0;
}

}  // namespace

void pieces_open(Member& member, Operation& operation) {
  operation.piece_bytes = piece_bytes_for(member.membership.ranks);
  const uint64_t rounded = uint64_t{operation.block_bytes} + operation.piece_bytes - 1;
  operation.piece_count =
      operation.block_bytes == 0 ? 1 : static_cast<uint32_t>(rounded / operation.piece_bytes);
  operation.base = 0;
  operation.own_next = 0;
  for (Piece& piece : operation.pieces) {
    piece.number = 0;
    piece.dma = 0;
  }
  if (operation.kind == PEAL_OPERATION_ALLGATHER) {
    take_staging(member, operation);
  } else {
    operation.staging_mask = 0;
  }
}

Piece* piece_open(Operation& operation, uint32_t number) {
  if (number < operation.base || number >= operation.base + kPieceSlots ||
      number >= operation.piece_count) {
    return nullptr;
  }
  Piece& piece = piece_slot(operation, number);
  if (piece.number != number + 1) {
    PEAL_ASSERT(piece.dma == 0);
    clear_piece(piece);
    piece.number = number + 1;
  }
  return &piece;
}

HostAddress image_address(const Member& member, const Operation& operation, uint32_t number,
                          uint32_t offset) {
  const uint64_t channel = uint64_t{operation.sequence % kChannels} * CONFIG_CHANNEL_BYTES;
  const uint64_t image = uint64_t{number % kPieceSlots} * kImageBytes;
  return {member.channels, channel + image + offset};
}

uint8_t* staging_address(Member& member, const Operation& operation, uint32_t offset) {
  return member.staging + operation.staging_unit * kStagingUnitBytes + offset;
}

HostAddress user_address(const Operation& operation, Rank rank, uint32_t number) {
  const HostAddress& base = operation.command.receive;
  return {base.region, base.offset + uint64_t{rank} * operation.block_bytes +
                           uint64_t{number} * operation.piece_bytes};
}

}  // namespace peal
