// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/repair.h"

#include "firmware/base/kept.h"
#include "firmware/base/mutation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/transmit.h"

namespace peal {

bool may_repair(Card& card) {
  if (pace_repair(card.repairs, card.timeouts, card.now)) return true;
  count(card, PEAL_COUNTER_HELD_BACK_REPAIR);
  return false;
}

namespace {

// Null (counted) when there is no packet, or no DMA record for its payload.
Packet* take_for(const Scope& scope, const ImagePart& part, const DataPlace& place,
                 const peal_peer_address& to, bool repair) {
  Packet* packet = take_bounce(scope.card, 1);
  if (packet != nullptr) prepare_for(scope, part, place, to, repair, packet);
  return packet;
}

}  // namespace

bool send_from_image(const Scope& scope, const ImagePart& part, const DataPlace& place, uint32_t to,
                     bool repair) {
  auto& [card, member, operation] = scope;
  if (is_staged(operation) || part.bytes == 0) {
    Packet* packet = take_packet(card);
    if (packet != nullptr) send_staged(scope, part, place, to, repair, packet);
    return packet != nullptr;
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

bool repair_from_packet(const Scope& scope, const ImagePart& part, Packet* from,
                        const DataPlace& place, uint32_t to) {
  Card& card = scope.card;
  Packet* packet = share_packet(card, from);
  if (packet == nullptr) return false;
  prepare_for(scope, part, place, scope.member.membership.peers[to].address, true, packet);
  packet->header->payload_crc = from->header->payload_crc;
  launch_packet(card, packet, true);
  return true;
}

bool repair_from_user(const Scope& scope, const ImagePart& part, HostAddress from,
                      const DataPlace& place, uint32_t to) {
  Packet* packet = take_for(scope, part, place, scope.member.membership.peers[to].address, true);
  if (packet == nullptr) return false;
  transfer_read(scope, {.role = TransferRole::kRepairOwn,
                        .piece = part.piece,
                        .host = from,
                        .card = packet->payload,
                        .bytes = part.bytes,
                        .packet = packet,
                        .detail = kNoPeer});
  return true;
}

}  // namespace peal
