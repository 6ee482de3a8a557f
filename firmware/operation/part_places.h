// SPDX-License-Identifier: BSD-2-Clause
// A member's places for tables of parts (parts.h). Its operations get them in the order of their
// sequence: so the oldest of a group has one on every card, and ends. docs/decisions/0020
#pragma once

#include "firmware/card_types.h"

namespace peal {

// Takes a place, if it is the operation's turn and one is free. If not the member remembers that
// somebody waits.
[[nodiscard]] bool part_place_take(Member& member, Operation& operation);
// The operation is over for the host.
void part_place_give_back(Member& member, Operation& operation);
inline void part_place_release(Member& member, Operation& operation) {
  if (operation.parts_phase != PartsPhase::kNone) part_place_give_back(member, operation);
}
// Whose turn it is, or null.
Operation* part_place_next(Member& member);

}  // namespace peal
