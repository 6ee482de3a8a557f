// SPDX-License-Identifier: BSD-2-Clause
// What those allgathers have in common in which each block goes its own way, piece by piece, while
// it is passed on: what came before the host's post, the own block, and when a piece is over.
#pragma once

#include "firmware/operation/landing.h"
#include "firmware/operation/mover.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"

namespace peal::gathering {

// A set of ranks, as an algorithm keeps it for each piece.
inline bool is_in(const uint64_t* set, Rank rank) {
  return (set[rank / 64] >> (rank % 64) & 1) != 0;
}
inline void put_in(uint64_t* set, Rank rank) { set[rank / 64] |= uint64_t{1} << (rank % 64); }
inline void take_from(uint64_t* set, Rank rank) { set[rank / 64] &= ~(uint64_t{1} << (rank % 64)); }

// Of the mover's plan (mover.h): blocks by rank, one piece after the other.
inline Rank rank_at(const Membership& /*self*/, uint32_t position) { return position; }
bool next_early_piece(const Scope& scope);

// Of land_early(): once the host has posted, every block goes to its place in the result.
HostAddress result_address(const Scope& scope, uint32_t number, Rank origin);
constexpr Landing landing(uint8_t step) { return {step, nullptr, result_address, nullptr}; }

// Goes on with the own block of a piece, which is in the packet.
using OwnIsRead = void (*)(const Scope& scope, Packet* packet, uint32_t number);
// Reads it; the transfer goes on at `step`, or at once where the block is empty. False: no packet.
bool read_own(const Scope& scope, Piece& piece, uint32_t number, uint8_t step,
              OwnIsRead own_is_read);
// Can two transfers begin with what was read? Else others took the records meanwhile, and it will
// be read again.
bool has_dma_or_reads_again(const Scope& scope, Piece& piece, uint32_t number);

// All blocks have come and lie where they belong; those of a staged result, in the staging buffer.
inline bool has_all(const Scope& scope, const Piece& piece, uint32_t number) {
  const Operation& operation = scope.operation;
  if (piece.arrived < expected_blocks(scope.member.membership) || piece.dma > 0) return false;
  if (operation.mover.active && operation.mover.piece <= number) return false;
  return piece.waiting == 0;
}

}  // namespace peal::gathering
