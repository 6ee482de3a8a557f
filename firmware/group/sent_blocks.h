// SPDX-License-Identifier: BSD-2-Clause
// What was sent and may still be asked for when the user's memory is the user's again stays in the
// packet that it was read into, or that brought it, as far as the card has packets for that: it is
// sent again from there, and needs no copy in the channel. In a direct exchange it is a block for
// one rank, in a broadcast a fragment. docs/decisions/0062, 0063
#pragma once

#include "firmware/card_types.h"

namespace peal {

// How many may stay: what the port has packets for.
void sent_blocks_init(Card& card);
// A member may have three quarters of what the others leave.
inline bool has_room_for_sent(const Card& card, const Member& member) {
  return member.sent_blocks < 3 * (card.sent_blocks_most - card.sent_blocks_held);
}
// Keeps the packet, header and all, which the card has and which holds this part of the piece:
// what is for the rank at this way, or a fragment. There is room. Henceforth it is not among the
// packets that the card holds (Card::packets_held).
void sent_block_keep(const Scope& scope, Packet* packet, uint32_t part, uint32_t number);
// The packet, or null: it does not stay.
Packet* sent_block_find(const Scope& scope, uint32_t part, uint32_t number);
// This one of the operation's, which is there, goes.
void sent_block_let_go(const Scope& scope, uint32_t part, uint32_t number);
// Nobody will ask for the operation's.
void sent_blocks_drop(Card& card, Member& member, Operation& operation);

}  // namespace peal
