// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/gone_on.h"

#include "firmware/group/inquiry.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/operation.h"

namespace peal {
namespace {

// How many operations a program has under way is forgotten after so many epochs.
constexpr uint64_t kEpochsKept = 64;

uint64_t oldest_under_way(const Member& member) {
  uint64_t oldest = member.recycled * kEpochOperations;
  while (oldest < member.next_sequence && !is_posted(member.operations[oldest % kChannels])) {
    ++oldest;
  }
  return oldest;
}

// The most that this rank was seen to have under way: so have the others, most likely. (Those that
// are over do not count: a host may go on with others while the oldest stands still.)
uint64_t depth_of(Member& member, uint64_t oldest) {
  uint64_t depth = 0;
  for (uint64_t sequence = oldest; sequence < member.next_sequence; ++sequence) {
    const Operation& each = member.operations[sequence % kChannels];
    const bool is_over = each.sequence == sequence && each.phase == OperationPhase::kFinished;
    if (!is_over) ++depth;
  }
  if (depth >= member.depth || member.recycled - member.depth_epoch > kEpochsKept) {
    member.depth = static_cast<uint32_t>(depth);
    member.depth_epoch = member.recycled;
  }
  return member.depth;
}

void all_have_begun(Card& card, const Member& member, Operation& operation) {
  inquiry_all_begun(card, member, operation.inquiry);
  card.timers.arm_no_later(operation.timer, inquiry_next(card, operation.inquiry));
}

}  // namespace

OverWith over_with(Member& member, uint64_t begun, SaidBy by) {
  if (member.finished == member.next_sequence) return {};  // most that comes early does so
  const uint64_t oldest = oldest_under_way(member);
  const uint64_t depth = depth_of(member, oldest);
  if (depth > 1 && member.patience.lossless && by == SaidBy::kAnybody) return {};
  const uint64_t end = begun + 1 < oldest + depth ? oldest : begun + 1 - depth;
  return {oldest, end < member.next_sequence ? end : member.next_sequence};
}

// A broadcast is over for its root when it is sent, and for others when it has come: whatever their
// programs post, ranks see one at a time, and take who is ahead for one who is over with this one.
bool may_be_ahead(const Member& member, const Operation& operation) {
  return member.patience.lossless && !operation.algorithm->synchronises;
}

void note_gone_on(Card& card, Member& member, uint64_t begun) {
  const OverWith over = over_with(member, begun, SaidBy::kAnybody);
  for (uint64_t sequence = over.first; sequence < over.end; ++sequence) {
    Operation& operation = member.operations[sequence % kChannels];
    if (!is_posted(operation) || may_be_ahead(member, operation)) continue;
    all_have_begun(card, member, operation);
  }
}

void note_epoch_over(Card& card, Member& member, uint32_t wire_epoch) {
  const uint32_t ahead = wire_epoch - static_cast<uint32_t>(member.recycled);
  if (ahead > 1) return;
  const uint64_t first = (member.recycled + ahead) * kEpochOperations;
  for (uint64_t sequence = first; sequence < first + kEpochOperations; ++sequence) {
    Operation& operation = member.operations[sequence % kChannels];
    const bool waits = is_waiting(operation) && operation.sequence == sequence;
    if (waits) all_have_begun(card, member, operation);
  }
}

void note_misled(Member& member) {
  if (member.depth > 1 || !member.patience.lossless) return;
  member.depth = 2;
  member.depth_epoch = member.recycled;
}

void note_depth(Member& member) { (void)depth_of(member, oldest_under_way(member)); }

}  // namespace peal
