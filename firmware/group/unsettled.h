// SPDX-License-Identifier: BSD-2-Clause
// Members with something left to end. A handler that ends an operation or a member only notes it
// here, and never loses the ground it stands on; operation/settle.h does the rest at the end of the
// card's entry point, in the order of the notes.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// Looks at the member at the end of the entry point: commands may start, or the member may go.
inline void note_unsettled(Card& card, Member& member) {
  if (member.unsettled.listed) return;
  member.unsettled.listed = true;
  const auto name = static_cast<uint16_t>(member.index + 1);
  if (card.due.unsettled == 0) {
    card.due.unsettled = name;
  } else {
    card.members[card.unsettled_last - 1].unsettled.next = name;
  }
  card.unsettled_last = name;
}

// An operation is over for the host, with the verdict in its record.
inline void note_ended(Card& card, Member& member, Operation& operation) {
  const auto name = static_cast<uint8_t>(operation.timer.slot + 1);
  operation.next_ended = 0;
  if (member.unsettled.ended == 0) {
    member.unsettled.ended = name;
  } else {
    member.operations[member.unsettled.ended_last - 1].next_ended = name;
  }
  member.unsettled.ended_last = name;
  note_unsettled(card, member);
}

}  // namespace peal
