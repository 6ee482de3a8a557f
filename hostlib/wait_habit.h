// SPDX-License-Identifier: BSD-2-Clause
// For how long a wait looks and yields before it sleeps: a pure function of the times that it is
// told. Decision 0019 says how it came to be. Before its first yield it may look on (look_on.h).
//
// Looking costs nobody anything while the thread is alone on its processor. Where its yields find
// others it takes turns with the very ranks that it waits for, who may have something better to do;
// there it looks for a few times as long as being woken takes. And it learns how long waits are:
// where they are usually much longer than that, it looks for a moment only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "abi/wire.h"
#include "hostlib/look_on.h"

namespace peal::host {

// Without $PEAL_SPIN_US.
inline constexpr uint64_t kSpinDefaultNs = 1'000'000;

// What waits have taught, of one context. Needs the context's lock.
struct WaitHabit {
  uint64_t spin_ns = 0;    // no wait looks for longer; 0: all sleep at once
  uint64_t usual_ns = 0;   // how long waits are: an average in which the last ones count most
  bool alone = false;      // the last yield found nobody else on this processor
  uint64_t others_ns = 0;  // how long the last one that found somebody took
  uint32_t yields = 0;

  LookOnHabit look_on = {};
};

// One wait. Any number of them at a time share a habit.
class Wait {
 public:
  // A sched_yield() that returns this fast found nobody to run instead.
  static constexpr uint64_t kLoneYieldNs = 400;
  // Looks with a pause before such a yield; they take about as long.
  static constexpr int kPollsAlone = 16;
  // A wait looks for so long where others use the processor: two to four times a wake-up.
  static constexpr uint64_t kSharedNs = 400'000;
  // Where waits are usually longer than this, which no wake-up makes of a short one, it looks for a
  // moment, in which what was about to come comes.
  static constexpr uint64_t kLongNs = 1'000'000;
  static constexpr uint64_t kMomentNs = 5'000;
  // No wait counts for more: short ones are believed soon.
  static constexpr uint64_t kLongestNs = 4 * kLongNs;
  static constexpr uint64_t kSamples = 8;
  static constexpr uint32_t kTimedYields = 32;

  Wait(WaitHabit& habit, uint64_t now_ns, uint8_t operation = PEAL_OPERATION_NONE)
      : habit_(habit),
        look_on_(habit.look_on, operation),
        start_ns_(now_ns),
        brief_(habit.usual_ns > kLongNs) {}

  // For how long to look on before the first yield, which is no longer than half of what a yield
  // gives away; 0: not at all. Once in a wait.
  [[nodiscard]] uint64_t look_on_ns() {
    if (habit_.alone) return 0;
    return look_on_.ns(std::min(habit_.others_ns / 2, habit_.spin_ns));
  }
  void looked_on(uint64_t took_ns, bool there) { look_on_.looked(took_ns, there); }

  // Whether to look once more, or to sleep now.
  [[nodiscard]] bool looks(uint64_t now_ns) const { return now_ns - start_ns_ < limit_ns(); }

  // Whether the next yield is one of the few whose own cost is measured.
  [[nodiscard]] bool times_yield() { return habit_.yields++ % kTimedYields == 0; }

  // A yield returned after that time, with as long a busy wait before it where `paused`; this
  // thread had the processor for `own_ns` of it, 0: not measured.
  void yielded(uint64_t took_ns, bool paused, uint64_t own_ns = 0) {
    habit_.alone = took_ns < kLoneYieldNs + (paused ? kLoneYieldNs : 0);
    if (habit_.alone) return;
    habit_.others_ns = took_ns;
    shared_ = true;
    if (own_ns != 0) habit_.look_on.turn_cost(own_ns);
  }

  // What was waited for is there.
  void end(uint64_t now_ns) {
    const uint64_t waited_ns = std::min(now_ns - start_ns_, kLongestNs);
    habit_.usual_ns += waited_ns / kSamples - habit_.usual_ns / kSamples;
  }

 private:
  [[nodiscard]] uint64_t limit_ns() const {
    const uint64_t others_ns = brief_ ? kMomentNs : kSharedNs;
    return shared_ ? std::min(habit_.spin_ns, others_ns) : habit_.spin_ns;
  }

  WaitHabit& habit_;
  LookOn look_on_;
  uint64_t start_ns_;
  bool brief_;
  bool shared_ = false;  // others have used the processor meanwhile
};

}  // namespace peal::host
