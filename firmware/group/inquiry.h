// SPDX-License-Identifier: BSD-2-Clause
// When something that is awaited is asked for: after the member's patience first, then ever more
// seldom; of a peer that has promised to send when it has, long after. Every arrival begins anew,
// but for the promises. Peers that owe something are watched all the time, asked or not, so that
// death is told. docs/decisions/0016
#pragma once

#include "firmware/base/clear.h"
#include "firmware/card_types.h"
#include "firmware/group/remote.h"

namespace peal {

// How long a wait is before its first question.
inline TimeNs inquiry_interval(const Card& card, const Member& member, TimeNs patience_ns) {
  const TimeNs queues_ns = pace_patience(member.pace, card.timeouts);
  return queues_ns > patience_ns ? queues_ns : patience_ns;
}
inline TimeNs inquiry_interval(const Card& card, const Member& member) {
  return inquiry_interval(card, member, member.patience.wait_ns);
}
// The same of this wait. Where nobody is late, what patience has learned of lateness does not
// count.
inline TimeNs inquiry_first_interval(const Card& card, const Member& member,
                                     const Inquiry& inquiry) {
  const bool late = inquiry.all_begun && member.patience.wait_ns > card.timeouts.nack_ns;
  return inquiry_interval(card, member, late ? card.timeouts.nack_ns : member.patience.wait_ns);
}
// A card that serves its timers late has a queue before it, and so have others, most likely: what
// it waits for lies in theirs first, then in its own, and so would the question and the answer. It
// does not ask before so many times that have passed. docs/decisions/0049
inline constexpr TimeNs kQueuesToWait = 4;
// Those who owe something are looked after so often in the time after which they are dead.
inline TimeNs watch_interval(const Card& card) { return card.timeouts.dead_ns / 8; }
// The wait begins.
void inquiry_begin(const Card& card, const Member& member, Inquiry& inquiry);
// The first one: nothing was asked, and nobody has promised anything. Returns when to look.
inline TimeNs inquiry_open(const Card& card, const Member& member, Inquiry& inquiry) {
  clear(inquiry);
  inquiry.heard_ns = inquiry.from_ns = card.now;
  inquiry.interval_ns = inquiry_interval(card, member);
  const TimeNs watch_ns = watch_interval(card);
  return card.now + (inquiry.interval_ns < watch_ns ? inquiry.interval_ns : watch_ns);
}
// Something of what is awaited has come. True where the wait must begin anew, which may shorten it:
// the timer must be armed no later than inquiry_next() then. (It is armed already where arrivals
// follow each other, and looks again when it fires.)
[[nodiscard]] inline bool inquiry_heard(const Card& card, Inquiry& inquiry) {
  const TimeNs waited_ns = card.now - inquiry.heard_ns;
  if (waited_ns > inquiry.longest_ns && !inquiry.asked) inquiry.longest_ns = waited_ns;
  inquiry.heard_ns = inquiry.from_ns = card.now;
  return inquiry.disturbed;
}
// Nobody is late for what is awaited, most likely: nobody's promise counts any more, and the wait
// is a first interval at the most, until somebody answers that he is.
void inquiry_all_begun(const Card& card, const Member& member, Inquiry& inquiry);
// When to look again: a question is due, or those who owe something are to be watched.
[[nodiscard]] TimeNs inquiry_next(const Card& card, const Inquiry& inquiry);
// Is the ordinary question due, to whoever owes something? What patience has learned since the wait
// began counts.
[[nodiscard]] bool inquiry_is_due(const Card& card, const Member& member, Inquiry& inquiry);
// Has nothing come for the least that anybody waits, and for as long as this card's queue takes?
[[nodiscard]] inline bool inquiry_is_silent(const Card& card, const Inquiry& inquiry) {
  const TimeNs silent_ns = card.now - inquiry.heard_ns;
  return silent_ns >= card.timeouts.nack_ns / kPatienceLeast && silent_ns >= card.behind_ns;
}
// Somebody asks for what this rank lacks itself. Where packets are lost it asks, too, whatever
// patience has learned of lateness: once in a silence of the least that anybody waits.
void inquiry_asked_for(Card& card, const Member& member, Inquiry& inquiry, Timer& timer);
// Not now: when the interval is over again.
inline void inquiry_put_off(const Card& card, Inquiry& inquiry) { inquiry.from_ns = card.now; }
// Nobody waits for what is awaited: no ordinary question before those who owe it have been looked
// after once more.
void inquiry_rest(const Card& card, Inquiry& inquiry);
// Somebody does: the interval begins.
inline void inquiry_wake(const Card& card, Inquiry& inquiry) {
  if (inquiry.from_ns > card.now) inquiry_put_off(card, inquiry);
}
// Begins a look: false when there is nothing to do. Between it and inquiry_looked(),
// inquiry_may_ask() is to be called for everybody who owes something.
[[nodiscard]] bool inquiry_look(const Card& card, const Member& member, Inquiry& inquiry);
inline void inquiry_looked(Inquiry& inquiry) {
  inquiry.asking = Asking::kAnybody;
  inquiry.hurried = inquiry.first = false;
  if (inquiry.owing == 0) return;
  inquiry.owing_before = inquiry.owing;
  inquiry.owing = 0;
  ++inquiry.turn;
}
// What a peer owes: what it may not have sent yet, or what had come from it and must be sent again.
// That nothing of its edge is lost speaks against asking for the first alone. Where of what it may
// not have sent several packets would have to be lost, it is late, most likely: that is asked for
// after a patience of its own. What is known to be lost is asked for in every look.
enum class Wanted : uint8_t { kFirst, kLate, kAgain, kLost };
inline bool may_be_unsent(Wanted wanted) { return wanted <= Wanted::kLate; }
// Somebody who seemed late was.
inline bool knows_of_lateness(const Member& member) {
  return member.late_patience.wait_ns > member.patience.wait_ns;
}
// What has been learned of silence, whichever patience has: that it is lateness.
inline bool takes_silence_for_lateness(const Card& card, const Member& member) {
  return knows_of_lateness(member) || member.patience.wait_ns > card.timeouts.nack_ns;
}
// Something was lost: to neither patience silence is lateness alone any more. Those whom it asks,
// answers or tells of an epoch's end learn it, too: a root, say, sees no loss of its own.
inline void note_loss(const Card& card, Member& member) {
  member.membership.losses = true;
  patience_lost(member.patience, card.timeouts);
  patience_lost(member.late_patience, card.timeouts);
}
// Which questions teach a rank that is late: the first alone, or each one.
enum class Lessons : uint8_t { kFirst, kEach };
// This rank, or one that it waits for, is late, and was asked for that: so will others be, as long
// as nothing was lost. It learns what a first question of its own would have told it; more it does
// not know, as others asked, perhaps one after the other. Where whoever asks waits for this rank
// alone, each question says how late it is: once in patience's own time.
inline void note_lateness(const Card& card, Member& member, Lessons lessons) {
  Patience& patience = member.patience;
  const bool learns = lessons == Lessons::kEach || patience.wait_ns <= card.timeouts.nack_ns;
  if (learns && patience.lossless) patience_in_vain(patience, card.timeouts, card.now);
}
// It is its own host that is away, since its last operation; and somebody who waits for this rank
// alone asks. (That one's record may be of a later operation by now: then it is not so long.)
inline void note_away(const Card& card, Member& member) {
  if (member.next_sequence == 0) return;
  const Operation& last = member.operations[(member.next_sequence - 1) % kChannels];
  patience_away(member.patience, card.timeouts, card.now - last.inquiry.heard_ns);
}
// No edge has shown a loss yet that this operation had to ask for, nor has it been held up.
inline bool inquiry_is_lossless(const Inquiry& inquiry) { return inquiry.suspects == 0; }
// This peer owes something: it is awaited. May it be asked now? Paid and counted.
[[nodiscard]] bool inquiry_may_ask(Card& card, Member& member, Inquiry& inquiry, Rank peer,
                                   Wanted wanted);

// Begins a look of another kind: something that this peer sent is lost. It is asked at once,
// whatever it promised, and nobody else.
void inquiry_suspect(Inquiry& inquiry, uint32_t entry);
inline bool asks_suspects(const Inquiry& inquiry) { return inquiry.asking == Asking::kSuspects; }
// May what the peer sent behind what has come still be on its way? Not where a packet of another
// operation shows the loss, and not where time has passed since: then it is asked for, too.
inline bool follows_perhaps(const Inquiry& inquiry) {
  return asks_suspects(inquiry) && !inquiry.all_sent && !inquiry.repeats;
}
// Ends the look that a gap has caused. Was the peer asked? Until inquiry_answered() it soon is
// again.
[[nodiscard]] bool inquiry_cleared(const Card& card, const Member& member, Inquiry& inquiry);

// This peer was asked for what is lost for certain, or where questions may be lost: soon again if
// it does not answer.
void inquiry_doubt(const Card& card, const Member& member, Inquiry& inquiry, uint32_t entry);
// Is such a question unanswered?
inline bool inquiry_doubts(const Inquiry& inquiry, uint32_t entry) {
  return (inquiry.doubts >> entry & 1) != 0;
}
// Is it one that a gap has caused? If nothing of the operation was lost, something else was.
inline bool inquiry_has_gap(const Inquiry& inquiry, uint32_t entry) {
  return (inquiry.gaps & inquiry.doubts) >> entry & 1;
}
// Was it last asked for what was lost for certain, or because somebody else asked? Such a question
// does not depend on patience, and its answer says nothing of it.
inline bool inquiry_was_certain(const Inquiry& inquiry, uint32_t entry) {
  return (inquiry.certain >> entry & 1) != 0;
}
// In doubts, what the operation itself knows to be lost, of whichever ranks: it stands whatever one
// of them answers, until the operation says that nothing is lost any more (inquiry_settled()).
inline constexpr uint32_t kLostEntry = kRemoteEntry;
void inquiry_settled(Inquiry& inquiry, uint32_t entry);
// The peer, which is in doubt, cannot send all of it again now: until it is asked again, no answer
// of its own ends the doubt.
void inquiry_held(Inquiry& inquiry, uint32_t entry);
// The peer has answered: but for those two the doubt is over.
void inquiry_answered(Inquiry& inquiry, uint32_t entry);
// A repair came of this rank. If it is the one whose answer is timed, and was asked once, that says
// how long queues are at the most. docs/decisions/0074
void inquiry_repaired(const Card& card, Member& member, Inquiry& inquiry, Rank rank);
// It said something else, which says itself how long that took: another one may be timed.
inline void inquiry_not_repaired(Inquiry& inquiry, Rank rank) {
  if (inquiry.timed_rank == rank) inquiry.timed = Timed::kNot;
}
// A peer said that it waits as well, so long after it was asked: for who is late, most likely, or
// not (patience_in_doubt()).
void inquiry_in_doubt(const Card& card, Member& member, const Inquiry& inquiry, TimeNs after_ns,
                      bool late);
// The peer said "not yet", so long after it was asked, and whether that is for somebody's lateness.
void inquiry_promised(Card& card, Member& member, Inquiry& inquiry, uint32_t entry, TimeNs after_ns,
                      bool late);

}  // namespace peal
