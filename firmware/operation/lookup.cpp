// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/lookup.h"

#include "firmware/base/mutation.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/recycling.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/gone_on.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/settle.h"

namespace peal {
namespace {

// May this sequence run? Its sender may know that everybody has finished what is not recycled here.
bool may_run(Card& card, Member& member, uint64_t sequence) {
  if (sequence < recycling_limit(member) || mutated(Mutation::kNoRecycling)) return true;
  if (!recycling_prove(card, member, sequence / kEpochOperations)) return false;
  settle(card);
  return member.phase == MemberPhase::kActive;
}

}  // namespace

Operation* find_operation(Card& card, Member& member, const peal_wire_header& header,
                          const Algorithm& algorithm, bool open, peal_counter* why) {
  const uint64_t low = member.recycled * kEpochOperations;
  const auto ahead = static_cast<int32_t>(header.sequence - static_cast<uint32_t>(low));
  if (ahead < 0) {
    *why = PEAL_COUNTER_DROP_STALE;
    return nullptr;
  }
  const uint64_t sequence = low + static_cast<uint64_t>(ahead);
  if (!may_run(card, member, sequence)) {
    *why = PEAL_COUNTER_DROP_FUTURE;
    return nullptr;
  }
  Operation& operation = member.operations[sequence % kChannels];
  if (operation.phase == OperationPhase::kFree) {
    if (!open) {
      *why = PEAL_COUNTER_DROP_STALE;
      return nullptr;
    }
    // Nobody can post it here.
    const uint32_t ranks = member.membership.ranks;
    if (ranks > algorithm.ranks_max ||
        (algorithm.lengths == Lengths::kOfParts && ranks > kPartRanks)) {
      *why = PEAL_COUNTER_DROP_TYPE;
      return nullptr;
    }
    const bool one = algorithm.lengths == Lengths::kOne;
    operation_open({card, member, operation}, algorithm, sequence, one ? header.block_bytes : 0,
                   algorithm.rooted ? header.origin : 0);
    operation.first_sender = header.sender;
    if (takes_silence_for_lateness(card, member)) note_gone_on(card, member, sequence);
  } else if (operation.sequence != sequence) {
    *why = PEAL_COUNTER_DROP_FUTURE;
    return nullptr;
  }
  return &operation;
}

}  // namespace peal
