// SPDX-License-Identifier: BSD-2-Clause
// From an entry to the start of its operation: at once, or parked until its turn.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// Runs what the entry asks for, parks it, or says why not.
peal_status accept_entry(Card& card, ContextId context, const peal_submission& entry);
// Starts the oldest parked command if it may start now. False: there is none.
bool start_parked(Card& card, Member& member);
// Parked commands end with this status; a destroy among them only when nothing runs any more, and
// with it the member.
void fail_parked(Card& card, Member& member, peal_status status, Rank rank);

}  // namespace peal
