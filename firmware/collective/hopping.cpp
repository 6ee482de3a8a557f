// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/hopping.h"

#include "firmware/base/kept.h"
#include "firmware/operation/operation.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal::hopping {

void describe(const Card& card, Packet* packet, uint32_t piece, Rank origin, uint32_t fragment,
              uint32_t length) {
  peal_wire_header* header = packet->header;
  header->piece = piece;
  header->origin = static_cast<uint16_t>(origin);
  header->fragment = static_cast<uint8_t>(fragment);
  header->length = static_cast<uint16_t>(length);
  header->payload_crc = payload_sum(card, packet->payload, length);
}

namespace {

// Sends a copy over this hop; without a packet for it its receiver finds that it is missing. (What
// the scope names is asked for anew for each copy: so the port's calls find nothing of it in
// registers that had to be saved.)
[[gnu::always_inline]] inline void send_copy(const Scope& scope, Packet* packet, uint32_t own,
                                             uint32_t hop) {
  Card& card = scope.card;
  Packet* copy = share_packet(card, packet);
  Peer& child = kept(scope.member.membership.peers[peer_ahead(hop)]);
  if (copy == nullptr) return edge_skip(child);
  const peal_wire_header& came = *packet->header;
  peal_wire_header* header = copy->header;
  *header = scope.operation.pattern;
  header->payload_crc = came.payload_crc;
  header->piece = came.piece;
  header->origin = came.origin;
  header->hop = static_cast<uint8_t>(hop);
  header->fragment = came.fragment;
  header->length = came.length;
  readdress_packet(child.address, header);
  edge_count(child, header);
  count(card, PEAL_COUNTER_SENT_DATA);
  count(card, PEAL_COUNTER_FORWARDED, own != 0 ? 1 : 0);
  launch_packet(card, copy, true);
}

}  // namespace

void send_down(const Scope& scope, Packet* packet, uint32_t own, uint32_t hop) {
  do {
    send_copy(scope, packet, own, hop);
  } while (own + (1u << ++hop) < scope.member.membership.ranks);
}

void forward_over(const Scope& scope, Packet* packet, uint32_t hops) {
  const Membership& self = scope.member.membership;
  const uint32_t own = place(self.rank, packet->header->origin, self.ranks);
  for (uint32_t hop = first_leaving_hop(own); own + (1u << hop) < self.ranks; ++hop) {
    if ((hops >> hop & 1) != 0) send_copy(scope, packet, own, hop);
  }
}

}  // namespace peal::hopping
