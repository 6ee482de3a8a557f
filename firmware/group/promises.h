// SPDX-License-Identifier: BSD-2-Clause
// What a rank says of an edge when it answers "not yet", that all that it has sent has come, is
// taken for true until something comes (inquiry.h). If what is sent then is lost, and nothing
// follows it, the asker waits for as long as it believes in lateness. So where packets are lost,
// whoever has promised, has sent something since and then nothing for a while says how many packets
// there have been now (ALIVE): a tail loss probe (RFC 8985, section 7), but only to those who
// believe. docs/decisions/0080
#pragma once

#include "firmware/card_types.h"

namespace peal {

// This rank was told "not yet" about the operation. (One that is no peer has no edge that could be
// told of: nothing is noted.)
void note_promise(Card& card, Member& member, const Operation& operation, Rank to);
// Says what is to be said; returns when to look again. By the member's timer.
TimeNs keep_promises(Card& card, Member& member);

}  // namespace peal
