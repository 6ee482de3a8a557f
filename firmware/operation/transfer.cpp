// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/transfer.h"

#include <cstring>

#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/frame.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/refusal.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal {
namespace {

// A frame and its block are in the packet, whose header says which block is wanted: is it that one?
bool take_frame(const DmaDone& done) {
  Packet* packet = done.packet;
  const peal_wire_header frame = header_of_frame(packet->payload);
  if (!is_same_block(frame, *packet->header) || frame.length > done.bytes - kFrameBytes) {
    return false;
  }
  std::memmove(packet->payload, packet->payload + kFrameBytes, frame.length);
  packet->header->length = frame.length;
  packet->header->block_bytes = frame.block_bytes;
  packet->payload_bytes = frame.length;
  return true;
}

// The image has arrived in the packet, which was held for this alone.
void send_read(Card& card, Packet* packet) {
  PEAL_ASSERT(packet->holds == 1);
  packet->holds = 0;
  launch_packet(card, packet, false);
}

}  // namespace

void on_other_done(const Scope& scope, const DmaDone& done, bool live) {
  auto& [card, member, operation] = scope;
  const auto role = static_cast<TransferRole>(done.role);
  if (live && holds_operation(role)) --operation.dma;
  if (live && holds_piece(role)) --piece_slot(operation, done.piece).dma;
  bool may_advance = live;
  if (role == TransferRole::kPart || role == TransferRole::kWhole) {
    if (live) {
      may_advance = operation.algorithm->does.on_dma(scope, done);
    }
    if (done.packet != nullptr) unhold_packet(card, done.packet);
    if (live && !done.ok) refuse(scope, PEAL_STATUS_DMA_FAULT, member.membership.rank);
  } else if (done.ok && !(live && is_refused(operation)) &&
             (role != TransferRole::kRepairFramed || take_frame(done))) {
    if (holds_operation(role) && done.detail != kNoPeer) {
      edge_count(member.membership.peers[done.detail], done.packet->header);
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

Packet* take_bounce_or_starve(const Scope& scope, uint32_t records) {
  Packet* bounce = take_bounce(scope.card, records);
  if (bounce == nullptr) operation_starved(scope);
  return bounce;
}

void transfer_read(const Scope& scope, const TransferRequest& request) {
  transfer_start(scope, request, DmaKind::kRead);
}

void transfer_write(const Scope& scope, const TransferRequest& request) {
  transfer_start(scope, request, DmaKind::kWrite);
}

}  // namespace peal
