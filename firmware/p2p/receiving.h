// SPDX-License-Identifier: BSD-2-Clause
// What comes by a connection: each number once. Bytes go to memory in the order in which they
// come; what is to be carried out in order waits to be sent again where something before it is
// missing. A number is acknowledged when its bytes are in memory. What cannot be carried out is
// refused as often as it comes, until its sender gives its number to a SKIP: so nothing need be
// remembered, and a lost refusal is told again.
#pragma once

#include "firmware/card_types.h"
#include "firmware/dma/dma.h"
#include "firmware/p2p/connection.h"

namespace peal::p2p {

// A PUT, as most packets are, by a connection where something has been heard; its header was found
// to be what those of that connection are.
peal_counter on_usual_put(Card& card, Connection& connection, Packet* packet);
// A packet with a number.
peal_counter on_numbered(Card& card, Connection& connection, Packet* packet);
// Bytes of one are in memory, or cannot be.
void on_landed(Card& card, const DmaDone& done);

}  // namespace peal::p2p
