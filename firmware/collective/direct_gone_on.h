// SPDX-License-Identifier: BSD-2-Clause
// Whose blocks of a later operation come has sent all blocks of those that it is over with: what
// has not come of them is lost. docs/decisions/0076
#pragma once

#include "firmware/card_types.h"

namespace peal::direct {

// What was asked for at once has come after all, and not again.
void note_overtaken(Member& member);
// The first block of this operation has come from there, which this rank's host has not posted.
void note_gone_on(const Scope& scope, uint32_t way);

}  // namespace peal::direct
