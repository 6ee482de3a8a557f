// SPDX-License-Identifier: BSD-2-Clause
// The way of a usual packet (receive.cpp): it is known to be what its operation's pattern says, so
// it goes straight to the algorithm. What is rare on that way is here, once for all algorithms.
#pragma once

#include "firmware/base/kept.h"
#include "firmware/card_types.h"

namespace peal {

// Of a peer with this entry: the packet's identity is its sender's. Else null.
inline Peer* checked_peer(Membership& self, const peal_wire_header& header, uint32_t entry) {
  Peer& peer = kept(self.peers[entry]);
  return header.identity == peer.identity ? &peer : nullptr;
}
// The peer that sent it, or null.
Peer* find_sender(Membership& self, const peal_wire_header& header);

// What the edge says that the packet came by. What was dropped is lost, too.
void listen_to_edge(Card& card, Member& member, uint32_t entry, const peal_wire_header& header,
                    peal_counter result);

// What a packet brought forward goes on; what could not be taken is asked for again.
peal_counter go_on(const Scope& scope, uint32_t entry, peal_counter result);

// One that is not the next of its edge. (The usual one: on_usual_packet(), algorithm.h.)
peal_counter on_usual_behind_a_gap(Card& card, Member& member, Operation& operation, Packet* packet,
                                   Peer& peer);

}  // namespace peal
