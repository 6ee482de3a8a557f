// SPDX-License-Identifier: BSD-2-Clause
// How long a member waits in silence before it asks. Nobody knows beforehand whether silence is
// lateness or loss; what questions were worth says which it has been of late. A question that was
// answered "not yet" came too early: patience doubles, but not beyond five times the silence that
// there has been; and as long as nothing was lost, as far as is known, it is sixteen times that
// silence; not by one that patience did not ask. One that brought a repair could have come sooner:
// it halves. An operation that nobody had to ask for says how long its waits were, and patience
// comes down to a few times that, the more slowly the more questions were in vain of late. So where
// nothing is lost hardly anything is asked whatever the lateness, and where packets are lost about
// every other question is in vain. A member has two: lateness that was seen makes the second one
// longer, before questions for what seems late, and not the one before those for what began and has
// stopped.
// docs/decisions/0016, 0053, 0072, 0075, 0078, 0081, 0084
#pragma once

#include <cstdint>

#include "firmware/port.h"
#include "firmware/timeouts.h"

namespace peal {

struct Patience {
  TimeNs wait_ns;
  TimeNs learned_ns;  // when an answer last changed it: those to older questions are not news
  uint32_t calm;      // log2 of how slowly it comes down by itself
  bool lossless;      // nothing was lost yet, as far as is known
  uint8_t doubts;     // answers in doubt that were only counted
  TimeNs doubted_ns;  // when the last one was
};

// Limits: a first NACK interval at first, never less than a 24th of it, never longer than half of
// the silence of the dead.
inline constexpr TimeNs kPatienceLeast = 24;
inline constexpr TimeNs kPatienceMost = 2;
inline constexpr uint32_t kCalmLeast = 4;
inline constexpr uint32_t kCalmMost = 8;
// From this calm on so many more questions have been in vain lately than were worth it that silence
// is lateness, most likely.
inline constexpr uint32_t kCalmInVain = kCalmLeast + 2;

inline Patience patience_start(const CardTimeouts& timeouts, TimeNs now) {
  return {.wait_ns = timeouts.nack_ns,
          .learned_ns = now,
          .calm = kCalmLeast,
          .lossless = true,
          .doubts = 0,
          .doubted_ns = now};
}
// "Not yet", for somebody's lateness, to a question asked then, after so long a silence.
void patience_in_vain(Patience& patience, const CardTimeouts& timeouts, TimeNs asked_ns,
                      TimeNs silent_ns, TimeNs now);
// The same to one for what seemed late, which has a patience of its own: eight times as long, and
// as the silence; where its operation has had nothing to ask for that an edge showed, four first
// intervals at the least.
void patience_late(Patience& patience, const CardTimeouts& timeouts, TimeNs asked_ns,
                   TimeNs silent_ns, TimeNs now, bool lossless);
// Somebody's host has been away for so long: as long as nothing was lost, as far as is known, that
// is as good as a silence.
void patience_away(Patience& patience, const CardTimeouts& timeouts, TimeNs away_ns);
// Another rank's patience, as patience_to_tell() says it: as long as nothing was lost here either,
// it is no shorter.
void patience_told(Patience& patience, const CardTimeouts& timeouts, uint32_t patience_ms);
// In whole milliseconds, as many as there is room for; zero where something was lost: it is no
// longer for lateness alone.
inline uint16_t patience_to_tell(const Patience& patience) {
  const TimeNs ms = patience.lossless ? patience.wait_ns / 1000000 : 0;
  return ms < UINT16_MAX ? static_cast<uint16_t>(ms) : UINT16_MAX;
}
// "Not yet" of one that waits as well, for who is late or for what is lost: as long as nothing was
// lost, as far as is known here, patience becomes eight times the silence, or sixteen times a long
// one. Where it need not be for who is late (`late`: it is, most likely) every fourth such answer
// to questions that were asked one after the other is.
void patience_in_doubt(Patience& patience, const CardTimeouts& timeouts, TimeNs asked_ns,
                       TimeNs silent_ns, TimeNs now, bool late);
// A repair of what had come meanwhile, or what an own question would have been answered: nothing
// says when that was asked.
void patience_in_vain(Patience& patience, const CardTimeouts& timeouts, TimeNs now);
// A repair brought what was missing.
void patience_worth_it(Patience& patience, const CardTimeouts& timeouts, TimeNs now);
// The same of what nobody was late for: lateness is over, and what was learned of it may go,
// however soon after the last repair. Patience halves, down to what it is at first.
void patience_not_for_lateness(Patience& patience, const CardTimeouts& timeouts);
// Something was lost: silence need not be lateness. The first time patience comes to a quarter, as
// it grew sooner while nothing was; down to a quarter of what it is at first.
void patience_lost(Patience& patience, const CardTimeouts& timeouts);
// An operation is over without a question; its longest wait. A part of the way at a time (calm):
// what came late once may do so again. One for which all had come before it was posted says
// nothing of how late others may be.
void patience_undisturbed(Patience& patience, const CardTimeouts& timeouts, TimeNs longest_ns);
// Can one of the two come down at all? Neither is ever below the least: where the bits of both
// together are that, both are there.
inline bool patience_may_come_down(const Patience& patience, const Patience& other,
                                   const CardTimeouts& timeouts) {
  return (patience.wait_ns | other.wait_ns) * kPatienceLeast > timeouts.nack_ns;
}

}  // namespace peal
