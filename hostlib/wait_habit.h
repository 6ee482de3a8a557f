// SPDX-License-Identifier: BSD-2-Clause
// For how long a wait looks before it yields, and looks and yields before it sleeps: a pure
// function of the times that it is told. Decisions 0085, 0100 and 0019 say how it came to be.
//
// A yield gives the processor to all the others there, for a turn each. What the own card does by
// itself, within a microsecond or two, is looked for instead; what other ranks have to do may need
// this very processor. Which it is, is learned, of each kind of operation.
//
// Looking costs nobody anything while the thread is alone on its processor. Where its yields find
// others it takes turns with the very ranks that it waits for, who may have something better to do;
// there it looks for a few times as long as being woken takes. And it learns how long waits are:
// where they are usually much longer than that, it looks for a moment only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "abi/wire.h"

namespace peal::host {

// Without $PEAL_SPIN_US.
inline constexpr uint64_t kSpinDefaultNs = 1'000'000;

// What waits have taught, of one context. Needs the context's lock.
struct WaitHabit {
  uint64_t spin_ns = 0;    // no wait looks for longer; 0: all sleep at once
  uint64_t usual_ns = 0;   // how long waits are: an average in which the last ones count most
  bool alone = false;      // the last yield found nobody else on this processor
  uint64_t others_ns = 0;  // how long the last one that found somebody took

  // Whether looking on helps, of one kind of operation.
  struct LookOn {
    static constexpr uint16_t kMostNs = 4'000;
    uint16_t helped = UINT16_MAX / 8 * 3;  // in how many of UINT16_MAX, the last counting most
    uint16_t took_ns = kMostNs;            // where it helped, likewise
    uint16_t trial_in = 0;                 // so many waits, where it helps too seldom
    uint8_t history = 0;  // whether it helped: the last eight, the last one's least
    uint8_t hopes = 0;    // of the waits since the last trial whose history says that it will not
  };
  // By enum peal_operation; what waits for any of several is NONE.
  std::array<LookOn, PEAL_OPERATION_COUNT> look_on = {};
  // In how many of UINT8_MAX it helped after each history, the last counting most; 0: not known.
  // All kinds have their places here, which may meet.
  std::array<uint8_t, 256> helped_after = {};
};

// One wait. Any number of them at a time share a habit.
class Wait {
 public:
  // A sched_yield() that returns this fast found nobody to run instead.
  static constexpr uint64_t kLoneYieldNs = 400;
  // A wait looks for so long where others use the processor: two to four times a wake-up.
  static constexpr uint64_t kSharedNs = 400'000;
  // Where waits are usually longer than this, which no wake-up makes of a short one, it looks for a
  // moment, in which what was about to come comes.
  static constexpr uint64_t kLongNs = 1'000'000;
  static constexpr uint64_t kMomentNs = 5'000;
  // No wait counts for more: short ones are believed soon.
  static constexpr uint64_t kLongestNs = 4 * kLongNs;
  static constexpr uint64_t kSamples = 8;

  // Looking on takes no longer than this, nor than half of what a yield gives away; and usually no
  // longer than twice what it takes where it helps.
  static constexpr uint64_t kLookOnNs = WaitHabit::LookOn::kMostNs;
  // It is done where it helped in one of four; otherwise in one of so many waits, to see.
  static constexpr uint16_t kHelpedEnough = UINT16_MAX / 4;
  static constexpr uint16_t kTrialEvery = 128;
  static constexpr uint16_t kLookOnSamples = 32;
  // Nor where it helped in fewer than one of eight after the same history. The less it helped, the
  // less often that is tried again: when what is still hoped of such waits adds up to kHopes.
  static constexpr uint8_t kDoubted = UINT8_MAX / 8;
  static constexpr uint8_t kAfterSamples = 4;
  static constexpr uint8_t kLeastHope = kAfterSamples - 1;
  static constexpr uint8_t kHopes = 32 * kLeastHope;
  static constexpr uint8_t kKindsApart = 17;  // so that what never helps meets no other kind's

