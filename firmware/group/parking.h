// SPDX-License-Identifier: BSD-2-Clause
// Commands that were accepted but may not start yet, in order, under a quota of each group's own.
#pragma once

#include "firmware/base/assert.h"
#include "firmware/card_types.h"

namespace peal {

inline bool may_park(const Member& member) {
  return member.parked_count < CONFIG_PARKED_OPERATIONS;
}

inline void park_command(Member& member, const Command& command) {
  PEAL_ASSERT(may_park(member));
  const uint32_t at = (member.parked_head + member.parked_count) % CONFIG_PARKED_OPERATIONS;
  member.parked[at] = command;
  ++member.parked_count;
}

// The oldest; there must be one.
inline const Command& first_parked(const Member& member) {
  return member.parked[member.parked_head];
}

inline Command take_parked(Member& member) {
  const Command command = first_parked(member);
  member.parked_head = static_cast<uint16_t>((member.parked_head + 1) % CONFIG_PARKED_OPERATIONS);
  --member.parked_count;
  return command;
}

}  // namespace peal
