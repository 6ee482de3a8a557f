// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/transfer.h"

#include "firmware/base/assert.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/refusal.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal {
namespace {

DmaRequest book(const Scope& scope, const TransferRequest& request) {
  auto& [card, member, operation] = scope;
  ++member.dma;
  if (request.role != TransferRole::kRepair) {
    ++operation.dma;
    if (request.role != TransferRole::kRepairOwn) ++piece_slot(operation, request.piece).dma;
  }
  return {.host = request.host,
          .card = request.card,
          .bytes = request.bytes,
          .packet = request.packet,
          .tag = {.member = member.index,
                  .owner = DmaOwner::kOperation,
                  .slot = operation.timer.slot,
                  .role = static_cast<uint8_t>(request.role),
                  .step = request.step,
                  .piece = request.piece,
                  .detail = request.detail,
                  .sequence = operation.sequence}};
}

// The image has arrived in the packet, which was held for this alone.
void send_read(Card& card, Packet* packet) {
  PEAL_ASSERT(packet->holds == 1);
  packet->holds = 0;
  launch_packet(card, packet, false);
}

}  // namespace

void transfer_read(const Scope& scope, const TransferRequest& request) {
  dma_read(scope.card, book(scope, request));
}

void transfer_write(const Scope& scope, const TransferRequest& request) {
  dma_write(scope.card, book(scope, request));
}

void on_transfer_done(Card& card, const DmaDone& done) {
  const DmaTag& tag = done.tag;
  const auto role = static_cast<TransferRole>(tag.role);
  Member& member = card.members[tag.member];
  Operation& operation = member.operations[tag.slot];
  const Scope scope = {card, member, operation};
  // It may outlive its operation: a repair under way when the slot was recycled.
  const bool live = operation.phase != OperationPhase::kFree && operation.sequence == tag.sequence;
  --member.dma;
  if (live && role != TransferRole::kRepair) {
    --operation.dma;
    if (role != TransferRole::kRepairOwn) --piece_slot(operation, tag.piece).dma;
  }
  bool may_advance = live;
  if (role == TransferRole::kPart) {
    if (live) {
      may_advance = operation.algorithm->does.on_dma(
          scope, {tag.step, tag.piece, tag.detail, done.packet, done.bytes, done.ok});
    }
    if (done.packet != nullptr) unhold_packet(card, done.packet);
    if (live && !done.ok) refuse(scope, PEAL_STATUS_DMA_FAULT, member.membership.rank);
  } else if (done.ok && !(live && is_refused(operation))) {
    if (role != TransferRole::kRepair && tag.detail != kNoPeer) {
      edge_count(member.membership.peers[tag.detail], done.packet->header);
    }
    send_read(card, done.packet);
  } else {
    // A repair that cannot be read is asked for again.
    unhold_packet(card, done.packet);
    const bool own = role == TransferRole::kSendOwn || role == TransferRole::kRepairOwn;
    if (live && !done.ok && own) refuse(scope, PEAL_STATUS_DMA_FAULT, member.membership.rank);
  }
  if (may_advance) operation_advance(scope);
}

}  // namespace peal
