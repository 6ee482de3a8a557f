// SPDX-License-Identifier: BSD-2-Clause
// A packet's way through the card: frame, member, sender, then by type to the operation it belongs
// to. This is the map of the protocol; each step that refuses has a counter.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// What became of the packet, which is whole, and its sums are right. The caller keeps its use of
// it; whoever wants it longer holds it.
peal_counter receive_packet(Card& card, Packet* packet);
// The same for one of which more than that was found good, and that had to wait.
peal_counter receive_checked(Card& card, Packet* packet);

}  // namespace peal
