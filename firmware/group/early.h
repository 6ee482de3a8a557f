// SPDX-License-Identifier: BSD-2-Clause
// Blocks that come before the host has posted wait in the packets that brought them, as many as a
// share of the card's buffers allows, and go to the user when it has: without a way through the
// channel, which is a write and a read more. docs/decisions/0018
#pragma once

#include "firmware/card_types.h"

namespace peal {

// How many may wait on the card: an eighth of what it has for everything.
void early_init(Card& card);
// Keeps the packet, which brought this block. False: no room.
[[nodiscard]] bool early_keep(const Scope& scope, Packet* packet, uint32_t number, Rank origin);
inline bool early_waits(const Operation& operation) { return operation.early_count != 0; }
// The one that came first of those that wait; the packet is its alone to give back.
const EarlyPacket& early_first(const Card& card, const Operation& operation);
void early_pop(Card& card, Operation& operation);
// Behind all others of its operation: its place is not free yet.
void early_put_back(Card& card, Operation& operation);
// Nobody will want them.
void early_drop(Card& card, Operation& operation);

}  // namespace peal
