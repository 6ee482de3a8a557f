// SPDX-License-Identifier: BSD-2-Clause
// Hopping packets, from one origin or from all (allgather paper, section 4.1.2), in the modulo form
// of docs/decisions/0002: with r = (rank - origin) mod N, the receiver of a hop 2^j forwards to r +
// 2^(j+1), r + 2^(j+2), … while below N. So the hop that reaches r is its highest bit, and its
// parent is r without that bit.
#pragma once

#include <bit>
#include <cstdint>

#include "firmware/card_types.h"

namespace peal::hopping {

// Place of a rank in the origin's tree; 0 is the origin.
constexpr uint32_t place(Rank rank, Rank origin, uint32_t ranks) {
  return minus(rank, origin, ranks);
}
// Log distance of the hop that reaches a place >= 1; its parent is 2^that ranks behind.
constexpr uint32_t arriving_hop(uint32_t place) { return floor_log2(place); }
// Log distance of the first hop that leaves a place.
// The next one leaves while place + 2^hop < ranks.
constexpr uint32_t first_leaving_hop(uint32_t place) {
  return static_cast<uint32_t>(std::bit_width(place));
}

// Makes the header of a packet that this rank begins with say what it carries.
void describe(const Card& card, Packet* packet, uint32_t piece, Rank origin, uint32_t fragment,
              uint32_t length);

// Sends the payload on to every place below `own` from this hop on, by which there is one: one
// header each, one payload for all.
void send_down(const Scope& scope, Packet* packet, uint32_t own, uint32_t hop);

// Sends it on to every place below this rank's (`own`) in its origin's tree; `hop` is the first
// that leaves. The packet's header says whose it is, and which piece of it.
inline void forward_from(const Scope& scope, Packet* packet, uint32_t own, uint32_t hop) {
  if (own + (1u << hop) < scope.member.membership.ranks) send_down(scope, packet, own, hop);
}
inline void forward(const Scope& scope, Packet* packet) {
  const Membership& self = scope.member.membership;
  const uint32_t own = place(self.rank, packet->header->origin, self.ranks);
  forward_from(scope, packet, own, first_leaving_hop(own));
}
// The same over these hops alone, a bit each.
void forward_over(const Scope& scope, Packet* packet, uint32_t hops);

}  // namespace peal::hopping
