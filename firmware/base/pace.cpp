// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/base/pace.h"

#include "firmware/base/patience.h"

namespace peal {
namespace {

// Of what was learned this part is forgotten where an answer was quicker, and this one where it is
// of another time, most likely.
constexpr TimeNs kForgotten = 8;
constexpr TimeNs kForgottenSoon = 2;

// What lets kUnanswered go out in this time.
TimeNs price_for(const Pace& pace, const CardTimeouts& timeouts, TimeNs round_trip_ns) {
  const TimeNs price = round_trip_ns / kUnanswered;
  // However long it takes, a question goes out now and then, or nobody would find out who is dead.
  const TimeNs highest = timeouts.probe_interval_ns;
  if (price > highest) return highest > pace.lowest_ns ? highest : pace.lowest_ns;
  return price > pace.lowest_ns ? price : pace.lowest_ns;
}

// The longer nothing is answered, the dearer; the next answer tells what it really is.
TimeNs price_now(const Pace& pace, const CardTimeouts& timeouts, TimeNs now) {
  if (pace.waiting_ns == 0) return pace.price_ns;
  const TimeNs price = price_for(pace, timeouts, now + 1 - pace.waiting_ns);
  return price > pace.price_ns ? price : pace.price_ns;
}

// What a first interval brings at the lowest price, and four questions at any.
TimeNs most_credit(const CardTimeouts& timeouts, TimeNs price_ns) {
  return timeouts.nack_ns + 4 * price_ns;
}

void count_credit(Pace& pace, const CardTimeouts& timeouts, TimeNs price_ns, TimeNs now) {
  const TimeNs most = most_credit(timeouts, price_ns);
  const TimeNs grown = pace.credit_ns + (now - pace.paid_ns);
  pace.credit_ns = grown < most ? grown : most;
  pace.paid_ns = now;
}

bool pay(Pace& pace, const CardTimeouts& timeouts, TimeNs price_ns, TimeNs now) {
  count_credit(pace, timeouts, price_ns, now);
  if (pace.credit_ns < price_ns) return false;
  pace.credit_ns -= price_ns;
  return true;
}

// An answer was quicker than that. Where all questions of a round trip would cost no more than one
// did, what was learned is of another time, most likely: a card stood still. But who has answered
// may have no queue where others have: all of it is forgotten when the next answer says so, too,
// and this card has no queue itself that is as long as the least patience.
void fall_to(Pace& pace, const CardTimeouts& timeouts, TimeNs price, TimeNs behind_ns) {
  const bool far = kUnanswered * price <= pace.price_ns;
  const bool at_once = far && pace.fell_far && kPatienceLeast * behind_ns < timeouts.nack_ns;
  const TimeNs part = at_once ? 1 : far ? kForgottenSoon : kForgotten;
  pace.price_ns -= (pace.price_ns - price + part - 1) / part;
  pace.fell_far = far;
}

}  // namespace

Pace pace_start(const CardTimeouts& timeouts, TimeNs now, uint32_t per_interval) {
  const TimeNs price = timeouts.nack_ns / per_interval + 1;
  Pace pace = {.lowest_ns = price,
               .paid_ns = now,
               .credit_ns = 0,
               .price_ns = price,
               .waiting_ns = 0,
               .fell_far = false};
  pace.credit_ns = most_credit(timeouts, price);
  return pace;
}

bool pace_ask(Pace& pace, const CardTimeouts& timeouts, TimeNs now) {
  if (!pay(pace, timeouts, price_now(pace, timeouts, now), now)) return false;
  if (pace.waiting_ns == 0) pace.waiting_ns = now + 1;
  return true;
}

bool pace_repair(Pace& pace, const CardTimeouts& timeouts, TimeNs now) {
  return pay(pace, timeouts, pace.price_ns, now);
}

bool pace_is_scarce(Pace& pace, const CardTimeouts& timeouts, TimeNs now) {
  const TimeNs price = price_now(pace, timeouts, now);
  count_credit(pace, timeouts, price, now);
  return pace.credit_ns < most_credit(timeouts, price) / 2;
}

void pace_answered(Pace& pace, const CardTimeouts& timeouts, TimeNs after_ns, TimeNs behind_ns) {
  pace.waiting_ns = 0;
  const TimeNs price = price_for(pace, timeouts, after_ns);
  if (price >= pace.price_ns) {
    pace.price_ns = price;
    pace.fell_far = false;
  } else {
    fall_to(pace, timeouts, price, behind_ns);
  }
}

void pace_repaired(Pace& pace) { pace.waiting_ns = 0; }

void pace_repaired_after(Pace& pace, const CardTimeouts& timeouts, TimeNs after_ns,
                         TimeNs behind_ns) {
  const TimeNs price = price_for(pace, timeouts, after_ns);
  if (price < pace.price_ns) fall_to(pace, timeouts, price, behind_ns);
}

}  // namespace peal
