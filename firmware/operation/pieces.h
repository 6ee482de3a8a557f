// SPDX-License-Identifier: BSD-2-Clause
// Pieces: how a block of any length is cut, which pieces are open, and where their bytes lie. A
// channel holds 2W images of N blocks. A packet of piece p + 2W proves that everybody has piece p
// (its sender had everything of p + W, and nobody sends p + W before it has p), so a place is
// reused without a word, and what it retains until then answers every NACK that can still come:
// operations of every length complete locally. docs/decisions/0003.
#pragma once

#include "firmware/card_types.h"
#include "firmware/operation/operation.h"

namespace peal {

// Bytes of a full piece in a group of this size; zero when the group is too large for a channel.
constexpr uint32_t piece_bytes_for(uint32_t ranks) {
  const uint32_t share = kImageBytes / ranks & ~7u;
  return share < CONFIG_MTU_BYTES ? share : CONFIG_MTU_BYTES;
}

// Sets the operation's geometry, clears its pieces, takes staging if the result fits.
void pieces_open(Member& member, Operation& operation);

// Bytes of one rank's block in this piece.
inline uint32_t piece_length(const Operation& operation, uint32_t number) {
  const uint32_t before = number * operation.piece_bytes;
  const uint32_t left = operation.block_bytes - before;
  return left < operation.piece_bytes ? left : operation.piece_bytes;
}

inline Piece& piece_slot(Operation& operation, uint32_t number) {
  return operation.pieces[number % kPieceSlots];
}
inline bool piece_is_open(const Operation& operation, uint32_t number) {
  return operation.pieces[number % kPieceSlots].number == number + 1;
}
// The piece's record, made if need be; null when the piece is outside the window of 2W.
Piece* piece_open(Operation& operation, uint32_t number);

// Position `block` of a piece's image, in the channel.
HostAddress image_address(const Member& member, const Operation& operation, uint32_t number,
                          uint32_t offset);
inline bool is_staged(const Operation& operation) { return operation.staging_mask != 0; }
// Image of a staged operation (a single piece).
uint8_t* staging_address(Member& member, const Operation& operation, uint32_t offset);
// Where the user wants this rank's part of the piece.
HostAddress user_address(const Operation& operation, Rank rank, uint32_t number);

// Starts own pieces as far as the window of W goes. `start(scope, piece, number)` is false when a
// pool was empty.
template <typename Start>
void start_own_pieces(const Scope& scope, Start start) {
  Operation& operation = scope.operation;
  while (operation.own_next < operation.piece_count &&
         operation.own_next < operation.base + kPieceWindow) {
    Piece* piece = piece_open(operation, operation.own_next);
    PEAL_ASSERT(piece != nullptr);
    if (!piece->own_started && !start(scope, *piece, operation.own_next)) {
      operation_starved(scope);
      return;
    }
    ++operation.own_next;
  }
}

inline bool has_bit(const Piece& piece, uint32_t index) {
  return (piece.bits[index / 64] >> (index % 64) & 1) != 0;
}
inline void set_bit(Piece& piece, uint32_t index) {
  piece.bits[index / 64] |= uint64_t{1} << (index % 64);
}

inline bool owes(const Piece& piece, Rank origin) {
  return piece.in_debt && (piece.owed[origin / 64] >> (origin % 64) & 1) != 0;
}
inline void owe(Piece& piece, Rank origin) {
  if (!piece.in_debt) {
    for (uint64_t& word : piece.owed) word = 0;
    piece.in_debt = true;
  }
  piece.owed[origin / 64] |= uint64_t{1} << (origin % 64);
}
inline void settle(Piece& piece, Rank origin) {
  piece.owed[origin / 64] &= ~(uint64_t{1} << (origin % 64));
}

}  // namespace peal
