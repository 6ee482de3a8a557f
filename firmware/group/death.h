// SPDX-License-Identifier: BSD-2-Clause
// A death poisons the group for good. It is flooded once over the 2⌈log2 N⌉ peers, and told again
// to whoever still asks, so that a lost flood needs no acknowledgement.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// `dead` died: tells the peers; everything of this member ends with PEER_DEAD. Idempotent.
void poison(Card& card, Member& member, Rank dead);
// Names the dead to one peer.
void tell_death(Card& card, const Membership& self, const peal_peer_address& to);

}  // namespace peal
