// SPDX-License-Identifier: BSD-2-Clause
// Pieces: which of them are open, and what has come of each. A channel holds 2W images.
// A packet of piece p + 2W proves that everybody has piece p (its sender had everything of p + W,
// and nobody sends p + W before it has p), so a slot is reused without a word, and what it retains
// until then answers every NACK that can still come: operations of every length complete locally.
// docs/decisions/0003. That is so where every rank sends and needs every piece
// (Release::kSymmetric, algorithm.h); where not, whoever opens p + 2W must have been told
// (Release::kCredited).
#pragma once

#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/base/mutation.h"
#include "firmware/card_types.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/operation.h"
#include "firmware/wire/wire_check.h"

namespace peal {

// Places of a whole piece each, whatever its length: such an image is never short.
inline constexpr uint32_t kWholePlaces = ~0u;

// Cuts the operation's blocks into pieces of so many bytes and clears their records. An image is so
// many blocks side by side, or kWholePlaces. One of blocks of at most `gather_bytes` gathers in the
// staging buffer, if that has room for it (0: none does).
void pieces_open(const Scope& scope, uint32_t piece_bytes, uint32_t gather_bytes,
                 uint32_t image_blocks);
// An image is the result.
inline void pieces_open(const Scope& scope, uint32_t piece_bytes, uint32_t gather_bytes) {
  pieces_open(scope, piece_bytes, gather_bytes, expected_blocks(scope.member.membership));
}

inline Piece& piece_slot(Operation& operation, uint32_t number) {
  return kept(operation.pieces[number % kPieceSlots]);
}
inline const Piece& piece_slot(const Operation& operation, uint32_t number) {
  return kept(operation.pieces[number % kPieceSlots]);
}
inline bool piece_is_open(const Operation& operation, uint32_t number) {
  return operation.pieces[number % kPieceSlots].number == number + 1;
}
// Its slot serves a later piece: nobody needs it any more, and a question for it is old.
inline bool piece_is_passed(const Operation& operation, uint32_t number) {
  return piece_slot(operation, number).number > number + 1;
}
// Its slot's record becomes that of the piece.
void piece_begin(Piece& piece, uint32_t number);
// The piece's record, made if need be; null when the piece is outside the window of 2W.
inline Piece* piece_open(Operation& operation, uint32_t number) {
  const bool window = number - operation.base < kPieceSlots && number < operation.piece_count;
  if (!window) return nullptr;
  Piece& piece = piece_slot(operation, number);
  if (piece.number != number + 1) piece_begin(piece, number);
  return &piece;
}

// Is it a piece that the operation still works at? Else what came was there before.
inline bool is_under_way(const Operation& operation, uint32_t number) {
  return operation.phase != OperationPhase::kFinished && number >= operation.base;
}

// Does the result gather in the staging buffer? It has one piece then.
inline bool is_staged(const Operation& operation) { return operation.staging_mask != 0; }
inline Piece& staged_piece(const Scope& scope) { return scope.operation.pieces[0]; }
// It is with the user, and no transfer of it is under way: which ends the operation.
inline void staged_is_delivered(const Scope& scope) {
  scope.operation.base = scope.operation.piece_count;
  operation_finish(scope);
}

// Somebody has asked for one that this rank cannot send yet: it asks, too, for the only one. Of
// several more is on its way, or lies in a queue, most likely.
inline void pieces_asked_for(const Scope& scope) {
  if (scope.operation.piece_count == 1) operation_asked_for(scope);
}

// Are there own pieces to be started?
inline bool own_pieces_wait(const Operation& operation) {
  return operation.own_next < operation.piece_count &&
         operation.own_next < operation.base + kPieceWindow;
}
// Starts own pieces as far as the window of W goes. `start(scope, piece, number)` is false when a
// pool was empty.
template <typename Start>
void start_own_pieces(const Scope& scope, Start start) {
  Operation& operation = scope.operation;
  while (own_pieces_wait(operation)) {
    Piece* piece = piece_open(operation, operation.own_next);
    PEAL_ASSERT(piece != nullptr);
    if (piece->own == OwnBlock::kUnread && !start(scope, *piece, operation.own_next)) {
      operation_starved(scope);
      return;
    }
    ++operation.own_next;
  }
}

// A bit of the piece, and the word that it is in.
constexpr uint64_t bit_of(uint32_t index) { return uint64_t{1} << (index % 64); }
inline uint64_t& bits_with(Piece& piece, uint32_t index) { return piece.bits[index / 64]; }
inline bool has_bit(const Piece& piece, uint32_t index) {
  return (piece.bits[index / 64] & bit_of(index)) != 0;
}
inline void set_bit(Piece& piece, uint32_t index) { bits_with(piece, index) |= bit_of(index); }

// The open piece that a block of this origin is new to: kPacketGood, or why not.
inline peal_counter find_piece_of_new(Operation& operation, uint32_t number, Rank origin,
                                      Piece** found) {
  if (!is_under_way(operation, number)) return PEAL_COUNTER_DUPLICATE;
  Piece* piece = piece_open(operation, number);
  if (piece == nullptr) return PEAL_COUNTER_DROP_PIECE;
  if (has_bit(*piece, origin) && !mutated(Mutation::kDuplicateAccepted)) {
    return PEAL_COUNTER_DUPLICATE;
  }
  *found = piece;
  return kPacketGood;
}
// It has landed, or waits where it is.
inline void note_arrival(const Scope& scope, Piece& piece, Rank origin) {
  if (!is_posted(scope.operation)) count(scope.card, PEAL_COUNTER_EARLY_DATA);
  set_bit(piece, origin);
  ++piece.arrived;
  operation_progressed(scope);
}

}  // namespace peal
