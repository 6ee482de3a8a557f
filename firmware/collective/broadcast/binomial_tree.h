// SPDX-License-Identifier: BSD-2-Clause
// What a rank of a broadcast knows: of the operation, of a piece's fragments, and where in the tree
// it is.
#pragma once

#include <algorithm>

#include "firmware/collective/hopping.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/pieces.h"

namespace peal::binomial {

inline constexpr uint32_t kFragmentBytes =
    kImageBytes < CONFIG_MTU_BYTES ? kImageBytes & ~7u : uint32_t{CONFIG_MTU_BYTES};
// Packets of a full piece: no more than an image holds, nor more than 128 KiB, so that of a long
// block little must be kept (is_kept()), and what is under way stays in a processor's caches. (And
// as many as struct Kept has bits for.) docs/decisions/0067
inline constexpr uint32_t kFragments =
    std::min({kImageBytes / kFragmentBytes, (128u << 10) / kFragmentBytes, 32u});
inline constexpr uint32_t kPieceBytes = kFragments * kFragmentBytes;

// An operation's own state.
struct Tree {
  uint32_t whole;     // pieces that this rank and all below it have
  uint32_t told;      // what the parent was told of them
  uint32_t next;      // packet that the root reads next, of kFragments in every piece
  uint32_t place;     // this rank's: how far behind the root
  uint16_t children;  // bit per hop that leaves it
  uint16_t early;     // fragments that came before the host's post and are still to be fetched
  bool readable;      // the user's memory; known when it is posted
  uint8_t reading;
  uint8_t fetching;
};

// A piece's own state. Its bits are the fragments that have arrived.
struct Kept {
  uint32_t in_card;   // fragments that lie in the channel, or wait or stay in packets
  uint32_t in_user;   // fragments that lie in the user's memory alone
  uint32_t early;     // fragments that must be fetched from the channel
  uint32_t promised;  // fragments that were asked for on their way to either
  uint16_t credited;  // bit per leaving hop: all behind it have the piece
  uint16_t asked_by;  // bit per leaving hop: promised to
};

inline Tree& tree_of(const Scope& scope) { return own_state<Tree>(scope.operation); }

// 0: it is the root.
inline uint32_t place_of(const Scope& scope) { return tree_of(scope).place; }
inline uint16_t children_of(const Scope& scope) { return tree_of(scope).children; }

inline uint32_t fragments_in(const Operation& operation, uint32_t number) {
  const uint32_t length = piece_length(operation, number);
  return length == 0 ? 1 : (length + kFragmentBytes - 1) / kFragmentBytes;
}

inline uint64_t all_fragments(const Operation& operation, uint32_t number) {
  return ~uint64_t{0} >> (64 - fragments_in(operation, number));
}

inline uint32_t fragment_length(const Operation& operation, uint32_t number, uint32_t fragment) {
  return std::min(piece_length(operation, number) - fragment * kFragmentBytes, kFragmentBytes);
}

inline HostAddress behind(HostAddress address, uint32_t fragment) {
  return {address.region, address.offset + uint64_t{fragment} * kFragmentBytes};
}

inline bool has_arrived(Operation& operation, uint32_t number) {
  return piece_is_open(operation, number) &&
         piece_slot(operation, number).arrived == fragments_in(operation, number);
}

// Its slot in the channel may serve another piece, as far as this card itself is concerned.
inline bool is_done(Operation& operation, uint32_t number) {
  const Piece& piece = piece_slot(operation, number);
  return has_arrived(operation, number) && piece.waiting == 0 && piece.dma == 0 &&
         own_state<Kept>(piece).early == 0;
}

// First piece that may not come or be sent before more is credited.
inline uint32_t window_end(const Scope& scope) {
  return std::min(tree_of(scope).whole + kPieceSlots, scope.operation.piece_count);
}

// May it be asked for when the user's memory is the user's again? All before is credited by then,
// or the last piece could not have come. docs/decisions/0061
inline bool is_last(const Operation& operation, uint32_t number) {
  return number + kPieceSlots >= operation.piece_count;
}

inline HostAddress user_piece(const Scope& scope, uint32_t number) {
  Operation& operation = scope.operation;
  return place_of(scope) == 0 ? own_address(operation, number) : user_address(operation, 0, number);
}

}  // namespace peal::binomial
