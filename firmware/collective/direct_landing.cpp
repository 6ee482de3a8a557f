// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_landing.h"

#include <bit>

#include "firmware/collective/direct_blocks.h"
#include "firmware/collective/direct_progress.h"
#include "firmware/group/early.h"
#include "firmware/operation/frame.h"
#include "firmware/operation/landing.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/refusal.h"
#include "firmware/operation/transfer.h"

namespace peal::direct {
namespace {

// What stands before a block that waits in the channel.
uint32_t early_frame_bytes(const Operation& operation) {
  return has_parts(operation) ? kFrameBytes : 0;
}

// A block of parts, or what it is, goes to the channel.
void write_early(const Scope& scope, uint32_t way, Packet* packet, uint8_t step) {
  const uint32_t number = packet->header->piece;
  const Rank origin = packet->header->origin;
  const bool frame = step == kEarlyFramed;
  transfer_write(scope, {.step = step,
                         .piece = number,
                         .host = frame ? early_frame_address(scope, number, origin)
                                       : early_address(scope, number, origin),
                         .card = frame ? frame_of(packet) : packet->payload,
                         .bytes = frame ? kFrameBytes : packet->header->length,
                         .packet = packet,
                         .detail = way});
}

// Fetches one from there. False: not now.
bool fetch_early(const Scope& scope, uint32_t way, uint32_t number) {
  const Rank origin = rank_at(scope.member.membership, way);
  if (piece_slot(scope.operation, number).dma >= kPieceTransfers) return false;
  Packet* bounce = take_bounce_or_starve(scope);
  if (bounce == nullptr) return false;
  transfer_read(scope,
                {.step = kEarlyRead,
                 .piece = number,
                 .host = early_frame_address(scope, number, origin),
                 .card = bounce->payload,
                 .bytes = early_frame_bytes(scope.operation) + length_from(scope, number, origin),
                 .packet = bounce,
                 .detail = way});
  return true;
}

// Those of a pair, as far as they are free. False: not now.
bool fetch_all_early(const Scope& scope, uint32_t way) {
  Pairs& pairs = pairs_of(scope);
  Pair& pair = pairs.of()[way];
  const Rank origin = rank_at(scope.member.membership, way);
  for (uint32_t bits = pair.stored; bits != 0; bits &= bits - 1) {
    const uint32_t number = pair.base + static_cast<uint32_t>(std::countr_zero(bits));
    if (!is_free(scope, number, origin)) continue;
    if (!fetch_early(scope, way, number)) return false;
    reset(pair.stored, bit_in(pair, number));
    set(pair.waits, bit_in(pair, number));
  }
  if (pair.stored == 0) pairs.stored[way / 64] &= ~bit_of(way);
  return true;
}

// One that waited in its packet is on its way.
void note_landed_from(const Scope& scope, uint32_t number, Rank origin, uint32_t bytes) {
  if (bytes > 0) ++own_state<Exchange>(scope.operation).landing;
  note_landed(scope, way_of(scope.member.membership, origin), number);
}

}  // namespace

void note_early(const Scope& scope, uint32_t way, uint32_t number) {
  Pairs& pairs = pairs_of(scope);
  Pair& pair = pairs.of()[way];
  reset(pair.waits, bit_in(pair, number));
  set(pair.stored, bit_in(pair, number));
  pairs.stored[way / 64] |= bit_of(way);
}

void to_user(const Scope& scope, uint32_t number, Rank origin, Packet* packet, uint8_t* from,
             uint32_t bytes) {
  ++own_state<Exchange>(scope.operation).landing;
  const TransferRequest request = {.step = kLand,
                                   .piece = number,
                                   .host = result_address(scope, number, origin),
                                   .card = from,
                                   .bytes = bytes,
                                   .packet = packet};
  transfer_start(scope, request, DmaKind::kWrite);
}

bool is_free(const Scope& scope, uint32_t number, Rank origin) {
  if (!is_known(scope.operation)) return false;
  if (!scope.operation.command.in_place || is_for_all(scope.operation)) return true;
  return is_sent(pair_at(scope, way_of(scope.member.membership, origin)), number);
}

void move_early(const Scope& scope) {
  Pairs& pairs = pairs_of(scope);
  for (uint32_t word = 0; word < words_of(scope); ++word) {
    for (uint64_t bits = pairs.stored[word]; bits != 0; bits &= bits - 1) {
      const uint32_t way = 64 * word + static_cast<uint32_t>(std::countr_zero(bits));
      if (!fetch_all_early(scope, way)) return;
    }
  }
}

void land_waiting(const Scope& scope) {
  constexpr Landing kLanding = {kLand, is_free, result_address, note_landed_from};
  for (Piece& piece : scope.operation.pieces) {
    if (!peal::land_waiting(scope, piece, kLanding)) return;
  }
}

// What waited in the channel has been read, and goes on to the user.
void on_early_read(const Scope& scope, const TransferDone& done) {
  Operation& operation = scope.operation;
  const Rank origin = rank_at(scope.member.membership, done.detail);
  const uint32_t frame_bytes = early_frame_bytes(operation);
  if (frame_bytes > 0) {
    const peal_wire_header frame = header_of_frame(done.packet->payload);
    if (frame.block_bytes != part_from(scope, origin).bytes) {
      refuse(scope, PEAL_STATUS_MISMATCH, origin);
      return;
    }
  }
  note_landed(scope, done.detail, done.piece);
  if (done.bytes == frame_bytes) return;
  to_user(scope, done.piece, origin, done.packet, done.packet->payload + frame_bytes,
          done.bytes - frame_bytes);
}

// What an early block is lies in the channel. False: the block follows.
bool on_early_framed(const Scope& scope, const TransferDone& done) {
  if (done.packet->header->length == 0) {
    note_early(scope, done.detail, done.piece);
    return true;
  }
  write_early(scope, done.detail, done.packet, kLandEarly);
  return false;
}

bool land(const Scope& scope, uint32_t way, Packet* packet) {
  auto& [card, member, operation] = scope;
  Pair& pair = pair_at(scope, way);
  const uint32_t number = packet->header->piece;
  const Rank origin = packet->header->origin;
  const uint32_t length = packet->header->length;
  // What of parts has no bytes is looked at when the table has come.
  if (length == 0 && (!has_parts(operation) || is_known(operation))) return true;
  const bool free = is_free(scope, number, origin);
  if (!free && early_keep(scope, packet, piece_slot(operation, number), origin)) {
    set(pair.waits, bit_in(pair, number));
    return true;
  }
  if (!dma_available(card, 1)) return false;
  if (free) {
    to_user(scope, number, origin, packet, packet->payload, length);
    return true;
  }
  // What was kept for it of the piece W before may still be on its way to that place.
  if (number >= kPieceWindow && !is_sent(pair, number - kPieceWindow)) return false;
  set(pair.waits, bit_in(pair, number));
  write_early(scope, way, packet, has_parts(operation) ? kEarlyFramed : kLandEarly);
  return true;
}

}  // namespace peal::direct
