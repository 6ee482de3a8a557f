// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/alltoallv/bruck_logs.h"

#include <cstring>

#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/collective/direct_blocks.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/operation/refusal.h"
#include "firmware/operation/repair.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal::bruckv {
namespace {

// The places of a log or an arrival, by turns in the images.
HostAddress place_address(const Scope& scope, uint32_t index, uint32_t offset) {
  auto& [card, member, operation] = scope;
  const uint32_t places = log_places(member.membership.rounds);
  const uint32_t first = kImageBytes - places * kLogBytes;
  return image_address(member, operation, index % kPieceSlots, 0,
                       first + index / kPieceSlots * kLogBytes + offset);
}

HostAddress log_address(const Scope& scope, uint32_t k, uint32_t offset) {
  return place_address(scope, k, offset);
}

Peer& receiver(const Scope& scope, uint32_t k) {
  return kept(scope.member.membership.peers[peer_behind(k)]);
}

// What all of its packets say: it has no piece, and so no position.
ImagePart part_of(const StepLog& log) { return {PEAL_PIECE_STEP, 0, 0, log.bytes}; }
DataPlace place_of(const Scope& scope, uint32_t k) {
  return {.origin = scope.member.membership.rank, .hop = static_cast<uint8_t>(k), .fragment = 0};
}

// Heads of own blocks that go directly and begin with this step, put there unless it is null.
// Returns their bytes.
uint32_t put_direct_heads(const Scope& scope, uint32_t k, uint8_t* to) {
  const Membership& self = scope.member.membership;
  uint32_t bytes = 0;
  for (uint32_t way = 1u << k; way < self.ranks; way += 2u << k) {
    if (!goes_directly(scope, minus(self.rank, way, self.ranks))) continue;
    if (to != nullptr) put_head(to + bytes, way, 0);
    bytes += kHeadBytes;
  }
  return bytes;
}

// A packet for it, which stays from now on; or null.
Packet* take_log_packet(const Scope& scope, uint32_t k) {
  auto& [card, member, operation] = scope;
  if (!has_room_for_sent(card, member)) return nullptr;
  Packet* packet = take_for_own(card, 0);
  if (packet != nullptr) sent_block_keep(scope, packet, k, kLogNumber);
  return packet;
}

// The channel has them. False: not now.
bool write_direct_heads(const Scope& scope, uint32_t k) {
  const uint32_t bytes = put_direct_heads(scope, k, nullptr);
  if (bytes == 0) return true;
  Packet* packet = take_bounce_or_starve(scope);
  if (packet == nullptr) return false;
  StepLog& log = log_of(scope, k);
  log.bytes = static_cast<uint16_t>(put_direct_heads(scope, k, packet->payload));
  ++log.writes;
  transfer_write(scope, {.role = TransferRole::kWhole,
                         .step = kLogWritten,
                         .piece = 0,
                         .host = log_address(scope, k, 0),
                         .card = packet->payload,
                         .bytes = log.bytes,
                         .packet = packet,
                         .detail = k});
  return true;
}

// Reads it from the channel into a packet, which goes out then.
bool send_from_channel(const Scope& scope, uint32_t k, bool repair) {
  Packet* packet = take_bounce(scope.card, 1);
  if (packet == nullptr) return false;
  const Peer& to = receiver(scope, k);
  prepare_for(scope, part_of(log_of(scope, k)), place_of(scope, k), to.address, repair, packet);
  transfer_read(scope, {.role = repair ? TransferRole::kRepair : TransferRole::kSend,
                        .piece = 0,
                        .host = log_address(scope, k, 0),
                        .card = packet->payload,
                        .bytes = packet->payload_bytes,
                        .packet = packet,
                        .detail = repair ? kNoPeer : uint32_t{to.known_by}});
  return true;
}

// In a packet that shares the log's payload, which is summed once.
bool send_from_packet(const Scope& scope, uint32_t k) {
  Card& card = scope.card;
  const StepLog& log = log_of(scope, k);
  log.packet->payload_bytes = log.bytes;
  Packet* copy = share_packet(card, log.packet);
  if (copy == nullptr) return false;
  const Peer& to = receiver(scope, k);
  prepare_for(scope, part_of(log), place_of(scope, k), to.address, false, copy);
  copy->header->payload_crc = payload_sum(card, log.packet->payload, log.bytes);
  log.packet->header->payload_crc = copy->header->payload_crc;
  edge_count(scope.member.membership.peers[to.known_by], copy->header);
  launch_packet(card, copy, true);
  return true;
}

}  // namespace

