// SPDX-License-Identifier: BSD-2-Clause
// Dissemination: in round k a member signals rank + 2^k and waits for rank - 2^k. Barrier, destroy
// and recycling are this one mechanism; it says that everybody has entered, in N ⌈log2 N⌉ packets
// and no acknowledgement.
#pragma once

#include "firmware/card_types.h"
#include "firmware/wire/transmit.h"

namespace peal {

// Sends the signals whose rounds are reached, and sets complete. False when a packet could not be
// had.
bool dissemination_send(Card& card, const Membership& self, Dissemination& state,
                        const PacketKind& kind);
// Everybody is known to have entered: all remaining signals may go.
bool dissemination_prove(Card& card, const Membership& self, Dissemination& state,
                         const PacketKind& kind);
// A signal of this round arrived. False: a duplicate.
bool dissemination_signal(Dissemination& state, uint32_t round);
// Asks for the lowest round that is missing; the later ones wait for it anyway.
void dissemination_chase(Card& card, Member& member, const Dissemination& state,
                         const PacketKind& nack);
// Sends the signal of a round again, to the peer that asked.
void dissemination_repair(Card& card, const Membership& self, const peal_peer_address& to,
                          PacketKind kind, uint32_t round);

}  // namespace peal
