// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/base/patience.h"

namespace peal {
namespace {

// What is a few times the longest wait.
constexpr TimeNs kEnough = 4;
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

}  // namespace

void patience_in_vain(Patience& patience, const CardTimeouts& timeouts, TimeNs asked_ns,
                      TimeNs now) {
  if (asked_ns < patience.learned_ns) return;
  patience.wait_ns = within(timeouts, (patience.lossless ? 4 : 2) * patience.wait_ns);
  if (patience.calm < kCalmMost) ++patience.calm;
  patience.learned_ns = now;
}

void patience_late(Patience& patience, const CardTimeouts& timeouts, TimeNs asked_ns, TimeNs now,
                   bool lossless) {
  if (asked_ns < patience.learned_ns) return;
  const TimeNs least_ns = lossless ? kLateLeast * timeouts.nack_ns : 0;
  const TimeNs longer_ns = kLonger * patience.wait_ns;
  patience.wait_ns = within(timeouts, longer_ns > least_ns ? longer_ns : least_ns);
  patience.learned_ns = now;
}

void patience_in_doubt(Patience& patience, const CardTimeouts& timeouts, TimeNs asked_ns,
                       TimeNs now) {
  if (asked_ns < patience.learned_ns || !patience.lossless) return;
  if (patience.wait_ns >= 2 * timeouts.nack_ns) return;
  patience.wait_ns = within(timeouts, 2 * patience.wait_ns);
  patience.learned_ns = now;
}

void patience_in_vain(Patience& patience, const CardTimeouts& timeouts, TimeNs now) {
  if (now < patience.learned_ns + patience.wait_ns) return;
  patience_in_vain(patience, timeouts, now, now);
}

void patience_worth_it(Patience& patience, const CardTimeouts& timeouts, TimeNs now) {
  if (now < patience.learned_ns + patience.wait_ns) return;
  const TimeNs less = patience.wait_ns / (patience.calm < kCalmInVain ? 2 : 8);
  patience.wait_ns = within(timeouts, patience.wait_ns - less);
  patience_lost(patience);
  if (patience.calm > kCalmLeast) --patience.calm;
  patience.learned_ns = now;
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
