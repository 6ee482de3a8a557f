// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/command_check.h"

#include "firmware/base/mutation.h"
#include "firmware/group/member.h"

namespace peal {
namespace {

peal_status check_range(Card& card, ContextId context, uint32_t key, uint64_t offset,
                        uint64_t bytes, uint32_t access, HostAddress* address) {
  const MemoryKey* entry = find_key(card, context, key);
  if (entry == nullptr) return PEAL_STATUS_BAD_KEY;
  if ((entry->access & access) != access) return PEAL_STATUS_BAD_ACCESS;
  if (!mutated(Mutation::kNoBoundsCheck) &&
      (offset > entry->bytes || bytes > entry->bytes - offset)) {
    return PEAL_STATUS_BAD_BOUNDS;
  }
  *address = {entry->region, offset};
  return PEAL_STATUS_OK;
}

peal_status check_allgather(Card& card, const Member& member, const peal_submission& entry,
                            Command* command) {
  if (entry.algorithm != PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST &&
      entry.algorithm != PEAL_ALGORITHM_RECURSIVE_DOUBLING) {
    return PEAL_STATUS_BAD_ALGORITHM;
  }
  if (entry.block_bytes > 0xffffffffu) return PEAL_STATUS_BAD_LENGTH;
  if (entry.block_bytes == 0) return PEAL_STATUS_OK;  // a barrier of sorts: touches no memory
  const uint64_t block = entry.block_bytes;
  const uint64_t total = block * member.membership.ranks;  // below 2^42
  peal_status status = check_range(card, member.context, entry.receive_key, entry.receive_offset,
                                   total, PEAL_ACCESS_WRITE, &command->receive);
  if (status != PEAL_STATUS_OK) return status;
  command->receive_key = entry.receive_key;
  if (!command->in_place) {
    status = check_range(card, member.context, entry.send_key, entry.send_offset, block,
                         PEAL_ACCESS_READ, &command->send);
    command->send_key = entry.send_key;
    return status;
  }
  const uint64_t own = entry.receive_offset + block * member.membership.rank;
  status = check_range(card, member.context, entry.receive_key, own, block, PEAL_ACCESS_READ,
                       &command->send);
  command->send_key = entry.receive_key;
  return status;
}

}  // namespace

MemoryKey* find_key(Card& card, ContextId context, uint32_t key) {
  const uint32_t index = key & 0xffff;
  if (index >= CONFIG_MEMORY_KEYS) return nullptr;
  MemoryKey& entry = card.keys[index];
  const bool good = entry.in_use && entry.generation == key >> 16 && entry.context == context;
  return good ? &entry : nullptr;
}

peal_status check_command(Card& card, ContextId context, const peal_submission& entry,
                          Member** member, Command* command) {
  *member = nullptr;
  *command = {};
  Member* found = find_member(card, entry.member);
  if (found == nullptr || found->context != context || found->phase != MemberPhase::kActive) {
    return PEAL_STATUS_BAD_GROUP;
  }
  *member = found;
  if (entry.opcode != PEAL_OPERATION_BARRIER && entry.opcode != PEAL_OPERATION_ALLGATHER &&
      entry.opcode != PEAL_OPERATION_DESTROY) {
    return PEAL_STATUS_BAD_OPCODE;
  }
  const bool gathers = entry.opcode == PEAL_OPERATION_ALLGATHER;
  const uint32_t flags = gathers ? PEAL_SUBMIT_FLAGS : 0;
  if ((entry.flags & ~flags) != 0 ||
      (entry.reserved[0] | entry.reserved[1] | entry.reserved[2]) != 0) {
    return PEAL_STATUS_BAD_FLAGS;
  }
  if (entry.root != 0) return PEAL_STATUS_BAD_ROOT;
  if (found->destroying) return PEAL_STATUS_CLOSED;
  if (entry.sequence != found->next_sequence) return PEAL_STATUS_BAD_SEQUENCE;
  command->opcode = entry.opcode;
  command->algorithm = entry.algorithm;
  command->in_place = (entry.flags & PEAL_SUBMIT_IN_PLACE) != 0;
  command->member = entry.member;
  command->context = context;
  command->sequence = entry.sequence;
  command->cookie = entry.cookie;
  command->block_bytes = static_cast<uint32_t>(entry.block_bytes);
  if (gathers) return check_allgather(card, *found, entry, command);
  if (entry.algorithm != PEAL_ALGORITHM_DISSEMINATION) return PEAL_STATUS_BAD_ALGORITHM;
  return entry.block_bytes == 0 ? PEAL_STATUS_OK : PEAL_STATUS_BAD_LENGTH;
}

}  // namespace peal
