// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/mover.h"

#include "firmware/operation/layout.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/transfer.h"

namespace peal::mover {
namespace {

// Few: engines work in order, and who takes many packets has none for what arrives.
constexpr uint32_t kRunsInFlight = 4;

// Blocks from `first` that are wanted and lie side by side both in the image and in the user's
// buffer.
uint32_t run_length(const Scope& scope, const Plan& plan, uint32_t first) {
  const Operation& operation = scope.operation;
  const Membership& self = scope.member.membership;
  const uint32_t piece = operation.mover.piece;
  const uint32_t length = piece_length(operation, piece);
  uint32_t blocks = 1;
  if (operation.piece_count > 1) return blocks;
  while ((blocks + 1) * length <= CONFIG_MTU_BYTES && first + blocks < self.ranks &&
         plan.wanted(scope, piece, first + blocks) &&
         plan.rank_at(self, first + blocks) == plan.rank_at(self, first) + blocks) {
    ++blocks;
  }
  return blocks;
}

// A run has been read into its bounce packet.
void write_run(const Scope& scope, const Plan& plan, const TransferDone& done) {
  const Rank first = plan.rank_at(scope.member.membership, done.detail);
  transfer_write(scope, {.step = kMoveWrite,
                         .piece = done.piece,
                         .host = user_address(scope.operation, first, done.piece),
                         .card = done.packet->payload,
                         .bytes = done.bytes,
                         .packet = done.packet,
                         .detail = done.detail});
}

}  // namespace

void start(Operation& operation, uint32_t first_piece) {
  Mover& mover = operation.mover;
  mover.active = true;
  mover.in_flight = 0;
  mover.next = 0;
  mover.piece = first_piece;
}

void advance(const Scope& scope, const Plan& plan) {
  auto& [card, member, operation] = scope;
  Mover& mover = operation.mover;
  // Early data on its way into the channel has its bit, but is not there yet.
  while (mover.active && mover.in_flight < kRunsInFlight && mover.landing == 0) {
    while (mover.next < member.membership.ranks && !plan.wanted(scope, mover.piece, mover.next))
      ++mover.next;
    if (mover.next >= member.membership.ranks) {
      if (!plan.piece_ended(scope)) return;
      continue;
    }
    Packet* bounce = take_bounce_or_starve(scope);
    if (bounce == nullptr) return;
    const uint32_t blocks = run_length(scope, plan, mover.next);
    transfer_read(scope, {.step = kMoveRead,
                          .piece = mover.piece,
                          .host = image_address(member, operation, mover.piece, mover.next),
                          .card = bounce->payload,
                          .bytes = blocks * piece_length(operation, mover.piece),
                          .packet = bounce,
                          .detail = mover.next});
    ++mover.in_flight;
    mover.next = static_cast<uint16_t>(mover.next + blocks);
  }
}

bool on_dma(const Scope& scope, const Plan& plan, const TransferDone& done) {
  Operation& operation = scope.operation;
  if (done.step == kLandEarly) --operation.mover.landing;
  if (!done.ok) return true;
  Piece& piece = piece_slot(operation, done.piece);
  switch (done.step) {
    case kMoveRead:
      if (is_refused(operation)) break;
      write_run(scope, plan, done);
      return false;
    case kMoveWrite:
      --operation.mover.in_flight;
      break;
    case kRetain:
      piece.retained = true;
      break;
    default:
      break;
  }
  return true;
}

}  // namespace peal::mover
