// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/hopping.h"

#include "firmware/operation/operation.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal::hopping {

void forward(const Scope& scope, Packet* packet, const Carried& what, bool summed) {
  auto& [card, member, operation] = scope;
  Membership& self = member.membership;
  const uint32_t own = place(self.rank, what.origin, self.ranks);
  uint32_t hop = first_leaving_hop(own);
  if (own + (1u << hop) >= self.ranks) return;
  const PacketKind kind = packet_kind(operation, PEAL_PACKET_DATA);
  const uint32_t sum =
      summed ? packet->header->payload_crc : payload_sum(card, packet->payload, what.length);
  for (; own + (1u << hop) < self.ranks; ++hop) {
    Peer& child = self.peers[peer_ahead(hop)];
    Packet* copy = share_packet(card, packet);
    if (copy == nullptr) {  // its receiver finds that it is missing
      edge_skip(child);
      continue;
    }
    peal_wire_header* header = copy->header;
    address_packet(child.address, kind, header);
    header->payload_crc = sum;
    header->piece = what.piece;
    header->origin = static_cast<uint16_t>(what.origin);
    header->hop = static_cast<uint8_t>(hop);
    header->fragment = what.fragment;
    header->length = what.length;
    edge_count(child, header);
    launch_packet(card, copy, true);
    count(card, PEAL_COUNTER_SENT_DATA);
    if (own != 0) count(card, PEAL_COUNTER_FORWARDED);
  }
}

}  // namespace peal::hopping
