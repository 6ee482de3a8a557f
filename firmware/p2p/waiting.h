// SPDX-License-Identifier: BSD-2-Clause
// More want a connection than there are: own requests and other ranks wait in two queues, which
// are served in turn, each in order. A connection that was quiet for a while gives way at once;
// one that has had its turn (kTurnPackets, or a longest NACK interval) drains and gives way. So
// who waits behind n others is served after at most n turns divided by the connections,
// whatever they do.
#pragma once

#include "firmware/card_types.h"
#include "firmware/p2p/connection.h"

namespace peal::p2p {

// For a connection.
inline bool anybody_waits(const State& state) {
  return state.wanting.first != 0 || state.waiter_count != 0;
}

// Packets that a connection carries, both ways, before it must give way: enough to announce what
// there are places for, and to be asked for what is behind it (seeking.h).
inline constexpr uint32_t kTurnPackets = 4 * kWindow + kPlaces;

peal_counter accept_or_wait(Card& card, Member& member, const Waiter& asker);
// A connection has had its turn.
[[gnu::cold]] void note_turn(Card& card);
// One more packet of this connection.
inline void count_packet(Card& card, Connection& connection) {
  connection.used_ns = card.now;
  if (++connection.packets == kTurnPackets) note_turn(card);
}
// Gives out what is free; where nothing is, somebody gives way.
void serve_waiting(Card& card);
// Those of a member that is leaving.
void forget_waiters(Card& card, const Member& member);

}  // namespace peal::p2p
