// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/mover.h"

#include "firmware/collective/allgather/schedule.h"
#include "firmware/dma/dma.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/wire/transmit.h"

namespace peal::mover {
namespace {

constexpr uint32_t kRunsInFlight = 4;

bool doubles(const Operation& operation) {
  return operation.algorithm == PEAL_ALGORITHM_RECURSIVE_DOUBLING;
}

// Must this block of the image be copied?
bool wanted(const Member& member, Operation& operation, uint32_t position) {
  if (doubles(operation)) return true;
  const Mover& mover = operation.mover;
  if (!piece_is_open(operation, mover.piece) || position == member.membership.rank) return false;
  return has_bit(piece_slot(operation, mover.piece), position);
}

Rank rank_of(const Member& member, const Operation& operation, uint32_t position) {
  const Membership& self = member.membership;
  return doubles(operation) ? schedule::rank_at(position, self.rank, self.ranks) : position;
}

// Blocks from `first` that are wanted and lie side by side both in the image and in the user's
// buffer.
uint32_t run_length(const Member& member, Operation& operation, uint32_t first) {
  const uint32_t length = piece_length(operation, operation.mover.piece);
  uint32_t blocks = 1;
  if (operation.piece_count > 1) return blocks;
  while ((blocks + 1) * length <= CONFIG_MTU_BYTES && first + blocks < member.membership.ranks &&
         wanted(member, operation, first + blocks) &&
         rank_of(member, operation, first + blocks) == rank_of(member, operation, first) + blocks) {
    ++blocks;
  }
  return blocks;
}

// The scan has reached the end of a piece: the next one, or the end.
void next_piece(const Scope& scope) {
  Operation& operation = scope.operation;
  Mover& mover = operation.mover;
  if (doubles(operation)) {
    if (mover.in_flight > 0) return;
    piece_slot(operation, mover.piece).delivered = true;
    mover.active = false;
    return;
  }
  ++mover.piece;
  mover.next = 0;
  mover.active = mover.piece < kPieceSlots && mover.piece < operation.piece_count;
}

}  // namespace

void start(Operation& operation, uint32_t first_piece) {
  operation.mover = {.active = true, .in_flight = 0, .next = 0, .piece = first_piece};
}

void advance(const Scope& scope) {
  auto& [card, member, operation] = scope;
  Mover& mover = operation.mover;
  // Early data on its way into the channel has its bit, but is not there yet.
  while (mover.active && mover.in_flight < kRunsInFlight && operation.early_dma == 0) {
    while (mover.next < member.membership.ranks && !wanted(member, operation, mover.next))
      ++mover.next;
    if (mover.next >= member.membership.ranks) {
      const bool waiting = doubles(operation) && mover.in_flight > 0;
      next_piece(scope);
      if (waiting) return;
      continue;
    }
    if (!dma_available(card, 1)) {
      count(card, PEAL_COUNTER_NO_DMA_RECORD);
      operation_starved(scope);
      return;
    }
    Packet* bounce = take_packet(card);
    if (bounce == nullptr) {
      operation_starved(scope);
      return;
    }
    const uint32_t length = piece_length(operation, mover.piece);
    const uint32_t blocks = run_length(member, operation, mover.next);
    dma_read(scope, {.kind = DmaKind::kMoveRead,
                     .piece = mover.piece,
                     .host = image_address(member, operation, mover.piece, mover.next * length),
                     .card = bounce->payload,
                     .bytes = blocks * length,
                     .packet = bounce,
                     .aux = mover.next});
    ++mover.in_flight;
    mover.next = static_cast<uint16_t>(mover.next + blocks);
  }
}

bool is_past(const Operation& operation, uint32_t piece, Rank origin) {
  const Mover& mover = operation.mover;
  if (!mover.active) return true;
  return piece < mover.piece || (piece == mover.piece && origin < mover.next);
}

void on_read(const Scope& scope, DmaRecord& record) {
  const Rank first = rank_of(scope.member, scope.operation, record.aux);
  dma_continue_as_write(scope.card, record, DmaKind::kMoveWrite,
                        user_address(scope.operation, first, record.piece));
}

void on_written(const Scope& scope) { --scope.operation.mover.in_flight; }

}  // namespace peal::mover
