// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/command_check.h"

#include <bit>
#include <cstddef>
#include <cstring>

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

// All but the phase, which is the ring's.
uint32_t reserved_bits(const peal_submission& entry) {
  constexpr uint8_t kReserved[] = {0xff, 0xff, 0xff, 0};
  uint32_t bits;
  static_assert(offsetof(peal_submission, phase) == offsetof(peal_submission, reserved) + 3);
  std::memcpy(&bits, reinterpret_cast<const uint8_t*>(&entry) + offsetof(peal_submission, reserved),
              sizeof(bits));
  return bits & std::bit_cast<uint32_t>(kReserved);
}

// Is a root that is not rank 0 one? Where there are parts it shares its field with the table's key.
bool take_root(const Algorithm& algorithm, const Member& member, uint32_t* root) {
  if (algorithm.lengths == Lengths::kOfParts) {
    *root = 0;
    return true;
  }
  return algorithm.rooted && *root < member.membership.ranks;
}

}  // namespace

peal_status check_command(Card& card, Member& member, const peal_submission& entry,
                          Command* command) {
  const Algorithm* algorithm = find_algorithm(entry.operation, entry.algorithm);
  if (algorithm == nullptr || (entry.flags & ~uint32_t{algorithm->flags}) != 0 ||
      reserved_bits(entry) != 0 || member.destroying || entry.sequence != member.next_sequence ||
      member.membership.ranks > algorithm->ranks_max ||
      (algorithm->senders == Senders::kGroup && !knows_everybody(member))) {
    return why_not(member, entry);
  }
  uint32_t root = entry.root;
  if (root != 0 && !take_root(*algorithm, member, &root)) return PEAL_STATUS_BAD_ROOT;
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
