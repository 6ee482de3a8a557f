// SPDX-License-Identifier: BSD-2-Clause
// One block that all get, once read, stays at hand in its packet until everybody has got it, as far
// as a share of the card's buffers allows: who posts late then costs no read of its own, and a
// block is read once for all who may have it. docs/decisions/0055
#pragma once

#include "firmware/card_types.h"

namespace peal {

// How many may stay: a sixteenth of what the card has for everything.
void at_hand_init(Card& card);
// The operation's piece, or null: it must be read.
const AtHand* at_hand_find(const Scope& scope, uint32_t number);
// Keeps the packet, which so many ranks have not got, if there is room.
void at_hand_keep(const Scope& scope, Packet* packet, uint32_t number, uint32_t payload_crc,
                  uint32_t lacking);
// One more has got it; the last one lets it go.
void at_hand_given(const Scope& scope, uint32_t number);
// Nobody will want the operation's.
void at_hand_drop(const Scope& scope);

}  // namespace peal
