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

Peer& receiver(const Scope& scope, uint32_t k) {
  return kept(scope.member.membership.peers[peer_behind(k)]);
}

void prepare(const Scope& scope, uint32_t k, Packet* packet) {
  auto& [card, member, operation] = scope;
  peal_wire_header* header = packet->header;
  *header = operation.pattern;
  readdress_packet(receiver(scope, k).address, header);
  header->flags = 0;
  header->piece = PEAL_PIECE_STEP;
  header->origin = member.membership.rank;
  header->hop = static_cast<uint8_t>(k);
  header->length = log_of(scope, k).bytes;
  packet->payload_bytes = header->length;
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

// A packet that shares the log's payload, or is empty.
Packet* take_copy(const Scope& scope, uint32_t k) {
  Card& card = scope.card;
  Packet* stays = sent_block_find(scope, k, kLogNumber);
  if (stays == nullptr && log_of(scope, k).bytes > 0) return nullptr;
  Packet* copy = stays != nullptr ? share_packet(card, stays) : take_packet(card);
  if (copy != nullptr) prepare(scope, k, copy);
  return copy;
}

// Reads it from the channel into a packet, which goes out then.
bool send_from_channel(const Scope& scope, uint32_t k, bool repair) {
  Packet* packet = take_bounce(scope.card, 1);
  if (packet == nullptr) return false;
  prepare(scope, k, packet);
  if (repair) packet->header->flags = PEAL_PACKET_REPAIR;
  transfer_read(scope, {.role = repair ? TransferRole::kRepair : TransferRole::kSend,
                        .piece = 0,
                        .host = log_address(scope, k, 0),
                        .card = packet->payload,
                        .bytes = packet->payload_bytes,
                        .packet = packet,
                        .detail = repair ? kNoPeer : uint32_t{receiver(scope, k).known_by}});
  return true;
}

bool lies_in_channel(const StepLog& log) { return log.packet == nullptr && log.bytes > 0; }

}  // namespace

HostAddress log_address(const Scope& scope, uint32_t k, uint32_t offset) {
  return place_address(scope, k, offset);
}

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
  Card& card = scope.card;
  StepLog& log = log_of(scope, k);
  if (lies_in_channel(log)) {
    if (!send_from_channel(scope, k, false)) return false;
  } else {
    if (log.packet != nullptr) log.packet->payload_bytes = log.bytes;
    Packet* copy = take_copy(scope, k);
    if (copy == nullptr) return false;
    edge_count(scope.member.membership.peers[receiver(scope, k).known_by], copy->header);
    launch_packet(card, copy, false);
  }
  count(card, PEAL_COUNTER_SENT_DATA);
  return true;
}

bool log_repair(const Scope& scope, uint32_t k) {
  Card& card = scope.card;
  if (!may_repair(card)) return false;
  if (lies_in_channel(log_of(scope, k))) {
    if (!send_from_channel(scope, k, true)) return false;
  } else {
    Packet* copy = take_copy(scope, k);
    if (copy == nullptr) return false;
    copy->header->flags = PEAL_PACKET_REPAIR;
    launch_packet(card, copy, false);
  }
  count(card, PEAL_COUNTER_SENT_REPAIR);
  return true;
}

}  // namespace peal::bruckv