  Wait(WaitHabit& habit, uint64_t now_ns, uint8_t operation = PEAL_OPERATION_NONE)
      : habit_(habit),
        look_on_(habit.look_on[operation < PEAL_OPERATION_COUNT ? operation : 0]),
        kind_(operation),
        sends_(operation == PEAL_OPERATION_SEND),
        start_ns_(now_ns),
        brief_(habit.usual_ns > kLongNs) {}

  // For how long to look on before the first yield; 0: not at all. Once in a wait. Never of one
  // send: that ends as soon, but what is waited for next is the answer of one who had no turn yet.
  [[nodiscard]] uint64_t look_on_ns() {
    const uint64_t ns = std::min({kLookOnNs, habit_.others_ns / 2, habit_.spin_ns});
    if (habit_.alone || sends_ || ns == 0) return 0;
    if (look_on_.helped >= kHelpedEnough) {
      if (!is_doubted()) return std::min(ns, uint64_t{2} * look_on_.took_ns);
      add_to_history(false);
      return 0;
    }
    if (look_on_.trial_in == 0) return ns;
    look_on_.trial_in--;
    return 0;
  }

  // So long was looked on; whether what was waited for is there.
  void looked_on(uint64_t took_ns, bool there) {
    uint8_t& after = helped_after();
    if (after == 0) after = UINT8_MAX / 8 * 3;
    after += there ? (UINT8_MAX - after) / kAfterSamples : -(after / kAfterSamples);
    add_to_history(there);
    if (there) {
      look_on_.helped += (UINT16_MAX - look_on_.helped) / kLookOnSamples;
      const uint64_t took = std::min(took_ns, kLookOnNs);
      const uint64_t average = (look_on_.took_ns * (kSamples - 1) + took) / kSamples;
      look_on_.took_ns = static_cast<uint16_t>(std::max(average, uint64_t{1}));
      return;
    }
    look_on_.helped -= look_on_.helped / kLookOnSamples;
    if (look_on_.helped < kHelpedEnough) look_on_.trial_in = kTrialEvery - 1;
  }

  // Whether to look once more, or to sleep now.
  [[nodiscard]] bool looks(uint64_t now_ns) const { return now_ns - start_ns_ < limit_ns(); }

  // A yield returned after that time, with as long a busy wait before it where `paused`.
  void yielded(uint64_t took_ns, bool paused) {
    habit_.alone = took_ns < kLoneYieldNs + (paused ? kLoneYieldNs : 0);
    if (habit_.alone) return;
    habit_.others_ns = took_ns;
    shared_ = true;
  }

  // What was waited for is there.
  void end(uint64_t now_ns) {
    const uint64_t waited_ns = std::min(now_ns - start_ns_, kLongestNs);
    habit_.usual_ns += waited_ns / kSamples - habit_.usual_ns / kSamples;
  }

 private:
  // Whether the waits before say that this one would look in vain, and no trial is due.
  [[nodiscard]] bool is_doubted() {
    const uint8_t after = helped_after();
    if (after == 0 || after >= kDoubted) return false;
    look_on_.hopes += after;
    if (look_on_.hopes < kHopes) return true;
    look_on_.hopes -= kHopes;
    return false;
  }

  [[nodiscard]] uint8_t& helped_after() {
    return habit_.helped_after[static_cast<uint8_t>(look_on_.history + kKindsApart * kind_)];
  }

  void add_to_history(bool helped) {
    look_on_.history = static_cast<uint8_t>(look_on_.history << 1 | (helped ? 1 : 0));
  }

  [[nodiscard]] uint64_t limit_ns() const {
    const uint64_t others_ns = brief_ ? kMomentNs : kSharedNs;
    return shared_ ? std::min(habit_.spin_ns, others_ns) : habit_.spin_ns;
  }

  WaitHabit& habit_;
  WaitHabit::LookOn& look_on_;
  uint8_t kind_;
  bool sends_;
  uint64_t start_ns_;
  bool brief_;
  bool shared_ = false;  // others have used the processor meanwhile
};

}  // namespace peal::host
