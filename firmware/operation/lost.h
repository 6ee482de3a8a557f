// SPDX-License-Identifier: BSD-2-Clause
// A gap in what a peer has sent (wire/edge.h): what was lost is asked for at once.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// Of the operations from this sequence number on that lack something of this peer (its entry) the
// oldest asks for it; if none does, recycling. `shown_by`: the packet whose number shows the gap,
// or the answer, "not yet" or what has come meanwhile, which says that what is lost was another
// operation's.
void ask_for_lost(Card& card, Member& member, uint32_t entry, const peal_wire_header& shown_by,
                  uint64_t first);

}  // namespace peal
