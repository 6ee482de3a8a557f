// SPDX-License-Identifier: BSD-2-Clause
// What goes where in a direct exchange: how long the blocks of two ranks for each other are, where
// they lie in the user's memory, and where in the channel. Blocks of parts have lengths of their
// own: two ranks exchange as many packets each way as the longer of their two blocks needs, at
// least one, so that whoever sends a piece to a rank needs that rank's, and a packet of piece p + W
// proves to its receiver that its own piece p has come. docs/decisions/0017, 0020
#pragma once

#include "firmware/collective/direct_pair.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/frame.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/parts.h"
#include "firmware/operation/pieces.h"

namespace peal::direct {

inline bool has_parts(const Operation& operation) {
  return operation.algorithm->lengths == Lengths::kOfParts;
}
// Is it known where the user's blocks lie? Not asked for before, but for places of the channel.
inline bool is_known(const Operation& operation) {
  return is_posted(operation) && (!has_parts(operation) || parts_are_known(operation));
}

// Cuts them into pieces, so that so many bytes at the end of an image are left.
void open_blocks(const Scope& scope, uint32_t reserved_bytes);
// The table has come: looks at it, and at what came before it. False: it is wrong, and refused.
bool adopt_parts(const Scope& scope);

// Bytes of a block in this piece.
inline uint32_t cut(const Operation& operation, uint64_t block_bytes, uint32_t number) {
  const uint64_t before = uint64_t{number} * operation.piece_bytes;
  const uint64_t left = block_bytes > before ? block_bytes - before : 0;
  return static_cast<uint32_t>(left < operation.piece_bytes ? left : operation.piece_bytes);
}

// The part that a rank gets, and the one that comes from it, as the table says.
inline peal_part part_for(const Scope& scope, Rank to) {
  auto& [card, member, operation] = scope;
  const peal_part* parts = parts_of(member, operation);
  if (!is_for_all(operation)) return parts[to];
  const peal_part& own = parts[member.membership.rank];
  return operation.command.in_place ? own : peal_part{operation.command.send.offset, own.bytes};
}
// Parts of what is given, if there are any, stand before those of the result.
inline peal_part part_from(const Scope& scope, Rank origin) {
  auto& [card, member, operation] = scope;
  const Rank ranks = member.membership.ranks;
  return parts_of(member, operation)[(operation.command.parts > ranks ? ranks : 0) + origin];
}

// Bytes of the piece of the block for a rank, and of that from it.
inline uint32_t length_for(const Scope& scope, uint32_t number, Rank to) {
  const Operation& operation = scope.operation;
  if (!has_parts(operation)) return piece_length(operation, number);
  return cut(operation, part_for(scope, to).bytes, number);
}
inline uint32_t length_from(const Scope& scope, uint32_t number, Rank origin) {
  const Operation& operation = scope.operation;
  if (!has_parts(operation)) return piece_length(operation, number);
  return cut(operation, part_from(scope, origin).bytes, number);
}
// The user's memory.
HostAddress given_part_address(const Scope& scope, uint32_t number, Rank to);
inline HostAddress given_address(const Scope& scope, uint32_t number, Rank to) {
  Operation& operation = scope.operation;
  if (has_parts(operation)) return given_part_address(scope, number, to);
  return is_for_all(operation) ? own_address(operation, number)
                               : own_address_for(operation, to, number);
}
HostAddress result_part_address(const Scope& scope, uint32_t number, Rank origin);
inline HostAddress result_address(const Scope& scope, uint32_t number, Rank origin) {
  const Operation& operation = scope.operation;
  if (has_parts(operation)) return result_part_address(scope, number, origin);
  return user_address(operation, origin, number);
}

// Own blocks of this piece are kept (in their packets, or in the channel): they may be asked for
// when the user's memory is the user's again, or holds what others sent.
bool is_part_of_all_kept(const Scope& scope, const Pair& pair, uint32_t number);
inline bool is_kept(const Scope& scope, const Pair& pair, uint32_t number) {
  Operation& operation = scope.operation;
  const bool for_all = is_for_all(operation);
  if (operation.command.in_place && !for_all) return true;
  if (for_all && has_parts(operation)) return is_part_of_all_kept(scope, pair, number);
  // Whoever has no packet after the next W may still ask for this one when the operation is over.
  return !exchanges(pair, number + kPieceWindow);
}

// Where it is kept, behind its frame if it has parts: so a short one touches a page of the channel.
HostAddress kept_address(const Scope& scope, uint32_t number, Rank to);
HostAddress kept_frame_address(const Scope& scope, uint32_t number, Rank to);
// A place of the channel, from its beginning on.
inline uint32_t place_bytes(const Operation& operation) {
  return operation.piece_bytes + (has_parts(operation) ? kFrameBytes : 0);
}

// Where a block waits for the user's memory: in the place of what was kept for its origin of the
// piece W before, which that has, or it would not have sent this. A block of parts is behind its
// frame.
HostAddress early_address(const Scope& scope, uint32_t number, Rank origin);
HostAddress early_frame_address(const Scope& scope, uint32_t number, Rank origin);

}  // namespace peal::direct
