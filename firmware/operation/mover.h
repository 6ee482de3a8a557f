// SPDX-License-Identifier: BSD-2-Clause
// The mover copies blocks from an image in the channel to the user's buffer, in runs through bounce
// packets: data that came before the host's post, and results too large for staging.
#pragma once

#include "firmware/card_types.h"
#include "firmware/operation/algorithm.h"

namespace peal::mover {

// What an algorithm wants of it.
struct Plan {
  // Must the block at this position of the piece's image be copied?
  bool (*wanted)(const Scope& scope, uint32_t piece, uint32_t position);
  // Whose block lies there?
  Rank (*rank_at)(const Membership& self, uint32_t position);
  // The last run of a piece has left (operation.mover.in_flight says which have landed). True: goes
  // on with what operation.mover says now; false: waits, or is done.
  bool (*piece_ended)(const Scope& scope);
  uint8_t read_step;  // steps of its transfers, which the algorithm hands back to it
  uint8_t write_step;
};

void start(Operation& operation, uint32_t first_piece);
// Goes on; at most a few runs are under way at once.
void advance(const Scope& scope, const Plan& plan);
// Has the mover passed this block, so that what comes now may go straight to the user?
bool is_past(const Operation& operation, uint32_t piece, uint32_t position);

// A transfer with read_step, write_step is done.
void on_read(const Scope& scope, const Plan& plan, const TransferDone& done);
void on_written(const Scope& scope);

}  // namespace peal::mover
