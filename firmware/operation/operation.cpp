// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/operation.h"

#include "firmware/base/mutation.h"
#include "firmware/collective/allgather/broadcast_all.h"
#include "firmware/collective/allgather/doubling.h"
#include "firmware/group/dissemination.h"
#include "firmware/group/member.h"
#include "firmware/group/recycling.h"
#include "firmware/group/verdict.h"
#include "firmware/operation/command_check.h"
#include "firmware/operation/pieces.h"

namespace peal {
namespace {

bool may_start(const Member& member, const Command& command) {
  if (mutated(Mutation::kNoRecycling)) return true;
  if (command.sequence >= recycling_limit(member)) return false;
  // A destroy is the group's last word: everything before it is over, here.
  return command.opcode != PEAL_OPERATION_DESTROY || member.finished == command.sequence;
}

void use_keys(Card& card, const Command& command, int by) {
  const uint32_t keys[] = {command.send_key, command.receive_key};
  for (const uint32_t key : keys) {
    MemoryKey* entry = find_key(card, command.context, key);
    if (entry != nullptr) entry->uses = static_cast<uint16_t>(entry->uses + by);
  }
}

void open_operation(Card& card, Member& member, Operation& operation, uint64_t sequence,
                    uint8_t kind, uint8_t algorithm, uint32_t block_bytes) {
  const Timer timer = operation.timer;
  operation.phase = OperationPhase::kEarly;
  operation.kind = kind;
  operation.algorithm = algorithm;
  operation.starved = operation.refused = operation.in_debt = false;
  operation.signature = signature_of(member.membership, kind, algorithm, 0, block_bytes);
  operation.block_bytes = block_bytes;
  operation.first_sender = member.membership.rank;
  operation.chase_next = 0;
  operation.debt_next = 0;
  operation.verdict = PEAL_STATUS_OK;
  operation.verdict_rank = PEAL_NO_RANK;
  operation.sequence = sequence;
  operation.command = {};
  operation.progress_ns = card.now;
  operation.interval_ns = pace_patience(member.pace, card.timeouts);
  operation.timer = timer;
  operation.dma = operation.early_dma = 0;
  operation.signals = {};
  operation.mover = {};
  pieces_open(member, operation);
  card.timers.arm(operation.timer, card.now + operation.interval_ns);
}

// Does anything have to be asked for?
bool is_waiting(const Operation& operation) {
  if (operation.refused) return false;
  switch (operation.phase) {
    case OperationPhase::kEarly:
    case OperationPhase::kRunning:
      return true;
    case OperationPhase::kFinished:
      return operation.in_debt;
    case OperationPhase::kFree:
      return false;
  }
  return false;
}

// When questions are dear, the oldest operation asks and the later ones wait: it is what holds up
// the channels.
bool must_wait_its_turn(const Scope& scope) {
  auto& [card, member, operation] = scope;
  if (!pace_is_scarce(member.pace, card.timeouts, card.now)) return false;
  for (const Operation& other : member.operations) {
    if (is_waiting(other) && other.sequence < operation.sequence) return true;
  }
  return false;
}

void advance_dissemination(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  const PacketKind kind = packet_kind(operation, PEAL_PACKET_SIGNAL);
  if (!dissemination_send(scope.card, scope.member.membership, operation.signals, kind)) {
    operation_starved(scope);
  }
  if (operation.signals.complete) operation_finish(scope, PEAL_STATUS_OK, PEAL_NO_RANK);
}

void run_command(Card& card, Member& member, const Command& command) {
  Operation& operation = member.operations[command.sequence % kChannels];
  const Scope scope = {card, member, operation};
  const bool early = operation.phase == OperationPhase::kEarly;
  const uint32_t signature =
      signature_of(member.membership, command.opcode, command.algorithm, 0, command.block_bytes);
  PEAL_ASSERT(early || operation.phase == OperationPhase::kFree || mutated(Mutation::kNoRecycling));
  if (!early) {
    open_operation(card, member, operation, command.sequence, command.opcode, command.algorithm,
                   command.block_bytes);
  }
  ++member.started;
  const bool agrees = operation.signature == signature;
  operation.phase = OperationPhase::kRunning;
  operation.command = command;
  operation.signals.entered = true;
  if (!agrees) refuse(scope, PEAL_STATUS_MISMATCH, operation.first_sender);
  if (operation.refused) {
    operation_end_if_refused(scope);
    return;
  }
  operation_progressed(scope);
  if (operation.algorithm == PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST) broadcast_all::post(scope);
  operation_advance(scope);
}

void park_command(Member& member, const Command& command) {
  PEAL_ASSERT(member.parked_count < CONFIG_PARKED_OPERATIONS);
  const uint32_t at = (member.parked_head + member.parked_count) % CONFIG_PARKED_OPERATIONS;
  member.parked[at] = command;
  ++member.parked_count;
}

void release_staging(Member& member, Operation& operation) {
  member.staging_used &= ~static_cast<uint32_t>(operation.staging_mask);
  operation.staging_mask = 0;
}

}  // namespace

peal_status accept_command(Card& card, Member& member, Command& command) {
  const Membership& self = member.membership;
  if (self.poisoned) {
    // The group cannot do anything any more, but it can still be left, once what ran is over.
    ++member.next_sequence;
    ++card.contexts[command.context].outstanding;
    member.destroying = command.opcode == PEAL_OPERATION_DESTROY;
    park_command(member, command);
    member_fail_parked(card, member, PEAL_STATUS_PEER_DEAD, self.dead_rank);
    return PEAL_STATUS_OK;
  }
  const bool waits = member.parked_count > 0 || !may_start(member, command);
  if (waits && member.parked_count >= CONFIG_PARKED_OPERATIONS) return PEAL_STATUS_TOO_MANY;
  ++member.next_sequence;
  ++card.contexts[command.context].outstanding;
  command.holds_keys = command.opcode == PEAL_OPERATION_ALLGATHER && command.block_bytes > 0;
  if (command.holds_keys) use_keys(card, command, 1);
  member.destroying = command.opcode == PEAL_OPERATION_DESTROY;
  if (!waits) {
    run_command(card, member, command);
    return PEAL_STATUS_OK;
  }
  count(card, PEAL_COUNTER_COMMANDS_PARKED);
  park_command(member, command);
  return PEAL_STATUS_OK;
}

void start_parked(Card& card, Member& member) {
  while (member.phase == MemberPhase::kActive && !member.membership.poisoned &&
         member.parked_count > 0 && may_start(member, member.parked[member.parked_head])) {
    const Command command = member.parked[member.parked_head];
    member.parked_head = static_cast<uint16_t>((member.parked_head + 1) % CONFIG_PARKED_OPERATIONS);
    --member.parked_count;
    run_command(card, member, command);
  }
}

void complete_command(Card& card, const Command& command, peal_status status, Rank rank) {
  count(card, status == PEAL_STATUS_OK ? PEAL_COUNTER_OPERATIONS_COMPLETED
                                       : PEAL_COUNTER_OPERATIONS_FAILED);
  if (command.holds_keys) use_keys(card, command, -1);
  Context& context = card.contexts[command.context];
  --context.outstanding;
  if (context.phase != ContextPhase::kOpen) return;  // nobody listens any more
  peal_completion entry = {};
  entry.cookie = command.cookie;
  entry.sequence = command.sequence;
  entry.card_ns = card.now - command.accepted_ns;
  entry.member = command.member;
  entry.failed_rank = rank;
  entry.status = static_cast<uint16_t>(status);
  entry.opcode = command.opcode;
  card.port->complete(command.context, entry);
}

Operation* find_operation(Card& card, Member& member, const peal_wire_header& header, bool open,
                          peal_counter* why) {
  // The wire carries 32 bits; the window of sequences that may run is far narrower.
  const uint64_t low = member.recycled * kEpochOperations;
  const auto ahead = static_cast<int32_t>(header.sequence - static_cast<uint32_t>(low));
  if (ahead < 0) {
    *why = PEAL_COUNTER_DROP_STALE;
    return nullptr;
  }
  const uint64_t sequence = low + static_cast<uint64_t>(ahead);
  if (sequence >= recycling_limit(member) && !mutated(Mutation::kNoRecycling)) {
    // Its sender knows that everybody has entered the recycling that we still wait for.
    if (sequence >= recycling_limit(member) + kEpochOperations || !recycling_prove(card, member)) {
      *why = PEAL_COUNTER_DROP_FUTURE;
      return nullptr;
    }
  }
  Operation& operation = member.operations[sequence % kChannels];
  if (operation.phase == OperationPhase::kFree) {
    if (!open) {
      *why = PEAL_COUNTER_DROP_STALE;
      return nullptr;
    }
    open_operation(card, member, operation, sequence, header.operation, header.algorithm,
                   header.block_bytes);
    operation.first_sender = header.sender;
  } else if (operation.sequence != sequence) {
    *why = PEAL_COUNTER_DROP_FUTURE;
    return nullptr;
  }
  return &operation;
}

void operation_advance(const Scope& scope) {
  Operation& operation = scope.operation;
  if (operation.refused) {
    operation_end_if_refused(scope);
    return;
  }
  if (operation.phase != OperationPhase::kEarly && operation.phase != OperationPhase::kRunning)
    return;
  switch (operation.algorithm) {
    case PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST:
      broadcast_all::advance(scope);
      break;
    case PEAL_ALGORITHM_RECURSIVE_DOUBLING:
      doubling::advance(scope);
      break;
    default:
      advance_dissemination(scope);
  }
}

void operation_progressed(const Scope& scope) {
  auto& [card, member, operation] = scope;
  operation.progress_ns = card.now;
  operation.interval_ns = pace_patience(member.pace, card.timeouts);
  // Costs nothing in the common case: the timer is set no later already, and looks again when it
  // fires.
  card.timers.arm_no_later(operation.timer, card.now + operation.interval_ns);
}

void operation_starved(const Scope& scope) {
  scope.operation.starved = true;
  scope.card.timers.arm_no_later(scope.operation.timer,
                                 scope.card.now + scope.card.timeouts.nack_ns / 4 + 1);
}

void operation_fail(const Scope& scope, peal_status status, Rank rank) {
  Operation& operation = scope.operation;
  if (operation.phase == OperationPhase::kFree || operation.phase == OperationPhase::kFinished)
    return;
  if (!operation.refused) {
    operation.refused = true;
    operation.verdict = status;
    operation.verdict_rank = rank;
  }
  scope.card.timers.disarm(operation.timer);
  operation_end_if_refused(scope);
}

void operation_end_if_refused(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!operation.refused || operation.dma > 0 || !is_posted(operation)) return;
  operation_finish(scope, operation.verdict, operation.verdict_rank);
}

