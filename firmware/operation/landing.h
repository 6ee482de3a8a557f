// SPDX-License-Identifier: BSD-2-Clause
// Blocks that wait in the packets that brought them (group/early.h) go to the user once there is
// room for them there.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// May the origin's block of the piece be written to the user now? The host has posted.
using IsFree = bool (*)(const Scope& scope, const Piece& piece, Rank origin);

// Where in the user's memory it goes.
using PlaceOf = HostAddress (*)(const Scope& scope, uint32_t number, Rank origin);

// As many as may be under way; earlier pieces first, since the window waits for them. `step` is
// where the transfers go on.
void land_early(const Scope& scope, uint8_t step, IsFree is_free, PlaceOf place_of);

}  // namespace peal
