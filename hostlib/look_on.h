// SPDX-License-Identifier: BSD-2-Clause
// Whether a wait looks on before its first yield: a pure function of the times that it is told.
// Decisions 0085 and 0100 say how it came to be.
//
// A yield gives the processor to all the others there, for a turn each. What the own card does by
// itself, within a microsecond or two, is looked for instead; what other ranks have to do may need
// this very processor. Which it is, is learned: of each kind of operation, after each history of
// the last looks of that kind, as a processor foresees its branches.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "abi/wire.h"

namespace peal::host {

// What looks have taught, of one context. Needs the context's lock.
struct LookOnHabit {
  static constexpr uint16_t kMostNs = 4'000;

  struct Kind {
    uint16_t took_ns = 0;  // where it helped, the last ones counting most; 0: it never did
    uint16_t hopes = 0;    // of what was not looked for, since the last trial
    uint8_t history = 0;   // of the last eight waits, whether it helped; the last one's least
  };

  uint64_t turn_ns = 0;  // what giving way and coming back costs this processor; 0: not known
  // By enum peal_operation; what waits for any of several is NONE.
  std::array<Kind, PEAL_OPERATION_COUNT> kinds = {};
  // In how many of UINT8_MAX it helped after each history, the last counting most; 0: not known.
  // All kinds have their places here, which may meet.
  std::array<uint8_t, 256> helped_after = {};

  // A yield that found others cost so much of this processor's time.
  void turn_cost(uint64_t ns) {
    const uint64_t bounded = std::clamp(ns, uint64_t{1}, turn_ns == 0 ? ns + 1 : 2 * turn_ns);
    turn_ns = turn_ns == 0 ? bounded : (turn_ns * 7 + bounded + 7) / 8;
  }
};

class LookOn {
 public:
  // It takes no longer than this, and usually no longer than twice what it takes where it helps.
  static constexpr uint64_t kMostNs = LookOnHabit::kMostNs;
  // Of an operation that the card carries out alone, it is worth it where one of four helps. What
  // many wait for together has many waits, and is worth what it saves: see enough().
  static constexpr uint8_t kQuarter = UINT8_MAX / 4;
  static constexpr uint8_t kUntried = UINT8_MAX / 8 * 3;
  static constexpr uint8_t kAfterSamples = 4;
  static constexpr uint8_t kMostHelped = UINT8_MAX - (kAfterSamples - 1);
  static constexpr uint16_t kTookSamples = 4;
  static constexpr uint64_t kGuessNs = 1'000;  // before anything helped
  // What is not worth it is tried again when what is hoped of such waits adds up to kHopes: the
  // less often the less it helped.
  static constexpr uint8_t kLeastHope = kAfterSamples - 1;
  static constexpr uint16_t kTrialEvery = 128;
  static constexpr uint16_t kHopes = kTrialEvery * kLeastHope;
  static constexpr uint8_t kKindsApart = 17;  // so that what never helps meets no other kind's

  LookOn(LookOnHabit& habit, uint8_t operation)
      : habit_(habit),
        operation_(operation < PEAL_OPERATION_COUNT ? operation : uint8_t{PEAL_OPERATION_NONE}),
        kind_(habit.kinds[operation_]) {}

  // For how long, of `most_ns`; 0: not at all. Once in a wait. Never of one send: that ends as
  // soon, but what is waited for next is the answer of one who had no turn yet.
  [[nodiscard]] uint64_t ns(uint64_t most_ns) {
    most_ns = std::min(most_ns, kMostNs);
    if (operation_ == PEAL_OPERATION_SEND || most_ns == 0) return 0;
    const uint8_t expected = helped_after() == 0 ? kUntried : helped_after();
    const uint64_t needed = enough();
    if (expected >= needed) {
      return kind_.took_ns == 0 ? most_ns : std::min(most_ns, uint64_t{2} * kind_.took_ns);
    }
    kind_.hopes += hope(expected, needed);
    if (kind_.hopes >= kHopes) {
      kind_.hopes = 0;
      return most_ns;
    }
    add_to_history(false);
    return 0;
  }

  // So long was looked on; whether what was waited for is there.
  void looked(uint64_t took_ns, bool there) {
    uint8_t& after = helped_after();
    if (after == 0) after = kUntried;
    after += there ? (UINT8_MAX - after) / kAfterSamples : -(after / kAfterSamples);
    add_to_history(there);
    if (!there) return;
    const auto took = static_cast<uint16_t>(std::clamp(took_ns, uint64_t{1}, kMostNs));
    const uint16_t before = kind_.took_ns == 0 ? took : kind_.took_ns;
    kind_.took_ns = static_cast<uint16_t>((before * (kTookSamples - 1) + took) / kTookSamples);
  }

 private:
  // In how many of UINT8_MAX it must help. One that helps takes `took`, and saves a turn; one in
  // vain takes twice that.
  [[nodiscard]] uint64_t enough() const {
    const bool own = operation_ == PEAL_OPERATION_PUT || operation_ == PEAL_OPERATION_GET ||
                     operation_ == PEAL_OPERATION_FENCE || operation_ == PEAL_OPERATION_NONE;
    if (own || habit_.turn_ns == 0) return kQuarter;
    const uint64_t took = kind_.took_ns == 0 ? kGuessNs : kind_.took_ns;
    return uint64_t{UINT8_MAX} * 2 * took / (habit_.turn_ns + took);
  }

  // What one that is left out adds. Where much is needed a look costs about what it saves: there
  // what often helps is tried seldom, and what does not, or never can enough, hardly ever.
  [[nodiscard]] static uint8_t hope(uint8_t expected, uint64_t needed) {
    if (needed <= kQuarter) return expected;
    return expected < kQuarter || needed > kMostHelped ? kLeastHope : expected / 8;
  }

  [[nodiscard]] uint8_t& helped_after() {
    return habit_.helped_after[static_cast<uint8_t>(kind_.history + kKindsApart * operation_)];
  }

  void add_to_history(bool helped) {
    kind_.history = static_cast<uint8_t>(kind_.history << 1 | (helped ? 1 : 0));
  }

  LookOnHabit& habit_;
  uint8_t operation_;
  LookOnHabit::Kind& kind_;
};

}  // namespace peal::host
