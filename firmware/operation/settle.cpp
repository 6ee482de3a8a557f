// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/settle.h"

#include "firmware/base/kept.h"
#include "firmware/group/member.h"
#include "firmware/group/recycling.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/host/completion.h"
#include "firmware/operation/admission.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/part_places.h"

namespace peal {
namespace {

[[gnu::cold]] [[gnu::noinline]] void fail_operations(Card& card, Member& member) {
  member.unsettled.failing = false;
  for (Operation& operation : member.operations) {
    sent_blocks_drop(card, member, operation);  // nobody is answered any more
    operation_fail({card, member, operation}, PEAL_STATUS_PEER_DEAD, member.membership.dead_rank);
  }
}

[[gnu::cold]] [[gnu::noinline]] void fail_what_is_parked(Card& card, Member& member) {
  fail_parked(card, member, PEAL_STATUS_PEER_DEAD, member.membership.dead_rank);
}

// A place for a table of parts may have been given back.
void go_on_with_parts(Card& card, Member& member) {
  Operation* operation = part_place_next(member);
  if (operation != nullptr) operation_advance({card, member, *operation});
  member.parts_wanted = part_place_next(member) != nullptr;
}

// What is rare about an operation that is complete.
[[gnu::cold]] [[gnu::noinline]] void end_unusual(Card& card, Member& member,
                                                 const Operation& operation, bool everybody) {
  const uint64_t sequence = operation.sequence;
  const peal_status status = operation.verdict;
  const bool destroys = operation.command.operation == PEAL_OPERATION_DESTROY;
  if (member.parts_wanted) go_on_with_parts(card, member);
  if (destroys) {
    // Disagreement leaves the group standing; success and death are its end.
    if (status == PEAL_STATUS_OK || status == PEAL_STATUS_PEER_DEAD) {
      bury_member(card, member);
      return;
    }
    member.destroying = false;
  }
  if (member.membership.poisoned) {
    fail_what_is_parked(card, member);
  } else {
    recycling_finished(card, member, sequence, everybody);
  }
}

// The first operation that ended is completed, with all that follows.
void end_first(Card& card, Member& member) {
  Operation& operation = kept(member.operations[member.unsettled.ended - 1]);
  member.unsettled.ended = operation.next_ended;
  complete_command(card, member, operation.command, operation.verdict, operation.verdict_rank);
  ++member.finished;
  // Who was refused need not have heard everybody.
  const bool everybody = operation.verdict == PEAL_STATUS_OK && operation.algorithm->synchronises;
  if (member.parts_wanted || member.destroying || member.membership.poisoned) {
    return end_unusual(card, member, operation, everybody);
  }
  recycling_finished(card, member, operation.sequence, everybody);
}

// One step; false when the member is settled.
bool settle_step(Card& card, Member& member) {
  if (member.unsettled.failing) {
    fail_operations(card, member);
    return true;
  }
  if (member.unsettled.ended != 0) {
    end_first(card, member);
    return true;
  }
  if (member.phase != MemberPhase::kActive) return false;
  if (!member.membership.poisoned) return member.parked_count > 0 && start_parked(card, member);
  fail_what_is_parked(card, member);
  if (member.unsettled.leaving) bury_member(card, member);
  return false;
}

}  // namespace

void settle_all(Card& card) {
  do {
    Member& member = kept(card.members[card.due.unsettled - 1]);
    while (settle_step(card, member)) {
    }
    card.due.unsettled = member.unsettled.next;
    member.unsettled.next = 0;
    member.unsettled.listed = false;
    if (member.phase == MemberPhase::kDying && member.dma == 0 && member.p2p_uses == 0) {
      release_member(card, member);
    }
  } while (card.due.unsettled != 0);
}

}  // namespace peal