void operation_finish(const Scope& scope, peal_status status, Rank rank) {
  auto& [card, member, operation] = scope;
  PEAL_ASSERT(operation.phase == OperationPhase::kRunning && operation.dma == 0);
  operation.phase = OperationPhase::kFinished;
  if (!operation.in_debt) card.timers.disarm(operation.timer);
  release_staging(member, operation);
  const Command command = operation.command;
  complete_command(card, command, status, rank);
  ++member.finished;
  if (command.opcode == PEAL_OPERATION_DESTROY) {
    // Disagreement leaves the group standing; success and death are its end.
    if (status == PEAL_STATUS_OK || status == PEAL_STATUS_PEER_DEAD) {
      bury_member(card, member);
      return;
    }
    member.destroying = false;
  }
  if (member.membership.poisoned) {
    member_fail_parked(card, member, PEAL_STATUS_PEER_DEAD, member.membership.dead_rank);
    return;
  }
  recycling_finished(card, member, command.sequence);
  start_parked(card, member);
}

void operation_recycle(Card& card, Operation& operation) {
  card.timers.disarm(operation.timer);
  operation.phase = OperationPhase::kFree;
}

bool operation_may_ask(const Scope& scope) {
  auto& [card, member, operation] = scope;
  if (!pace_ask(member.pace, card.timeouts, card.now)) {
    count(card, PEAL_COUNTER_HELD_BACK_NACK);
    return false;
  }
  return true;
}

