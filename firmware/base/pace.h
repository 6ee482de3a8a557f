// SPDX-License-Identifier: BSD-2-Clause
// How fast a member asks and a card repairs. Questions are for losses; where cards cannot keep up
// they only add to the load, and what they ask for lies in some queue already. So a member pays for
// each question out of a credit that grows with time, and the price follows how long answers take,
// for that is how long the queues are (delay as the sign of congestion: Brakmo and Peterson). At
// most kUnanswered questions go out in one round trip; while the first answer is awaited, that
// means ever fewer: 16 in the first interval, 16 more until twice that time, 16 more until four
// times.
#pragma once

#include <cstdint>

#include "firmware/port.h"
#include "firmware/timeouts.h"

namespace peal {

struct Pace {
  TimeNs lowest_ns;   // price when nothing is wrong
  TimeNs paid_ns;     // until when the credit has been counted
  TimeNs credit_ns;   // unspent
  TimeNs price_ns;    // of one question or repair, as the answers say
  TimeNs waiting_ns;  // since when an answer, any answer, is awaited, plus one; 0: none is
  bool fell_far;      // the last answer was so much quicker that it is of another time
};

inline constexpr TimeNs kUnanswered = 16;
inline constexpr uint32_t kQuestionsPerInterval = 64;  // of a member, at the lowest price
inline constexpr uint32_t kRepairsPerInterval = 256;   // of a card

// With full credit, at the price that allows so many per first NACK interval.
Pace pace_start(const CardTimeouts& timeouts, TimeNs now, uint32_t per_interval);
// Pays for one question. False: not now.
[[nodiscard]] bool pace_ask(Pace& pace, const CardTimeouts& timeouts, TimeNs now);
// Pays for one repair, which nobody answers. False: not now.
[[nodiscard]] bool pace_repair(Pace& pace, const CardTimeouts& timeouts, TimeNs now);
// Less than half of the credit is left: what is not the oldest must wait.
[[nodiscard]] bool pace_is_scarce(Pace& pace, const CardTimeouts& timeouts, TimeNs now);
// The least that it makes sense to wait before asking: nothing, or where answers take longer than a
// first NACK interval, twice that.
[[nodiscard]] inline TimeNs pace_patience(const Pace& pace, const CardTimeouts& timeouts) {
  const TimeNs round_trips_ns = 2 * kUnanswered * pace.price_ns;
  if (round_trips_ns <= timeouts.nack_ns) return 0;
  return round_trips_ns < timeouts.nack_max_ns ? round_trips_ns : timeouts.nack_max_ns;
}
// "Not yet" came, so long after the question; this card's own queue is that long.
void pace_answered(Pace& pace, const CardTimeouts& timeouts, TimeNs after_ns, TimeNs behind_ns);
// A repair came: it does not say when it was asked for.
void pace_repaired(Pace& pace);
// One of which that is known, most likely, came, so long after: no queue was longer. (It may have
// waited for more than queues, so it makes nothing dearer.)
void pace_repaired_after(Pace& pace, const CardTimeouts& timeouts, TimeNs after_ns,
                         TimeNs behind_ns);

}  // namespace peal
