// SPDX-License-Identifier: BSD-2-Clause
// Ranks that are no peers. An algorithm that talks to everybody needs all addresses of its group; a
// member has those of its 2⌈log2 N⌉ peers, the others lie in a table in host memory, by rank. They
// are read by DMA in runs of neighbours, before they are needed: a direct exchange goes through the
// ranks in order. Whatever needs an address that is not there yet waits for it. All are remembered:
// in a group that is too large for that, nobody may talk to everybody.
//
// The table is the host's word. It says where to send, and by whose identity to know a packet; a
// rank whose table lies is not heard by those it lies about, and hears strangers: it spoils its own
// results, nobody else's. docs/decisions/0017
#pragma once

#include "abi/admin.h"
#include "firmware/card_types.h"
#include "firmware/dma/dma.h"
#include "firmware/wire/transmit.h"

namespace peal {

// In the masks of an inquiry, all ranks that are no peers together (an entry that no peer has).
inline constexpr uint32_t kRemoteEntry = 31;
static_assert(kPeersMax <= kRemoteEntry + 1);
// Of 65,536 ranks the peer of the last entry is that of the one before, which stands for it; of a
// few less it is another, and the masks have no bit for it.
constexpr bool masks_have_room(uint32_t ranks) {
  return ranks <= 1u << (kRemoteEntry / 2) || is_repeated_entry(kRemoteEntry, ranks);
}

// May the member talk to everybody?
inline bool knows_everybody(const Member& member) {
  const uint32_t ranks = member.membership.ranks;
  if (peal_all_are_peers(ranks) != 0) return true;
  return member.remote.key != 0 && peal_may_talk_to_all(ranks, CONFIG_REMEMBERED_ADDRESSES) != 0;
}

// The table of a member that is connected: OK (also without one), or why not.
peal_status take_address_table(Card& card, Member& member, uint32_t key, uint64_t offset);
// It is needed no more, once what is being read has come.
void leave_address_table(Card& card, Member& member);

// The address of a rank that is no peer, where it is remembered; else null.
const peal_peer_address* remembered_address(Member& member, Rank rank);
// The same; what is not remembered is read.
const peal_peer_address* find_remote_address(Card& card, Member& member, Rank rank);
// Where the rank with this entry in the table of peers (or kNoPeer) lives: there, or a remembered
// address. Null: not now; it is being read, if that is possible, and whoever waits for it goes on
// when it has come (take_addresses()).
inline const peal_peer_address* find_address(Card& card, Member& member, Rank rank,
                                             uint32_t entry) {
  if (entry != kNoPeer) return &member.membership.peers[entry].address;
  return find_remote_address(card, member, rank);
}
const peal_peer_address* find_address(Card& card, Member& member, Rank rank);

// Everybody will be talked to: reads what can be remembered.
void expect_addresses(Card& card, Member& member);

// Keeps a packet until the rank's address has come: one that arrived (and is received then), or one
// that leaves, whose header lacks nothing but where it goes. False: there is no place.
[[nodiscard]] bool wait_for_address(Card& card, Member& member, Packet* packet, Rank rank,
                                    bool leaves);

// A packet without payload, or with a small one, to any rank; it may wait for the address. False
// (counted) when there is no packet or no place.
bool send_small_to(Card& card, Member& member, Rank to, const PacketKind& kind,
                   const SmallPacket& what);

// Addresses have been read: what waited to leave leaves. False: they could not be read, or are no
// table of this group's; what waited for them is given up.
[[nodiscard]] bool take_addresses(Card& card, const DmaDone& done);
// A packet that arrived and waited for what take_addresses() took; null when there are no more. It
// is still held.
Packet* take_awaited_packet(Member& member, const DmaDone& done);

}  // namespace peal