void operation_owes(const Scope& scope) {
  auto& [card, member, operation] = scope;
  operation.in_debt = true;
  operation.progress_ns = card.now;
  operation.interval_ns = pace_patience(member.pace, card.timeouts);
  card.timers.arm_no_later(operation.timer, card.now + operation.interval_ns);
}

void on_operation_timer(Card& card, Member& member, Operation& operation) {
  const Scope scope = {card, member, operation};
  if (!is_waiting(operation) || member.membership.poisoned) return;
  if (operation.starved) {
    operation.starved = false;
    const uint64_t sequence = operation.sequence;
    operation_advance(scope);
    const bool ended = member.phase != MemberPhase::kActive || operation.sequence != sequence ||
                       !is_waiting(operation);
    if (ended) return;
  }
  if (card.now >= operation.progress_ns + operation.interval_ns && must_wait_its_turn(scope)) {
    count(card, PEAL_COUNTER_HELD_BACK_NACK);
    operation.progress_ns = card.now;
  }
  if (card.now >= operation.progress_ns + operation.interval_ns) {
    // Ever more slowly, whether the answer was "not yet" or nothing: a late rank, a slow card and a
    // partition must not be asked to death. The first arrival brings the short interval back.
    if (!mutated(Mutation::kStormOnLate)) {
      operation.interval_ns = doubled_interval(card, operation.interval_ns);
    }
    operation.progress_ns = card.now;
    switch (operation.algorithm) {
      case PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST:
        broadcast_all::chase(scope);
        break;
      case PEAL_ALGORITHM_RECURSIVE_DOUBLING:
        doubling::chase(scope);
        break;
      default:
        if (is_posted(operation) && operation_may_ask(scope)) {
          dissemination_chase(card, member, operation.signals,
                              packet_kind(operation, PEAL_PACKET_NACK));
        }
    }
    if (!is_waiting(operation)) return;  // its debts are paid
  }
  TimeNs interval = operation.interval_ns;
  if (mutated(Mutation::kRandomness)) {
    static uint32_t hidden_state;  // outlives the card: a second run starts where the first ended
    interval += ++hidden_state % 4096;
  }
  card.timers.arm_no_later(operation.timer, operation.progress_ns + interval);
}

}  // namespace peal
