// SPDX-License-Identifier: BSD-2-Clause
// Blocks whose place in the user's memory is not known yet (the host has not posted) or not free
// yet (in place, what lies there is still to be sent) wait in the packets that brought them, as
// many as a share of the card's buffers allows, and go to the user without a way through the
// channel, which is a write and a read more. (A broadcast's fragments, whose origin is the number
// of the fragment, are sent again from there, too.) docs/decisions/0018, 0063
#pragma once

#include "firmware/card_types.h"

namespace peal {

// How many may wait on the card: an eighth of what it has for everything.
void early_init(Card& card);
// Keeps the packet, which brought this block of an open piece. False: no room.
[[nodiscard]] bool early_keep(const Scope& scope, Packet* packet, Piece& piece, Rank origin);
inline bool early_waits(const Operation& operation) { return operation.early_count != 0; }
// The one that came first of the piece's that wait; the packet is its alone to give back.
const EarlyPacket& early_first(const Card& card, const Piece& piece);
// The packet that brought this block of the piece, while it waits; else null.
Packet* early_find(const Card& card, const Piece& piece, Rank origin);
void early_pop(Card& card, Operation& operation, Piece& piece);
// Behind all others of its piece: its place is not free yet.
void early_put_back(Card& card, Piece& piece);
// Nobody will want them.
void early_drop(Card& card, Operation& operation);

}  // namespace peal
