// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/lost.h"

#include "firmware/group/inquiry.h"
#include "firmware/group/recycling.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/operation.h"

namespace peal {

void ask_for_lost(Card& card, Member& member, uint32_t entry, const peal_wire_header& shown_by,
                  uint64_t first) {
  if (member.phase != MemberPhase::kActive || member.membership.poisoned) return;
  // What shows it may be three epochs on, which it has not proved yet: so may what is lost.
  member.membership.peers[entry].gaps_before = member.recycled + 4;
  const uint64_t oldest = member.recycled * kEpochOperations;
  for (uint64_t sequence = oldest; sequence < oldest + kChannels; ++sequence) {
    if (sequence < first) continue;
    Operation& operation = member.operations[sequence % kChannels];
    if (!is_waiting(operation) || operation.sequence != sequence) continue;
    inquiry_suspect(operation.inquiry, entry);
    operation.inquiry.all_sent = shown_by.operation != operation.algorithm->operation ||
                                 shown_by.sequence != static_cast<uint32_t>(sequence);
    operation.algorithm->does.chase({card, member, operation});
    if (!inquiry_cleared(card, member, operation.inquiry)) continue;
    card.timers.arm_no_later(operation.timer, inquiry_next(card, operation.inquiry));
    return;
  }
  inquiry_suspect(member.recycling_inquiry, entry);
  recycling_ask(card, member);
  if (inquiry_cleared(card, member, member.recycling_inquiry)) {
    card.timers.arm_no_later(member.timer, inquiry_next(card, member.recycling_inquiry));
  }
}

}  // namespace peal
