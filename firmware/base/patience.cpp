// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/base/patience.h"

namespace peal {
namespace {

// What the first loss leaves of patience.
constexpr TimeNs kFirstLoss = 4;
// What is a few times the longest wait.
constexpr TimeNs kEnough = 4;
// And the silence in which somebody was found to be late, who may be later the next time. Where
// nothing was lost yet it is learned at once how late ranks are: each question is one of few.
constexpr TimeNs kSilences = 5;
constexpr TimeNs kSilencesLossless = 16;
// So many where who was asked waits as well.
constexpr TimeNs kSilencesInDoubt = 8;
// And twice as many where it was longer than so many first intervals: that is no packet's way, nor
// ranks that start one after the other.
constexpr TimeNs kLongSilence = 4;
// One of so many answers in doubt is taken to be for who is late.
constexpr uint8_t kDoubts = 4;
// How much longer whoever seemed late, and was, is waited for.
constexpr TimeNs kLonger = 8;
// So many first intervals at the least: whoever computes does so for longer than a packet takes.
constexpr TimeNs kLateLeast = 4;

TimeNs within(const CardTimeouts& timeouts, TimeNs wait_ns) {
  const TimeNs least = timeouts.nack_ns / kPatienceLeast;
  const TimeNs most = timeouts.dead_ns / kPatienceMost;
  if (wait_ns < least) return least;
  return wait_ns < most ? wait_ns : most;
}

void wait_at_least(Patience& patience, const CardTimeouts& timeouts, TimeNs wait_ns) {
  if (wait_ns > patience.wait_ns) patience.wait_ns = within(timeouts, wait_ns);
}

// So many times as long, but no longer than is enough after such a silence: an inquiry asks again
// after twice the time, and each answer in vain is of the same lateness.
void wait_longer(Patience& patience, const CardTimeouts& timeouts, TimeNs times, TimeNs enough_ns) {
  const TimeNs longer_ns = times * patience.wait_ns;
  wait_at_least(patience, timeouts, longer_ns < enough_ns ? longer_ns : enough_ns);
}

}  // namespace

void patience_in_vain(Patience& patience, const CardTimeouts& timeouts, TimeNs asked_ns,
                      TimeNs silent_ns, TimeNs now) {
  if (asked_ns < patience.learned_ns) return;
  if (patience.lossless) {
    wait_at_least(patience, timeouts, kSilencesLossless * silent_ns);
  } else {
    wait_longer(patience, timeouts, 2, kSilences * silent_ns);
  }
  if (patience.calm < kCalmMost) ++patience.calm;
  patience.learned_ns = now;
}

void patience_late(Patience& patience, const CardTimeouts& timeouts, TimeNs asked_ns,
                   TimeNs silent_ns, TimeNs now, bool lossless) {
  if (asked_ns < patience.learned_ns) return;
  wait_longer(patience, timeouts, kLonger, kLonger * silent_ns);
  const TimeNs least_ns = lossless ? kLateLeast * timeouts.nack_ns : 0;
  if (patience.wait_ns < least_ns) patience.wait_ns = within(timeouts, least_ns);
  patience.learned_ns = now;
}

void patience_away(Patience& patience, const CardTimeouts& timeouts, TimeNs away_ns) {
  if (patience.lossless) wait_at_least(patience, timeouts, kSilencesLossless * away_ns);
}

void patience_told(Patience& patience, const CardTimeouts& timeouts, uint32_t patience_ms) {
  if (patience.lossless) wait_at_least(patience, timeouts, patience_ms * TimeNs{1000000});
}

void patience_in_doubt(Patience& patience, const CardTimeouts& timeouts, TimeNs asked_ns,
                       TimeNs silent_ns, TimeNs now, bool late) {
  if (asked_ns < patience.learned_ns || !patience.lossless) return;
  if (!late) {
    if (asked_ns < patience.doubted_ns) return;
    patience.doubted_ns = now;
    if (++patience.doubts < kDoubts) return;
    patience.doubts = 0;
  }
  const bool is_long = silent_ns > kLongSilence * timeouts.nack_ns;
  wait_at_least(patience, timeouts,
                (is_long ? 2 * kSilencesInDoubt : kSilencesInDoubt) * silent_ns);
  patience.learned_ns = now;
}

void patience_in_vain(Patience& patience, const CardTimeouts& timeouts, TimeNs now) {
  if (now < patience.learned_ns + patience.wait_ns) return;
  patience_in_vain(patience, timeouts, now, patience.wait_ns, now);
}

void patience_lost(Patience& patience, const CardTimeouts& timeouts) {
  if (!patience.lossless) return;
  patience.lossless = false;
  const TimeNs least_ns = timeouts.nack_ns / kFirstLoss;
  const TimeNs wait_ns = patience.wait_ns / kFirstLoss;
  if (patience.wait_ns > least_ns) patience.wait_ns = wait_ns > least_ns ? wait_ns : least_ns;
}

void patience_worth_it(Patience& patience, const CardTimeouts& timeouts, TimeNs now) {
  if (now < patience.learned_ns + patience.wait_ns) return;
  patience.wait_ns = within(timeouts, patience.wait_ns - patience.wait_ns / 2);
  patience_lost(patience, timeouts);
  if (patience.calm > kCalmLeast) --patience.calm;
  patience.learned_ns = now;
}

void patience_not_for_lateness(Patience& patience, const CardTimeouts& timeouts) {
  if (patience.wait_ns <= timeouts.nack_ns) return;
  const TimeNs half_ns = patience.wait_ns / 2;
  patience.wait_ns = half_ns > timeouts.nack_ns ? half_ns : timeouts.nack_ns;
}

void patience_undisturbed(Patience& patience, const CardTimeouts& timeouts, TimeNs longest_ns) {
  if (longest_ns == 0) return;
  const TimeNs enough = kEnough * longest_ns;
  if (enough < patience.wait_ns) {
    patience.wait_ns =
        within(timeouts, patience.wait_ns - ((patience.wait_ns - enough) >> patience.calm));
  }
}

}  // namespace peal
