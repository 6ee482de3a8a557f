// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_landing.h"

#include "firmware/group/early.h"
#include "firmware/operation/frame.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/refusal.h"

namespace peal::direct {
namespace {

bool has_early(const Piece& piece, Rank origin) {
  return (own_state<Sending>(piece).early[origin / 64] >> (origin % 64) & 1) != 0;
}

// What stands before a block that waits in the channel.
uint32_t early_frame_bytes(const Operation& operation) {
  return has_parts(operation) ? kFrameBytes : 0;
}

// A block of parts, or what it is, goes to the channel.
void write_early(const Scope& scope, Packet* packet, uint8_t step) {
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
                         .detail = origin});
}

}  // namespace

void note_early(Piece& piece, Rank origin) {
  auto& sending = own_state<Sending>(piece);
  sending.early[origin / 64] |= uint64_t{1} << (origin % 64);
  ++sending.early_count;
}

bool is_free(const Scope& scope, const Piece& piece, Rank origin) {
  if (!is_known(scope.operation)) return false;
  if (!scope.operation.command.in_place || is_for_all(scope.operation)) return true;
  return is_kept_now(piece, way_of(scope.member.membership, origin));
}

// Blocks that waited in the channel, to the user.
void move_early(const Scope& scope, Piece& piece, uint32_t number) {
  auto& [card, member, operation] = scope;
  auto& sending = own_state<Sending>(piece);
  for (Rank origin = 0; sending.early_count > 0 && origin < member.membership.ranks; ++origin) {
    if (!has_early(piece, origin) || !is_free(scope, piece, origin)) continue;
    if (piece.dma >= kPieceTransfers) return;
    Packet* bounce = take_bounce_or_starve(scope);
    if (bounce == nullptr) return;
    transfer_read(scope,
                  {.step = kEarlyRead,
                   .piece = number,
                   .host = early_frame_address(scope, number, origin),
                   .card = bounce->payload,
                   .bytes = early_frame_bytes(operation) + length_from(scope, number, origin),
                   .packet = bounce,
                   .detail = origin});
    sending.early[origin / 64] &= ~(uint64_t{1} << (origin % 64));
    --sending.early_count;
  }
}

// What waited in the channel has been read. False: it goes on to the user.
bool on_early_read(const Scope& scope, const TransferDone& done) {
  Operation& operation = scope.operation;
  const auto origin = static_cast<Rank>(done.detail);
  const uint32_t frame_bytes = early_frame_bytes(operation);
  if (frame_bytes > 0) {
    const peal_wire_header frame = header_of_frame(done.packet->payload);
    if (frame.block_bytes != part_from(scope, origin).bytes) {
      refuse(scope, PEAL_STATUS_MISMATCH, origin);
      return true;
    }
    if (frame.length == 0) return true;
  }
  transfer_write(scope, {.step = kLand,
                         .piece = done.piece,
                         .host = result_address(scope, done.piece, origin),
                         .card = done.packet->payload + frame_bytes,
                         .bytes = done.bytes - frame_bytes,
                         .packet = done.packet});
  return false;
}

// What an early block is lies in the channel. False: the block follows.
bool on_early_framed(const Scope& scope, Piece& piece, const TransferDone& done) {
  if (done.packet->header->length == 0) {
    note_early(piece, done.detail);
    return true;
  }
  write_early(scope, done.packet, kLandEarly);
  return false;
}

// Puts a block where it belongs: the user's memory or, when that is not possible yet, the channel,
// unless it can wait where it is. False: not now.
bool land(const Scope& scope, Piece& piece, Packet* packet) {
  auto& [card, member, operation] = scope;
  const uint32_t number = packet->header->piece;
  const Rank origin = packet->header->origin;
  const uint32_t length = packet->header->length;
  // What of parts has no bytes is looked at when the table has come.
  if (length == 0 && (!has_parts(operation) || is_known(operation))) return true;
  const bool free = is_free(scope, piece, origin);
  if (!free && early_keep(scope, packet, piece, origin)) return true;
  if (!dma_available(card, 1)) return false;
  if (free) {
    transfer_write(scope, {.step = kLand,
                           .piece = number,
                           .host = result_address(scope, number, origin),
                           .card = packet->payload,
                           .bytes = length,
                           .packet = packet,
                           .detail = origin});
    return true;
  }
  // What was kept for it of the piece W before may still be on its way to that place.
  if (number >= kPieceWindow && piece_is_open(operation, number - kPieceWindow) &&
      !is_kept_now(piece_slot(operation, number - kPieceWindow),
                   way_of(member.membership, origin))) {
    return false;
  }
  write_early(scope, packet, has_parts(operation) ? kEarlyFramed : kLandEarly);
  return true;
}

}  // namespace peal::direct
