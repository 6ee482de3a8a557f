// SPDX-License-Identifier: BSD-2-Clause
// The mover copies blocks from an image in the channel to the user's buffer, in runs through bounce
// packets. All-to-all broadcast needs it for data that came before the host's post; doubling for
// results too large for staging.
#pragma once

#include "firmware/card_types.h"

namespace peal::mover {

void start(Operation& operation, uint32_t first_piece);
// Goes on; at most a few runs are under way at once.
void advance(const Scope& scope);
// All-to-all broadcast: has the mover passed this block, so that later data may go straight to the
// user?
bool is_past(const Operation& operation, uint32_t piece, Rank origin);

void on_read(const Scope& scope, DmaRecord& record);
void on_written(const Scope& scope);

}  // namespace peal::mover
