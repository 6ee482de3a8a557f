// SPDX-License-Identifier: BSD-2-Clause
// The mover copies blocks from an image in the channel to the user's buffer, in runs through bounce
// packets: data that came before the host's post, and results too large for staging. Results in
// staging need no copy of theirs, only the end of its transfers.
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
};

// Steps of transfers with which the mover goes on, not the algorithm.
enum Step : uint8_t {
  kFirstStep = 0xf0,
  kMoveRead = kFirstStep,  // image into a bounce packet
  kMoveWrite,              // bounce packet into the user's buffer
  kLandEarly,              // a packet's payload into the channel: the caller counts it as landing
  kDeliver,                // staging into the user's buffer
  kRetain,                 // own block, or staging, into the channel
};

void start(Operation& operation, uint32_t first_piece);
// Goes on; at most a few runs are under way at once.
void advance(const Scope& scope, const Plan& plan);

// A transfer with one of the steps above is done; returns what Algorithm's on_dma() is to return.
bool on_dma(const Scope& scope, const Plan& plan, const TransferDone& done);

}  // namespace peal::mover
