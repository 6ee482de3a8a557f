// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/repair.h"

#include <cstring>

#include "firmware/base/kept.h"
#include "firmware/base/mutation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal {

bool may_repair(Card& card) {
  if (pace_repair(card.repairs, card.timeouts, card.now)) return true;
  count(card, PEAL_COUNTER_HELD_BACK_REPAIR);
  return false;
}

namespace {

// Makes the packet one for a part, addressed, and counts it as sent.
[[gnu::always_inline]] inline void prepare_for(const Scope& scope, const ImagePart& part,
                                               const DataPlace& place, const peal_peer_address& to,
                                               bool repair, Packet* packet) {
  auto& [card, member, operation] = scope;
  peal_wire_header* header = packet->header;
  address_packet(to, packet_kind(operation, PEAL_PACKET_DATA), header);
  if (repair) header->flags = PEAL_PACKET_REPAIR;
  header->piece = part.piece;
  header->origin = place.origin;
  header->hop = place.hop;
  header->fragment = place.fragment;
  header->length = static_cast<uint16_t>(part.bytes);
  packet->payload_bytes = part.bytes;
  count(card, repair ? PEAL_COUNTER_SENT_REPAIR : PEAL_COUNTER_SENT_DATA);
}

// Null (counted) when there is no packet, or no DMA record for its payload.
Packet* take_for(const Scope& scope, const ImagePart& part, const DataPlace& place,
                 const peal_peer_address& to, bool repair) {
  Packet* packet = take_bounce(scope.card, 1);
  if (packet != nullptr) prepare_for(scope, part, place, to, repair, packet);
  return packet;
}

// One whose payload is on the card, if it has any. False (counted) when there is no packet.
bool send_staged(const Scope& scope, const ImagePart& part, const DataPlace& place, uint32_t to,
                 bool repair) {
  auto& [card, member, operation] = scope;
  Packet* packet = take_packet(card);
  if (packet == nullptr) return false;
  Peer& peer = kept(member.membership.peers[to]);
  prepare_for(scope, part, place, peer.address, repair, packet);
  if (!repair) edge_count(member.membership.peers[peer.known_by], packet->header);
  if (part.bytes > 0) {
    std::memcpy(packet->payload, staging_address(member, operation, part.position, part.offset),
                part.bytes);
  }
  launch_packet(card, packet, false);
  return true;
}

}  // namespace

bool send_from_image(const Scope& scope, const ImagePart& part, const DataPlace& place, uint32_t to,
                     bool repair) {
  auto& [card, member, operation] = scope;
  if (is_staged(operation) || part.bytes == 0) {
    return send_staged(scope, part, place, to, repair);
  }
  const Peer& peer = kept(member.membership.peers[to]);
  Packet* packet = take_for(scope, part, place, peer.address, repair);
  if (packet == nullptr) return false;
  HostAddress from = image_address(member, operation, part.piece, part.position, part.offset);
  if (mutated(Mutation::kNoRetention) && repair && operation.command.operation != 0) {
    from = own_address(operation, part.piece);
  }
  transfer_read(scope, {.role = repair ? TransferRole::kRepair : TransferRole::kSend,
                        .piece = part.piece,
                        .host = from,
                        .card = packet->payload,
                        .bytes = part.bytes,
                        .packet = packet,
                        .detail = peer.known_by});
  return true;
}

bool repair_from_user(const Scope& scope, const ImagePart& part, const DataPlace& place,
                      uint32_t to) {
  Packet* packet = take_for(scope, part, place, scope.member.membership.peers[to].address, true);
  if (packet == nullptr) return false;
  transfer_read(scope, {.role = TransferRole::kRepairOwn,
                        .piece = part.piece,
                        .host = user_address(scope.operation, part.position, part.piece),
                        .card = packet->payload,
                        .bytes = part.bytes,
                        .packet = packet,
                        .detail = kNoPeer});
  return true;
}

}  // namespace peal
