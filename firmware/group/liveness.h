// SPDX-License-Identifier: BSD-2-Clause
// Who is alive. A peer that owes us something is awaited; it is probed at an interval until
// anything is heard from it, and dead after the configured silence. Lateness is never death: a card
// answers probes whatever its host does.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// This rank owes us something. Of those that are no peers a few are watched at a time, by turns:
// who answers gives its place to the next, and all have had one within a quarter of the time after
// which a silent one is dead, unless there are so many that one probe of each takes longer.
// docs/decisions/0088
void await_peer(Card& card, Member& member, Rank rank);
// Whoever waits for ranks that may be no peers says so of all of them this often, at least, in the
// time after which a silent one is dead: those that nobody names are forgotten earlier.
inline constexpr uint32_t kLooksPerDeath = 4;
// Anything valid arrived from it.
inline void hear_peer(Peer& peer) { peer.awaited_since_ns = 0; }
// The same, from a rank that is no peer.
void hear_watched(Member& member, Rank rank);
inline void hear_remote(Member& member, Rank rank) {
  if (member.watches) hear_watched(member, rank);
}
// Tells one that this member lives and, a peer, how many packets of their edge there have been.
// False (counted) when there was no packet.
bool say_alive(Card& card, const Membership& self, const peal_peer_address& to);
// The card itself stood still for this long: answers may wait unread, so nobody is blamed for it.
void forgive_stall(Card& card, TimeNs late_ns);
// Probes who is due; suspects who was silent too long. Returns when to look again, kNever if nobody
// is awaited. May poison the member.
TimeNs watch_peers(Card& card, Member& member);

}  // namespace peal
