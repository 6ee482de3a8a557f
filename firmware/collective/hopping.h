// SPDX-License-Identifier: BSD-2-Clause
// Hopping packets, from one origin or from all (allgather paper, section 4.1.2).
#pragma once

#include <cstdint>

#include "firmware/base/hops.h"
#include "firmware/card_types.h"

namespace peal::hopping {

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
