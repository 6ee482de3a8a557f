// SPDX-License-Identifier: BSD-2-Clause
// From a checked command to the start of its operation: at once, or parked until its turn.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// Runs it, parks it, or refuses it (TOO_MANY). Takes the uses of its keys.
peal_status accept_command(Card& card, Member& member, Command& command);
// Starts the oldest parked command if it may start now. False: there is none.
bool start_parked(Card& card, Member& member);
// Parked commands end with this status; a destroy among them only when nothing runs any more, and
// with it the member.
void fail_parked(Card& card, Member& member, peal_status status, Rank rank);

}  // namespace peal
