// SPDX-License-Identifier: BSD-2-Clause
// A rank's puts to itself: no packets, as nothing leaves the card, but a read and a write of each
// chunk. In their order, one of a member's at a time, so that whoever is told of one knows that
// those before it are in memory: one that fails stays the first until its iteration is known to
// have failed. Each chunk is checked as the owner of memory checks a packet.
#pragma once

#include "firmware/card_types.h"
#include "firmware/dma/dma.h"

namespace peal::p2p {

void start_copy(Card& card, Member& member, Request& put);
// The next chunks of the member's, and what is over.
void go_on_copying(Card& card, Member& member);
void on_copied_in(Card& card, const DmaDone& done);
void on_copied_out(Card& card, const DmaDone& done);

}  // namespace peal::p2p
