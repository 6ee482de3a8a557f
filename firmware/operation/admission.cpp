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
#include "firmware/operation/command_check.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/refusal.h"

namespace peal {
namespace {

// (Its algorithm need not have been checked.)
[[gnu::always_inline]] inline bool may_start(const Member& member, uint8_t operation,
                                             uint8_t algorithm, uint64_t sequence) {
  if (mutated(Mutation::kNoRecycling)) return true;
  if (sequence >= recycling_limit(member)) return false;
  if (recycling_must_wait(member, sequence)) {
    const Algorithm* row = find_algorithm(operation, algorithm);
    if (row != nullptr && row->synchronises) return false;
  }
  // A destroy is the group's last word: everything before it is over, here.
  return operation != PEAL_OPERATION_DESTROY || member.finished == sequence;
}

[[gnu::always_inline]] inline void start(const Scope& scope) {
  ++scope.member.started;
  scope.operation.phase = OperationPhase::kRunning;
  scope.operation.algorithm->does.post(scope);
  operation_advance(scope);
}

// A packet has made the record.
[[gnu::noinline]] void run_early(const Scope& scope) {
  auto& [card, member, operation] = scope;
  const Command& command = operation.command;
  const bool agrees = operation.algorithm == command.algorithm && operation.root == command.root &&
                      operation.block_bytes == command.block_bytes;
  if (agrees && !is_refused(operation)) {
    operation_posted(scope);
    return start(scope);
  }
  ++member.started;
  operation.phase = OperationPhase::kRunning;
  if (!agrees) refuse(scope, PEAL_STATUS_MISMATCH, operation.first_sender);
  operation_end_if_refused(scope);
}

// The command is in the operation's record already.
[[gnu::always_inline]] inline void run_command(const Scope& scope) {
  const Operation& operation = scope.operation;
  const Command& command = operation.command;
  if (operation.phase == OperationPhase::kEarly) return run_early(scope);
  PEAL_ASSERT(operation.phase == OperationPhase::kFree || mutated(Mutation::kNoRecycling));
  operation_open(scope, *command.algorithm, command.sequence, command.block_bytes, command.root);
  start(scope);
}

// Takes the uses of its keys.
[[gnu::always_inline]] inline void accepted(Card& card, Member& member, Command& command) {
  ++member.next_sequence;
  ++card.contexts[member.context].outstanding;
  if (command.operation == PEAL_OPERATION_DESTROY) member.destroying = true;
  hold_keys(card, command);
}

[[gnu::noinline]] peal_status park_entry(Card& card, Member& member, const peal_submission& entry) {
  Command command;
  const peal_status status = check_command(card, member, entry, &command);
  if (status != PEAL_STATUS_OK) return status;
  if (!may_park(member)) return PEAL_STATUS_TOO_MANY;
  if (member.membership.poisoned) {
    // The group cannot do anything any more, but it can still be left, once what ran is over.
    command.send_key = command.receive_key = command.parts_key = 0;
    note_unsettled(card, member);
  } else {
    count(card, PEAL_COUNTER_COMMANDS_PARKED);
  }
  accepted(card, member, command);
  park_command(member, command);
  recycling_awaited(card, member);
  return PEAL_STATUS_OK;
}

}  // namespace

peal_status accept_entry(Card& card, ContextId context, const peal_submission& entry) {
  Member* commanded = find_commanded(card, context, entry);
  if (commanded == nullptr) return PEAL_STATUS_BAD_GROUP;
  Member& member = *commanded;
  const bool starts = !member.membership.poisoned && member.parked_count == 0 &&
                      may_start(member, entry.operation, entry.algorithm, member.next_sequence);
  if (!starts) return park_entry(card, member, entry);
  // Its record has no command yet: it is free, or a packet has made it.
  Operation& operation = kept(member.operations[member.next_sequence % kChannels]);
  const peal_status status = check_command(card, member, entry, &operation.command);
  if (status != PEAL_STATUS_OK) return status;
  accepted(card, member, operation.command);
  run_command({card, member, operation});
  return PEAL_STATUS_OK;
}

bool start_parked(Card& card, Member& member) {
  if (member.phase != MemberPhase::kActive || member.membership.poisoned) return false;
  if (member.parked_count == 0) return false;
  const Command& command = first_parked(member);
  if (!may_start(member, command.operation, command.algorithm->algorithm, command.sequence)) {
    return false;
  }
  Operation& operation = kept(member.operations[command.sequence % kChannels]);
  operation.command = take_parked(member);
  run_command({card, member, operation});
  return true;
}

void fail_parked(Card& card, Member& member, peal_status status, Rank rank) {
  while (member.parked_count > 0) {
    const bool destroys = first_parked(member).operation == PEAL_OPERATION_DESTROY;
    // The group's last word: not before the operations that still wait for DMA.
    if (destroys && member.finished != member.started) return;
    complete_command(card, member, take_parked(member), status, rank);
    // Nothing is ever parked behind a destroy.
    if (destroys) bury_member(card, member);
  }
}

}  // namespace peal