HostAddress arrival_address(const Scope& scope, uint32_t k) {
  return place_address(scope, scope.member.membership.rounds + k, 0);
}

bool log_begin(const Scope& scope, uint32_t k) {
  StepLog& log = log_of(scope, k);
  log.packet = take_log_packet(scope, k);
  if (log.packet == nullptr) return write_direct_heads(scope, k);
  log.bytes = static_cast<uint16_t>(put_direct_heads(scope, k, log.packet->payload));
  return true;
}

bool log_may_grow(const Scope& scope, uint32_t k, uint32_t bytes) {
  const StepLog& log = log_of(scope, k);
  if (log.bytes + bytes > kLogBytes) {
    refuse(scope, PEAL_STATUS_DMA_FAULT, scope.member.membership.rank);
    return false;
  }
  return log.packet != nullptr || has_dma_or_starves(scope);
}

void log_append(const Scope& scope, uint32_t k, Packet* packet, uint8_t* head) {
  StepLog& log = log_of(scope, k);
  const uint32_t bytes = kHeadBytes + head_at(head).bytes;
  PEAL_ASSERT(log.bytes + bytes <= kLogBytes);
  if (log.packet != nullptr) {
    std::memcpy(log.packet->payload + log.bytes, head, bytes);
  } else {
    ++log.writes;
    transfer_write(scope, {.role = TransferRole::kWhole,
                           .step = kLogWritten,
                           .piece = 0,
                           .host = log_address(scope, k, log.bytes),
                           .card = head,
                           .bytes = bytes,
                           .packet = packet,
                           .detail = k});
  }
  log.bytes = static_cast<uint16_t>(log.bytes + bytes);
}

void log_append_own(const Scope& scope, uint32_t k, uint32_t way, const uint8_t* block,
                    uint32_t bytes) {
  StepLog& log = log_of(scope, k);
  PEAL_ASSERT(log.packet != nullptr && log.bytes + kHeadBytes + bytes <= kLogBytes);
  put_head(log.packet->payload + log.bytes, way, bytes);
  std::memcpy(log.packet->payload + log.bytes + kHeadBytes, block, bytes);
  log.bytes = static_cast<uint16_t>(log.bytes + kHeadBytes + bytes);
}

void log_written(const Scope& scope, uint32_t k) { --log_of(scope, k).writes; }

bool log_send(const Scope& scope, uint32_t k) {
  const StepLog& log = log_of(scope, k);
  if (log.packet != nullptr) return send_from_packet(scope, k);
  if (log.bytes > 0) return send_from_channel(scope, k, false);
  return send_from_image(scope, part_of(log), place_of(scope, k), peer_behind(k), false);
}

bool log_repair(const Scope& scope, uint32_t k) {
  if (!may_repair(scope.card)) return false;
  const StepLog& log = log_of(scope, k);
  const ImagePart part = part_of(log);
  if (log.packet != nullptr) {
    Packet* stays = sent_block_find(scope, k, kLogNumber);
    return stays != nullptr &&
           repair_from_packet(scope, part, stays, place_of(scope, k), peer_behind(k));
  }
  if (log.bytes > 0) return send_from_channel(scope, k, true);
  return send_from_image(scope, part, place_of(scope, k), peer_behind(k), true);
}

}  // namespace peal::bruckv
