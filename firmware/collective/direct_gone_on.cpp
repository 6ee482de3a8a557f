// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_gone_on.h"

#include "firmware/collective/direct_blocks.h"
#include "firmware/collective/direct_pair.h"
#include "firmware/collective/direct_questions.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/gone_on.h"
#include "firmware/operation/operation.h"

namespace peal::direct {
namespace {

// That what seemed lost was on its way is remembered for so many epochs.
constexpr uint64_t kEpochsKept = 16;

bool was_wrong_lately(const Member& member) { return member.recycled < member.ordered_epoch; }

// All that has not come of the pair's window is lost. What has one piece is asked for at once: the
// pieces of longer ones show what is lost by one another, and overtake each other.
void note_owed(const Scope& scope, uint32_t way) {
  const Pair& pair = pair_at(scope, way);
  const uint32_t left = pair.pieces - pair.base;
  const uint32_t window = (1u << (left < kPieceWindow ? left : kPieceWindow)) - 1u;
  const auto lost = static_cast<PieceBits>(window & ~(pair.come | pair.lost));
  if (lost == 0) return;
  if (pair.pieces == 1) {
    ask_at_once(scope, way, 1);
  } else {
    note_lost(scope, way, lost);
  }
}

// Whoever has gone on has the blocks of all. Those of one piece leave in the order of ranks, from
// the one behind their sender on: those of the ranks behind this `way`, which come to it later than
// to this rank, have been sent here. So have all others, most likely, as those before this way
// leave at about the same time: unless that was wrong lately. Each pair is looked at once.
void note_passed(const Scope& scope, uint32_t way) {
  uint32_t& passed = pairs_of(scope).passed;
  const uint32_t from = was_wrong_lately(scope.member) ? way : 0;
  uint32_t asked = 0;
  while (passed > from + 1) {
    const Pair& pair = pair_at(scope, --passed);
    if (has_come(pair) || pair.pieces != 1 || pair.lost != 0) continue;
    if (++asked > kAskedAtOnce) {
      note_lost(scope, passed, 1);
    } else {
      ask_at_once(scope, passed, 1);
    }
  }
}

}  // namespace

void note_overtaken(Member& member) { member.ordered_epoch = member.recycled + kEpochsKept; }

void note_gone_on(const Scope& scope, uint32_t way) {
  auto& [card, member, operation] = scope;
  const bool lossless = !member.membership.losses;  // before this
  const OverWith over = over_with(member, operation.sequence, SaidBy::kWhoOwes);
  for (uint64_t sequence = over.first; sequence < over.end; ++sequence) {
    Operation& before = member.operations[sequence % kChannels];
    if (!is_known(before) || before.algorithm->senders != Senders::kGroup) continue;
    note_owed({card, member, before}, way);
    if (!lossless && is_posted(before)) note_passed({card, member, before}, way);
  }
}

}  // namespace peal::direct
