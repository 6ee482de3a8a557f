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
  // The headers differ in where they go, and by which hop.
  peal_wire_header header;
  address_packet(card, self, self.peers[peer_ahead(hop)].address,
                 packet_kind(operation, PEAL_PACKET_DATA), &header);
  header.piece = what.piece;
  header.origin = static_cast<uint16_t>(what.origin);
  header.fragment = what.fragment;
  header.length = what.length;
  header.payload_crc =
      summed ? packet->header->payload_crc : payload_sum(card, packet->payload, what.length);
  for (; own + (1u << hop) < self.ranks; ++hop) {
    Peer& child = self.peers[peer_ahead(hop)];
    Packet* copy = share_packet(card, packet);
    if (copy == nullptr) {  // its receiver finds that it is missing
      edge_skip(child);
      continue;
    }
    *copy->header = header;
    readdress_packet(child.address, copy->header);
    copy->header->hop = static_cast<uint8_t>(hop);
    edge_count(child, copy->header);
    launch_packet(card, copy, true);
    count(card, PEAL_COUNTER_SENT_DATA);
    if (own != 0) count(card, PEAL_COUNTER_FORWARDED);
  }
}

}  // namespace peal::hopping
