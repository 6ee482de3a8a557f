// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/repair.h"

#include <cstring>

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

bool send_from_image(const Scope& scope, const ImagePart& part, const DataPlace& place,
                     const peal_peer_address& to, bool repair) {
  auto& [card, member, operation] = scope;
  Membership& self = member.membership;
  const uint32_t entry = peer_entry(self.rank, to.rank, self.ranks);
  Packet* packet = take_bounce(card, 1);
  if (packet == nullptr) return false;
  address_packet(to, packet_kind(operation, PEAL_PACKET_DATA), packet->header);
  if (repair) packet->header->flags = PEAL_PACKET_REPAIR;
  packet->header->piece = part.piece;
  packet->header->origin = place.origin;
  packet->header->hop = place.hop;
  packet->header->fragment = place.fragment;
  packet->header->length = static_cast<uint16_t>(part.bytes);
  packet->payload_bytes = part.bytes;
  count(card, repair ? PEAL_COUNTER_SENT_REPAIR : PEAL_COUNTER_SENT_DATA);
  if (is_staged(operation) || part.bytes == 0) {
    if (part.bytes > 0) {
      std::memcpy(packet->payload, staging_address(member, operation, part.position, part.offset),
                  part.bytes);
    }
    if (!repair && entry != kNoPeer) edge_count(self.peers[entry], packet->header);
    launch_packet(card, packet, false);
    return true;
  }
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
                        .detail = entry});
  return true;
}

}  // namespace peal
