// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_gone_on.h"

#include "firmware/collective/direct_blocks.h"
#include "firmware/collective/direct_pair.h"
#include "firmware/collective/direct_questions.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/operation.h"

namespace peal::direct {
namespace {

// How many operations a program has under way is forgotten after so many epochs.
constexpr uint64_t kEpochsKept = 2;

uint64_t oldest_under_way(const Member& member) {
  uint64_t oldest = member.recycled * kEpochOperations;
  while (oldest < member.next_sequence && !is_posted(member.operations[oldest % kChannels])) {
    ++oldest;
  }
  return oldest;
}

// The most that this rank has had under way of late, from the oldest to the newest: so have the
// others, most likely.
uint64_t depth_of(Member& member, uint64_t oldest) {
  const uint64_t depth = member.next_sequence - oldest;
  if (depth >= member.depth || member.recycled - member.depth_epoch > kEpochsKept) {
    member.depth = static_cast<uint32_t>(depth);
    member.depth_epoch = member.recycled;
  }
  return member.depth;
}

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
  const uint64_t oldest = oldest_under_way(member);
  const uint64_t depth = depth_of(member, oldest);
  for (uint64_t over = oldest; over + depth <= operation.sequence; ++over) {
    Operation& before = member.operations[over % kChannels];
    if (!is_posted(before) || before.algorithm->senders != Senders::kGroup) continue;
    if (is_known(before)) note_owed({card, member, before}, way);
  }
}

}  // namespace peal::direct
