// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_blocks.h"

#include <bit>

#include "firmware/collective/direct_pair.h"
#include "firmware/group/early.h"
#include "firmware/operation/refusal.h"

namespace peal::direct {
namespace {

// Pieces of an operation whose table has not come. (Steps' packets have the numbers from there on.)
constexpr uint32_t kAnyNumber = PEAL_PIECE_STEP - 1;

// The one block for all has bytes in this piece.
bool is_of_all(Operation& operation, uint32_t number) {
  if (!is_for_all(operation)) return false;
  return !has_parts(operation) ||
         cut(operation, own_state<Exchange>(operation).own_bytes, number) > 0;
}

HostAddress behind(HostAddress address, uint64_t bytes) {
  return {address.region, address.offset + bytes};
}

// A place for each rank. All pieces have places of the same size, whatever the last one's length
// is.
HostAddress place_address(const Scope& scope, uint32_t number, Rank rank) {
  auto& [card, member, operation] = scope;
  return image_address(member, operation, number, 0, rank * place_bytes(operation));
}

// The block in a place.
HostAddress block_in(const Scope& scope, HostAddress place) {
  return behind(place, has_parts(scope.operation) ? kFrameBytes : 0);
}

// What a rank has given is what it gets from itself.
bool own_parts_agree(const Scope& scope) {
  const Rank self = scope.member.membership.rank;
  return part_for(scope, self).bytes == part_from(scope, self).bytes;
}

bool parts_are_good(const Scope& scope) {
  auto& [card, member, operation] = scope;
  const Command& command = operation.command;
  for (Rank rank = 0; rank < member.membership.ranks; ++rank) {
    const peal_part given = part_for(scope, rank);
    const peal_part result = part_from(scope, rank);
    if (!part_is_good(card, member, command.send_key, given.offset, given.bytes) ||
        !part_is_good(card, member, command.receive_key, result.offset, result.bytes)) {
      return false;
    }
  }
  return true;
}

// Did a rank send more pieces than it should have?
bool sent_too_many(const Scope& scope, Rank* rank) {
  const Membership& self = scope.member.membership;
  for (uint32_t way = 1; way < self.ranks; ++way) {
    const Pair& pair = pair_at(scope, way);
    const auto pieces = static_cast<uint32_t>(std::bit_width(pair.come));
    *rank = rank_at(self, way);
    if (pieces > 0 && !exchanges(pair, pair.base + pieces - 1)) return true;
  }
  return false;
}

// Is one of these of a block of another length? (What waits in the channel is looked at when it is
// read.)
bool differs(const Scope& scope, Piece& piece, Rank* rank) {
  Card& card = scope.card;
  bool found = false;
  for (uint32_t left = piece.waiting; left > 0; --left) {
    const EarlyPacket& early = early_first(card, piece);
    if (early.packet->header->block_bytes != part_from(scope, early.origin).bytes) {
      *rank = early.origin;
      found = true;
    }
    early_put_back(card, piece);
  }
  return found;
}

uint64_t longer_of(const Scope& scope, Rank rank) {
  const uint64_t given_bytes = part_for(scope, rank).bytes;
  const uint64_t result_bytes = part_from(scope, rank).bytes;
  return given_bytes > result_bytes ? given_bytes : result_bytes;
}

// Every pair has the first piece.
uint32_t pieces_of(const Operation& operation, uint64_t longer) {
  if (longer <= operation.piece_bytes) return 1;
  return static_cast<uint32_t>((longer + operation.piece_bytes - 1) / operation.piece_bytes);
}

// Of all pairs, and how many have any. Where short blocks go in steps their pairs have none, and
// the steps count as one pair more.
void count_pieces(const Scope& scope) {
  Operation& operation = scope.operation;
  auto& exchange = own_state<Exchange>(operation);
  const Membership& self = scope.member.membership;
  const uint64_t long_bytes = exchange.stepped ? steps_of(scope).most + uint64_t{1} : 0;
  uint32_t left = exchange.stepped ? 1 : 0;
  operation.piece_count = 1;
  for (uint32_t way = 0; way < self.ranks; ++way) {
    const uint64_t longer = longer_of(scope, rank_at(self, way));
    const uint32_t pieces = longer < long_bytes ? 0 : pieces_of(operation, longer);
    pair_at(scope, way).pieces = pieces;
    if (operation.piece_count < pieces) operation.piece_count = pieces;
    if (pieces > 0) ++left;
  }
  exchange.left = static_cast<uint16_t>(left);
}

}  // namespace

void open_blocks(const Scope& scope, uint32_t reserved_bytes) {
  Operation& operation = scope.operation;
  const uint32_t place =
      piece_bytes_for(scope.member.membership.ranks, kImageBytes - reserved_bytes);
  if (!has_parts(operation)) {
    pieces_open(scope, place, 0, kWholePlaces);
    return;
  }
  static_assert(kPartPlaceBytes > kFrameBytes, "places for parts would be empty");
  static_assert(piece_bytes_for(kPartRanks) >= kPartPlaceBytes);
  pieces_open(scope, place - kFrameBytes, 0, kWholePlaces);
  operation.piece_count = kAnyNumber;
}

bool adopt_parts(const Scope& scope) {
  auto& [card, member, operation] = scope;
  const Rank self = member.membership.rank;
  if (!parts_are_good(scope)) {
    refuse(scope, PEAL_STATUS_DMA_FAULT, self);
    return false;
  }
  if (!own_parts_agree(scope)) {
    refuse(scope, PEAL_STATUS_MISMATCH, self);
    return false;
  }
  own_state<Exchange>(operation).own_bytes = static_cast<uint32_t>(part_for(scope, self).bytes);
  count_pieces(scope);
  Rank rank = self;
  bool disagrees = sent_too_many(scope, &rank);
  for (Piece& piece : operation.pieces) disagrees = disagrees || differs(scope, piece, &rank);
  if (disagrees) refuse(scope, PEAL_STATUS_MISMATCH, rank);
  return !disagrees;
}

HostAddress given_part_address(const Scope& scope, uint32_t number, Rank to) {
  const Operation& operation = scope.operation;
  return {operation.command.send.region,
          part_for(scope, to).offset + uint64_t{number} * operation.piece_bytes};
}

HostAddress result_part_address(const Scope& scope, uint32_t number, Rank origin) {
  const Operation& operation = scope.operation;
  return {operation.command.receive.region,
          part_from(scope, origin).offset + uint64_t{number} * operation.piece_bytes};
}

bool is_part_of_all_kept(const Scope& scope, const Pair& pair, uint32_t number) {
  Operation& operation = scope.operation;
  if (!is_of_all(operation, number)) return !exchanges(pair, number + kPieceWindow);
  return !is_of_all(operation, number + kPieceWindow);
}

HostAddress kept_address(const Scope& scope, uint32_t number, Rank to) {
  return block_in(scope, kept_frame_address(scope, number, to));
}

// One for all has the own rank's place, where no block ever waits.
HostAddress kept_frame_address(const Scope& scope, uint32_t number, Rank to) {
  const bool all = is_of_all(scope.operation, number);
  return place_address(scope, number, all ? Rank{scope.member.membership.rank} : to);
}

HostAddress early_address(const Scope& scope, uint32_t number, Rank origin) {
  return block_in(scope, early_frame_address(scope, number, origin));
}

HostAddress early_frame_address(const Scope& scope, uint32_t number, Rank origin) {
  return place_address(scope, number + kPieceWindow, origin);
}

}  // namespace peal::direct
