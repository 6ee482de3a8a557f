// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/admission.h"

#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/base/mutation.h"
#include "firmware/group/member.h"
#include "firmware/group/parking.h"
#include "firmware/group/recycling.h"
#include "firmware/group/unsettled.h"
#include "firmware/host/completion.h"
#include "firmware/host/keys.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/refusal.h"

namespace peal {
namespace {

bool may_start(const Member& member, const Command& command) {
  if (mutated(Mutation::kNoRecycling)) return true;
  if (command.sequence >= recycling_limit(member)) return false;
  // A destroy is the group's last word: everything before it is over, here.
  return command.operation != PEAL_OPERATION_DESTROY || member.finished == command.sequence;
}

void run_command(Card& card, Member& member, const Command& command) {
  Operation& operation = kept(member.operations[command.sequence % kChannels]);
  const Scope scope = {card, member, operation};
  const Algorithm& algorithm = *command.algorithm;
  const bool early = operation.phase == OperationPhase::kEarly;
  PEAL_ASSERT(early || operation.phase == OperationPhase::kFree || mutated(Mutation::kNoRecycling));
  if (!early) {
    operation_open(scope, algorithm, command.sequence, command.block_bytes, command.root);
  }
  ++member.started;
  const bool agrees = operation.algorithm == &algorithm && operation.root == command.root &&
                      operation.block_bytes == command.block_bytes;
  operation.phase = OperationPhase::kRunning;
  operation.command = command;
  if (!agrees) refuse(scope, PEAL_STATUS_MISMATCH, operation.first_sender);
  if (is_refused(operation)) {
    operation_end_if_refused(scope);
    return;
  }
  if (early) operation_posted(scope);
  algorithm.does.post(scope);
  operation_advance(scope);
}

}  // namespace

peal_status accept_command(Card& card, Member& member, Command& command) {
  const bool poisoned = member.membership.poisoned;
  const bool waits = poisoned || member.parked_count > 0 || !may_start(member, command);
  if (waits && !may_park(member)) return PEAL_STATUS_TOO_MANY;
  ++member.next_sequence;
  ++card.contexts[command.context].outstanding;
  member.destroying = command.operation == PEAL_OPERATION_DESTROY;
  if (poisoned) {
    // The group cannot do anything any more, but it can still be left, once what ran is over.
    park_command(member, command);
    note_unsettled(card, member);
    return PEAL_STATUS_OK;
  }
  command.holds_keys = (command.send_key | command.receive_key) != 0 || command.parts != 0;
  if (command.holds_keys) hold_keys(card, command);
  if (!waits) {
    run_command(card, member, command);
    return PEAL_STATUS_OK;
  }
  count(card, PEAL_COUNTER_COMMANDS_PARKED);
  park_command(member, command);
  return PEAL_STATUS_OK;
}

bool start_parked(Card& card, Member& member) {
  if (member.phase != MemberPhase::kActive || member.membership.poisoned) return false;
  if (member.parked_count == 0 || !may_start(member, first_parked(member))) return false;
  run_command(card, member, take_parked(member));
  return true;
}

void fail_parked(Card& card, Member& member, peal_status status, Rank rank) {
  while (member.parked_count > 0) {
    const bool destroys = first_parked(member).operation == PEAL_OPERATION_DESTROY;
    // The group's last word: not before the operations that still wait for DMA.
    if (destroys && member.finished != member.started) return;
    complete_command(card, take_parked(member), status, rank);
    // Nothing is ever parked behind a destroy.
    if (destroys) bury_member(card, member);
  }
}

}  // namespace peal
