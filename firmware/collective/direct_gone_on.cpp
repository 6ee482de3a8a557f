// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_gone_on.h"

#include "firmware/collective/direct_blocks.h"
#include "firmware/collective/direct_pair.h"
#include "firmware/collective/direct_questions.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/gone_on.h"

namespace peal::direct {
namespace {

// All that has not come of the pair's window is lost.
void note_owed(const Scope& scope, uint32_t way) {
  const Pair& pair = pair_at(scope, way);
  const uint32_t left = pair.pieces - pair.base;
  const uint32_t window = (1u << (left < kPieceWindow ? left : kPieceWindow)) - 1u;
  const auto lost = static_cast<PieceBits>(window & ~(pair.come | pair.lost));
  if (lost != 0) note_lost(scope, way, lost);
}

}  // namespace

void note_gone_on(const Scope& scope, uint32_t way) {
  auto& [card, member, operation] = scope;
  const OverWith over = over_with(member, operation.sequence, SaidBy::kWhoOwes);
  for (uint64_t sequence = over.first; sequence < over.end; ++sequence) {
    Operation& before = member.operations[sequence % kChannels];
    if (!is_known(before) || before.algorithm->senders != Senders::kGroup) continue;
    note_owed({card, member, before}, way);
  }
}

}  // namespace peal::direct
