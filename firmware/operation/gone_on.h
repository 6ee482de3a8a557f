// SPDX-License-Identifier: BSD-2-Clause
// Who has gone on is not late. A rank begins an operation when it is over with the one before, or,
// where programs have several under way, with the one that many before. So a packet of an operation
// that this rank's host has not posted says that somebody is over with older ones that this rank
// still waits for: those who owe something have begun them, most likely, and silence is loss.
// docs/decisions/0076
#pragma once

#include "firmware/card_types.h"

namespace peal {

// Who has begun it: somebody, or the one whose own blocks this is about. Of others that says
// nothing where programs have several under way and nothing was lost yet.
enum class SaidBy : uint8_t { kAnybody, kWhoOwes };

// Operations of this rank, by their sequence numbers, first to end, with which whoever has begun
// that one is over. Empty where this rank's host has posted it.
struct OverWith {
  uint64_t first;
  uint64_t end;
};
OverWith over_with(Member& member, uint64_t begun, SaidBy by);

// Somebody has begun that operation: what others owe of those that it is over with is waited for
// for a first interval at the most, or as long as queues take, whatever patience has learned.
void note_gone_on(Card& card, Member& member, uint64_t begun);
// Somebody has finished that epoch (as the wire has it), and waits: so it is with all operations of
// it that still wait here.
void note_epoch_over(Card& card, Member& member, uint32_t wire_epoch);
// Somebody is late all the same: where nothing was lost yet, programs have several under way.
void note_misled(Member& member);
// One of this rank's operations has waited for so long that it looks after the others: as many are
// under way as its program has.
void note_depth(Member& member);

}  // namespace peal
