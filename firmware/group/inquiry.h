// SPDX-License-Identifier: BSD-2-Clause
// When something that is awaited is asked for: after the member's patience first, then ever more
// seldom; of a peer that has promised to send when it has, long after. Every arrival begins anew,
// but for the promises. Peers that owe something are watched all the time, asked or not, so that
// death is told. docs/decisions/0016
#pragma once

#include "firmware/card_types.h"

namespace peal {

// The wait begins.
void inquiry_begin(const Card& card, const Member& member, Inquiry& inquiry);
// Something of what is awaited has come.
void inquiry_heard(const Card& card, const Member& member, Inquiry& inquiry);
// When to look again: a question is due, or those who owe something are to be watched.
[[nodiscard]] TimeNs inquiry_next(const Card& card, const Inquiry& inquiry);
// Looks: is a question due (may_ask() then says of whom), or only those who owe to be watched?
void inquiry_look(const Card& card, Inquiry& inquiry);
// Nothing can be asked now: when the interval is over again.
void inquiry_put_off(const Card& card, Inquiry& inquiry);
// This peer owes something: it is awaited. May it be asked now? Paid and counted.
[[nodiscard]] bool inquiry_may_ask(Card& card, Member& member, Inquiry& inquiry, Rank peer);
// Something that this peer sent is lost: nobody else may be asked, and it at once, whatever it
// promised.
void inquiry_suspect(Inquiry& inquiry, uint32_t entry);
// No longer. Was it asked? Until inquiry_answered() it soon is again.
[[nodiscard]] bool inquiry_cleared(const Card& card, const Member& member, Inquiry& inquiry);
// Is a question of what was lost unanswered?
inline bool inquiry_doubts(const Inquiry& inquiry, uint32_t entry) {
  return (inquiry.doubts >> entry & 1) != 0;
}
// This peer was asked for what is lost for certain: soon again if it does not answer.
void inquiry_doubt(const Card& card, const Member& member, Inquiry& inquiry, uint32_t entry);
// The peer has answered: the doubt is over.
void inquiry_answered(Inquiry& inquiry, uint32_t entry);
// The peer said "not yet", so long after it was asked, and whether that is for somebody's lateness.
void inquiry_promised(Card& card, Member& member, Inquiry& inquiry, uint32_t entry, TimeNs after_ns,
                      bool late);

}  // namespace peal
