// SPDX-License-Identifier: BSD-2-Clause
// Data from an image: from staging while it is held, else from what the channel retains. From the
// user's buffers only as long as the operation is not over: then they are the user's again. Repairs
// are bounded for the card as a whole.
#pragma once

#include "firmware/base/kept.h"
#include "firmware/card_types.h"
#include "firmware/operation/layout.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal {

// May the card send one repair now? Counted when not; its receiver asks again.
[[nodiscard]] bool may_repair(Card& card);

// A stretch of a piece's image.
struct ImagePart {
  uint32_t piece;
  uint32_t position;
  uint32_t offset;  // bytes behind the beginning of the position
  uint32_t bytes;
};

// Where its packet's header says it belongs.
struct DataPlace {
  uint16_t origin;
  uint8_t hop;
  uint8_t fragment;
};

// Makes the packet one for a part, addressed, and counts it as sent.
[[gnu::always_inline]] inline void prepare_for(const Scope& scope, const ImagePart& part,
                                               const DataPlace& place, const peal_peer_address& to,
                                               bool repair, Packet* packet) {
  peal_wire_header* header = packet->header;
  *header = scope.operation.pattern;  // which is of data
  readdress_packet(to, header);
  if (repair) header->flags = PEAL_PACKET_REPAIR;
  header->piece = part.piece;
  header->origin = place.origin;
  header->hop = place.hop;
  header->fragment = place.fragment;
  header->length = static_cast<uint16_t>(part.bytes);
  packet->payload_bytes = part.bytes;
  count(scope.card, repair ? PEAL_COUNTER_SENT_REPAIR : PEAL_COUNTER_SENT_DATA);
}

// Sends a part that lies in staging, or is empty, in the packet.
[[gnu::always_inline]] inline void send_staged(const Scope& scope, const ImagePart& part,
                                               const DataPlace& place, uint32_t to, bool repair,
                                               Packet* packet) {
  auto& [card, member, operation] = scope;
  Peer& peer = kept(member.membership.peers[to]);
  prepare_for(scope, part, place, peer.address, repair, packet);
  if (!repair) edge_count(member.membership.peers[peer.known_by], packet->header);
  if (part.bytes > 0) {
    std::memcpy(packet->payload, staging_address(member, operation, part.position, part.offset),
                opaque(part.bytes));
  }
  launch_packet(scope.card, packet, false);
}

// Sends a part to a peer (its entry), the first time or again. False (counted) when a packet or DMA
// record could not be had.
bool send_from_image(const Scope& scope, const ImagePart& part, const DataPlace& place, uint32_t to,
                     bool repair);

// Sends a part again that lies in a packet, which stays or waits (group/sent_blocks.h, early.h): no
// transfer. False (counted) when a packet could not be had.
bool repair_from_packet(const Scope& scope, const ImagePart& part, Packet* from,
                        const DataPlace& place, uint32_t to);

// Sends a part again that lies in the user's memory, which is the card's as long as the operation
// waits for this. Not empty. False when a packet or DMA record could not be had.
bool repair_from_user(const Scope& scope, const ImagePart& part, HostAddress from,
                      const DataPlace& place, uint32_t to);

}  // namespace peal
