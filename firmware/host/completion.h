// SPDX-License-Identifier: BSD-2-Clause
// Completions: the one entry by which the host learns how a submission ended.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// Ends a command that was accepted: its keys and its place among the outstanding are free again. No
// entry where nobody listens any more.
void complete_command(Card& card, const Member& member, const Command& command, peal_status status,
                      Rank rank);
// Ends a submission that was not accepted.
void complete_refused(Card& card, ContextId context, const peal_submission& entry,
                      peal_status status);

}  // namespace peal
