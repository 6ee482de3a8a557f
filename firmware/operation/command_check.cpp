// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/command_check.h"

#include "firmware/base/kept.h"
#include "firmware/group/member.h"
#include "firmware/group/remote.h"
#include "firmware/operation/algorithm.h"

namespace peal {
namespace {

// Some of what is asked for of every entry is wrong: what comes first.
[[gnu::cold]] [[gnu::noinline]] peal_status why_not(const Member& member,
                                                    const peal_submission& entry) {
  if (entry.operation >= PEAL_OPERATION_COUNT || !kAlgorithms.served[entry.operation]) {
    return PEAL_STATUS_BAD_OPCODE;
  }
  if ((entry.flags & ~uint32_t{kAlgorithms.flags[entry.operation]}) != 0 ||
      (entry.reserved[0] | entry.reserved[1] | entry.reserved[2]) != 0) {
    return PEAL_STATUS_BAD_FLAGS;
  }
  if (member.destroying) return PEAL_STATUS_CLOSED;
  return entry.sequence != member.next_sequence ? PEAL_STATUS_BAD_SEQUENCE
                                                : PEAL_STATUS_BAD_ALGORITHM;
}

}  // namespace

Member* find_commanded(Card& card, ContextId context, const peal_submission& entry) {
  Member* found = find_member(card, entry.member);
  if (found == nullptr || found->context != context || found->phase != MemberPhase::kActive) {
    return nullptr;
  }
  return &kept(*found);
}

peal_status check_command(Card& card, Member& member, const peal_submission& entry,
                          Command* command) {
  const Algorithm* algorithm = find_algorithm(entry.operation, entry.algorithm);
  if (algorithm == nullptr || (entry.flags & ~uint32_t{kAlgorithms.flags[entry.operation]}) != 0 ||
      (entry.reserved[0] | entry.reserved[1] | entry.reserved[2]) != 0 || member.destroying ||
      entry.sequence != member.next_sequence || member.membership.ranks > algorithm->ranks_max ||
      (algorithm->senders == Senders::kGroup && !knows_everybody(member))) {
    return why_not(member, entry);
  }
  const bool has_parts = algorithm->lengths == Lengths::kOfParts;
  const uint32_t root = has_parts ? 0 : entry.root;  // it shares its field with the table's key
  if (root >= (algorithm->rooted ? member.membership.ranks : 1u)) return PEAL_STATUS_BAD_ROOT;
  command->operation = entry.operation;
  command->in_place = (entry.flags & PEAL_SUBMIT_IN_PLACE) != 0;
  command->algorithm = algorithm;
  command->sequence = entry.sequence;
  command->cookie = entry.cookie;
  command->block_bytes = static_cast<uint32_t>(entry.block_bytes);
  command->root = static_cast<uint16_t>(root);
  command->accepted_ns = card.now;
  // What names memory is for the algorithm to fill in; most do.
  command->send_key = command->receive_key = command->parts_key = 0;
  command->parts = 0;
  command->send = command->receive = command->table = {};
  return algorithm->does.check(card, member, entry, command);
}

}  // namespace peal
