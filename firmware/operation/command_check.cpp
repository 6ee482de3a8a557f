// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/command_check.h"

#include "firmware/group/member.h"
#include "firmware/group/remote.h"
#include "firmware/operation/algorithm.h"

namespace peal {

peal_status check_command(Card& card, ContextId context, const peal_submission& entry,
                          Member** member, Command* command) {
  *member = nullptr;
  Member* found = find_member(card, entry.member);
  if (found == nullptr || found->context != context || found->phase != MemberPhase::kActive) {
    return PEAL_STATUS_BAD_GROUP;
  }
  *member = found;
  if (entry.operation >= PEAL_OPERATION_COUNT || !kAlgorithms.served[entry.operation]) {
    return PEAL_STATUS_BAD_OPCODE;
  }
  if ((entry.flags & ~uint32_t{kAlgorithms.flags[entry.operation]}) != 0 ||
      (entry.reserved[0] | entry.reserved[1] | entry.reserved[2]) != 0) {
    return PEAL_STATUS_BAD_FLAGS;
  }
  if (found->destroying) return PEAL_STATUS_CLOSED;
  if (entry.sequence != found->next_sequence) return PEAL_STATUS_BAD_SEQUENCE;
  const Algorithm* algorithm = find_algorithm(entry.operation, entry.algorithm);
  if (algorithm == nullptr || found->membership.ranks > algorithm->ranks_max) {
    return PEAL_STATUS_BAD_ALGORITHM;
  }
  if (algorithm->senders == Senders::kGroup && !knows_everybody(*found)) {
    return PEAL_STATUS_BAD_ALGORITHM;
  }
  const bool has_parts = algorithm->lengths == Lengths::kOfParts;
  const uint32_t root = has_parts ? 0 : entry.root;  // it shares its field with the table's key
  if (root >= (algorithm->rooted ? found->membership.ranks : 1u)) return PEAL_STATUS_BAD_ROOT;
  // What names memory is for the algorithm to fill in; most do.
  command->holds_keys = false;
  command->send_key = command->receive_key = command->parts_key = 0;
  command->parts = 0;
  command->send = command->receive = command->table = {};
  command->operation = entry.operation;
  command->algorithm = algorithm;
  command->in_place = (entry.flags & PEAL_SUBMIT_IN_PLACE) != 0;
  command->member = entry.member;
  command->context = context;
  command->sequence = entry.sequence;
  command->cookie = entry.cookie;
  command->root = static_cast<uint16_t>(root);
  command->block_bytes = static_cast<uint32_t>(entry.block_bytes);
  return algorithm->does.check(card, *found, entry, command);
}

}  // namespace peal
