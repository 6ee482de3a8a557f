// SPDX-License-Identifier: BSD-2-Clause
// Where a rank's bytes lie, and how many blocks make a result. A block is cut into pieces; a piece
// of all ranks' blocks side by side is an image, in the channel or in staging, in which a block has
// a position (its rank, or what the algorithm's order makes of it). All lengths are in bytes.
#pragma once

#include "firmware/card_types.h"
#include "firmware/channels.h"

namespace peal {

// Bytes of a full piece when an image holds so many blocks, one from every rank or more: words, if
// it has room for any.
constexpr uint32_t piece_bytes_for(uint32_t image_blocks, uint32_t image_bytes = kImageBytes) {
  const uint32_t room = image_bytes / image_blocks;
  const uint32_t share = room < 8 ? room : room & ~7u;
  return share < CONFIG_MTU_BYTES ? share : CONFIG_MTU_BYTES;
}

// Bytes of one rank's block in this piece.
inline uint32_t piece_length(const Operation& operation, uint32_t number) {
  const uint32_t before = number * operation.piece_bytes;
  const uint32_t left = operation.block_bytes - before;
  return left < operation.piece_bytes ? left : operation.piece_bytes;
}

// How many blocks come together in a piece, the own one among them.
inline uint32_t expected_blocks(const Membership& self) { return self.ranks; }
// Does this rank contribute one?
inline bool is_expected(const Membership& self, Rank origin) { return origin < self.ranks; }

// The own block, as the host gave it.
inline HostAddress own_address(const Operation& operation, uint32_t number) {
  const HostAddress& send = operation.command.send;
  return {send.region, send.offset + uint64_t{number} * operation.piece_bytes};
}

// The own block for this rank, where the host gave one for each.
inline HostAddress own_address_for(const Operation& operation, Rank to, uint32_t number) {
  HostAddress address = own_address(operation, number);
  address.offset += uint64_t{to} * operation.block_bytes;
  return address;
}

// Where the user wants this rank's part of the piece.
inline HostAddress user_address(const Operation& operation, Rank rank, uint32_t number) {
  const HostAddress& base = operation.command.receive;
  return {base.region, base.offset + uint64_t{rank} * operation.block_bytes +
                           uint64_t{number} * operation.piece_bytes};
}

// Where the piece's image begins, in the channels.
inline uint64_t image_place(const Operation& operation, uint32_t number) {
  const uint64_t channel = operation.sequence % kChannels;
  if (operation.short_image) return kShortImages + channel * kShortImageBytes;
  return channel * CONFIG_CHANNEL_BYTES + uint64_t{number % kPieceSlots} * kImageBytes;
}

// `offset` bytes behind the beginning of a position of the piece's image, in the channel.
inline HostAddress image_address(const Member& member, const Operation& operation, uint32_t number,
                                 uint32_t position, uint32_t offset = 0) {
  const uint64_t within = uint64_t{position} * piece_length(operation, number) + offset;
  return {member.channels, image_place(operation, number) + within};
}

// The image of a single piece in the staging buffer, whose blocks are whole, and a position in it.
inline uint8_t* staged_image(Member& member, const Operation& operation) {
  return member.staging + operation.staging_unit * kStagingUnitBytes;
}
inline uint8_t* staging_address(Member& member, const Operation& operation, uint32_t position,
                                uint32_t offset = 0) {
  return staged_image(member, operation) + position * operation.block_bytes + offset;
}

}  // namespace peal
