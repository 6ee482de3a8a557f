// SPDX-License-Identifier: BSD-2-Clause
// Messages behind those that nobody wants. A sender announces as many as there are places; where
// messages without a receive have taken all of them, the receiver says which tags it waits for, and
// the sender announces the first message of one of these out of its turn. Nothing of a question is
// kept on either side: it goes with a new receive, with what takes the last place, and with the
// answer to a sender who asks for room.
#pragma once

#include "firmware/card_types.h"

namespace peal::p2p {

// Asks for what this new receive waits for; nothing where the sender may announce more anyway.
void seek(Card& card, Connection& connection, const Request& receive);
// For what the receives wait for, a few tags at a time and in turn.
void seek(Card& card, Connection& connection);
// The counter by which it is accounted for.
peal_counter on_seek(Card& card, Connection& connection, const peal_wire_header& header,
                     const peal_p2p_seek& body);

}  // namespace peal::p2p
