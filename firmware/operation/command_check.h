// SPDX-License-Identifier: BSD-2-Clause
// A submission entry, as the host wrote it, becomes a command or a named refusal.
// Nothing here changes anything.
#pragma once

#include "firmware/base/kept.h"
#include "firmware/card_types.h"

namespace peal {

// Whose it is; null where the context has no such member, or a member that can do nothing.
inline Member* find_commanded(Card& card, ContextId context, const peal_submission& entry) {
  const uint32_t index = entry.member & 0xffff;
  if (index >= CONFIG_CARD_MEMBERS) return nullptr;
  Member& member = kept(card.members[index]);
  const bool good = member.phase == MemberPhase::kActive && member.context == context &&
                    member.generation == entry.member >> 16;
  return good ? &member : nullptr;
}

// OK and *command, or why not.
peal_status check_command(Card& card, Member& member, const peal_submission& entry,
                          Command* command);

}  // namespace peal
