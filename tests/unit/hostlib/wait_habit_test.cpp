// SPDX-License-Identifier: BSD-2-Clause
// When waits sleep, for times that the test makes up: each wait is a line of text.
#include "hostlib/wait_habit.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace peal::host {
namespace {

constexpr uint64_t kUs = 1000;

class WaitHabitTest : public testing::Test {
 protected:
  // One wait. Each yield takes `yield_ns`; what is waited for comes at `result_ns`, and whoever
  // sleeps then is there `wake_ns` later.
  void wait(uint64_t result_ns, uint64_t yield_ns, uint64_t wake_ns = 100 * kUs) {
    const uint64_t start_ns = now_ns_;
    Wait wait(habit_, now_ns_);
    uint32_t looks = 0;
    while (wait.looks(now_ns_)) {
      now_ns_ += yield_ns;
      looks++;
      wait.yielded(yield_ns, false);
      if (now_ns_ - start_ns < result_ns) continue;
      end(wait, std::to_string(looks) + " looks, done after " + us(start_ns));
      return;
    }
    const std::string looked = std::to_string(looks) + " looks, asleep after " + us(start_ns);
    now_ns_ = std::max(now_ns_, start_ns + result_ns) + wake_ns;
    end(wait, looked + ", done after " + us(start_ns));
  }

  // As often as that; only the last is written down.
  void repeat(int times, uint64_t result_ns, uint64_t yield_ns) {
    const std::string before = text_;
    for (int i = 0; i < times; i++) {
      text_ = before;
      wait(result_ns, yield_ns);
    }
  }

  WaitHabit habit_ = {.spin_ns = 1000 * kUs};
  std::string text_;

 private:
  [[nodiscard]] std::string us(uint64_t start_ns) const {
    return std::to_string((now_ns_ - start_ns) / kUs) + " us";
  }
  void end(Wait& wait, const std::string& line) {
    wait.end(now_ns_);
    text_ += line + "\n";
    now_ns_ += 77 * kUs;
  }

  uint64_t now_ns_ = 5'000'000'000;
};

TEST_F(WaitHabitTest, AloneItLooksAsLongAsItMay) {
  wait(900 * kUs, 300);
  wait(1500 * kUs, 300);
  EXPECT_EQ(text_,
            "3000 looks, done after 900 us\n"
            "3334 looks, asleep after 1000 us, done after 1600 us\n");
  EXPECT_TRUE(habit_.alone);
}

TEST_F(WaitHabitTest, AmongOthersItLooksForAFewWakeUps) {
  wait(30 * kUs, 2 * kUs);
  wait(390 * kUs, 10 * kUs);
  wait(410 * kUs, 10 * kUs);
  EXPECT_EQ(text_,
            "15 looks, done after 30 us\n"
            "39 looks, done after 390 us\n"
            "40 looks, asleep after 400 us, done after 510 us\n");
  EXPECT_FALSE(habit_.alone);
}

// One that computed kept the processor for its time slice: it will do so again.
TEST_F(WaitHabitTest, BehindAWorkerItSleepsAtOnce) {
  wait(9000 * kUs, 3000 * kUs);
  EXPECT_EQ(text_, "1 looks, asleep after 3000 us, done after 9100 us\n");
}

TEST_F(WaitHabitTest, LongWaitsTeachItToSleepAndShortOnesToLook) {
  repeat(3, 9000 * kUs, 10 * kUs);
  EXPECT_EQ(text_, "40 looks, asleep after 400 us, done after 9100 us\n");
  repeat(1, 9000 * kUs, 10 * kUs);
  text_ += "then short:\n";
  for (int i = 0; i < 4; i++) wait(30 * kUs, 2 * kUs);
  EXPECT_EQ(text_,
            "40 looks, asleep after 400 us, done after 9100 us\n"
            "1 looks, asleep after 10 us, done after 9100 us\n"
            "then short:\n"
            "3 looks, asleep after 6 us, done after 130 us\n"
            "3 looks, asleep after 6 us, done after 130 us\n"
            "3 looks, asleep after 6 us, done after 130 us\n"
            "3 looks, asleep after 6 us, done after 130 us\n");
  text_.clear();
  repeat(4, 30 * kUs, 2 * kUs);
  EXPECT_EQ(text_, "15 looks, done after 30 us\n");
}

// An hour of waiting is forgotten as soon as a few milliseconds.
TEST_F(WaitHabitTest, NoWaitCountsForMoreThanItShould) {
  repeat(100, 3'600'000'000 * kUs, 10 * kUs);
  EXPECT_LE(habit_.usual_ns, Wait::kLongestNs);
  text_.clear();
  repeat(14, 30 * kUs, 2 * kUs);
  EXPECT_EQ(text_, "15 looks, done after 30 us\n");
}

// A wake-up alone, however slow, makes no wait long.
TEST_F(WaitHabitTest, WakeUpsAreNotTakenForLongWaits) {
  for (int i = 0; i < 50; i++) wait(500 * kUs, 100 * kUs, 400 * kUs);
  text_.clear();
  wait(390 * kUs, 10 * kUs);
  EXPECT_EQ(text_, "39 looks, done after 390 us\n");
}

TEST_F(WaitHabitTest, NoLongerThanTheUserSays) {
  habit_.spin_ns = 50 * kUs;
  wait(60 * kUs, 10 * kUs);
  habit_.spin_ns = 0;
  wait(60 * kUs, 10 * kUs);
  EXPECT_EQ(text_,
            "5 looks, asleep after 50 us, done after 160 us\n"
            "0 looks, asleep after 0 us, done after 160 us\n");
}

// Looking on before the first yield. A yield to others takes 60 us.
class LookOnTest : public testing::Test {
 protected:
  LookOnTest() { yield(60 * kUs); }

  // One wait for what comes `after_ns`; for how long it looks on.
  uint64_t wait(uint64_t after_ns, peal_operation operation = PEAL_OPERATION_PUT) {
    Wait wait(habit_, now_ns_, operation);
    const uint64_t ns = wait.look_on_ns();
    if (ns != 0) wait.looked_on(std::min(ns, after_ns), after_ns <= ns);
    return ns;
  }
  void yield(uint64_t took_ns) { Wait(habit_, now_ns_).yielded(took_ns, false); }

  // In how many of so many waits it looked on.
  uint32_t looks(uint32_t waits, uint64_t after_ns, peal_operation operation = PEAL_OPERATION_PUT) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < waits; i++) count += wait(after_ns, operation) != 0;
    return count;
  }

  WaitHabit habit_ = {.spin_ns = 1000 * kUs};
  uint64_t now_ns_ = 5'000'000'000;
};

constexpr uint64_t kNever = UINT64_MAX;

TEST_F(LookOnTest, WhereItHelpsItIsDoneEachTime) { EXPECT_EQ(looks(1000, 1 * kUs), 1000u); }

// Where a clock is coarse, or all is there at once.
TEST_F(LookOnTest, WhatTakesNoTimeIsLookedForStill) { EXPECT_EQ(looks(1000, 0), 1000u); }

TEST_F(LookOnTest, WhereItDoesNotItIsTriedNowAndThen) {
  EXPECT_LE(looks(100, kNever), 20u);  // until that is learned
  EXPECT_EQ(looks(20 * Wait::kTrialEvery, kNever), 20u);
}

// One in two is worth it, one in eight is not, where nobody could foresee which.
TEST_F(LookOnTest, HowOftenItHelpsIsWhatCounts) {
  std::minstd_rand draw(2026);
  const auto looks_of_one_in = [&](uint32_t n) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < 24 * 100; i++) count += looks(1, draw() % n == 0 ? 1 * kUs : kNever);
    return count;
  };
  EXPECT_GE(looks_of_one_in(2), 2000u);
  EXPECT_LE(looks_of_one_in(8), 600u);
}

// In how many waits that never help after their history there is a trial.
constexpr uint32_t kTrialsOfTheDoubted = Wait::kHopes / Wait::kLeastHope;

struct Foreseen {
  uint32_t helped = 0;   // looks that helped
  uint32_t in_vain = 0;  // looks that did not
  bool operator==(const Foreseen&) const = default;
};

// Waits whose looks would help where there is a 1, round after round.
class ForeseenTest : public LookOnTest {
 protected:
  Foreseen rounds(uint32_t count, const std::string& round) {
    Foreseen all;
    for (uint32_t i = 0; i < count; i++) {
      for (const char would_help : round) {
        const bool looked = wait(would_help == '1' ? 1 * kUs : kNever) != 0;
        all.helped += looked && would_help == '1';
        all.in_vain += looked && would_help == '0';
      }
    }
    return all;
  }
};

// Roots in turn: which looks help is the same in each round.
TEST_F(ForeseenTest, WhatHelpsAtTheSamePlacesOfEachRoundIsForeseen) {
  rounds(50, "01101011");
  const Foreseen later = rounds(1000, "01101011");
  EXPECT_EQ(later.helped, 5000u);
  EXPECT_NEAR(later.in_vain, 3000 / kTrialsOfTheDoubted, 10);
}

TEST_F(ForeseenTest, AnotherOrderIsLearned) {
  rounds(1000, "01101011");
  rounds(100, "00111100");
  const Foreseen later = rounds(1000, "00111100");
  EXPECT_GE(later.helped, 3990u);
  EXPECT_LE(later.in_vain, 4000u / kTrialsOfTheDoubted + 60);
}

// What never helps after these waits is tried now and then.
TEST_F(ForeseenTest, WhatIsDoubtedIsTried) {
  rounds(100, "0111");
  rounds(kTrialsOfTheDoubted * 2, "1");
  EXPECT_EQ(rounds(100, "1"), (Foreseen{100, 0}));
}

// What is in between of another kind is no part of the history.
TEST_F(ForeseenTest, OtherKindsDoNotDisturbIt) {
  for (int i = 0; i < 500; i++) {
    rounds(1, "0111");
    wait(i % 3 == 0 ? 1 * kUs : kNever, PEAL_OPERATION_GET);
  }
  Foreseen all;
  for (int i = 0; i < 500; i++) {
    const Foreseen now = rounds(1, "0111");
    all.helped += now.helped;
    all.in_vain += now.in_vain;
    wait(i % 3 == 0 ? 1 * kUs : kNever, PEAL_OPERATION_GET);
  }
  EXPECT_GE(all.helped, 1490u);
  EXPECT_LE(all.in_vain, 40u);
}

// What was no use for long is done again as soon as a trial finds that it is.
TEST_F(LookOnTest, ItIsTakenUpAgain) {
  looks(100'000, kNever);
  const uint32_t before = looks(Wait::kTrialEvery, 1 * kUs);
  EXPECT_GE(before, 1u);
  EXPECT_EQ(looks(100, 1 * kUs), 100u);
}

TEST_F(LookOnTest, ForTwiceAsLongAsItTakesWhereItHelps) {
  EXPECT_EQ(wait(kNever), Wait::kLookOnNs);
  looks(100, 700);
  EXPECT_NEAR(static_cast<double>(wait(kNever)), 1400, 20);
  looks(2000, 3 * kUs);  // which trials find
  EXPECT_EQ(wait(kNever), Wait::kLookOnNs);
}

TEST_F(LookOnTest, EachKindOfOperationByItself) {
  looks(1000, kNever, PEAL_OPERATION_BARRIER);
  EXPECT_EQ(looks(100, 1 * kUs, PEAL_OPERATION_PUT), 100u);
  EXPECT_LE(looks(100, kNever, PEAL_OPERATION_BARRIER), 1u);
}

// A number that is none has the habit of no operation.
TEST_F(LookOnTest, StrangersHaveOneToo) {
  looks(1000, kNever, static_cast<peal_operation>(PEAL_OPERATION_COUNT));
  EXPECT_LE(looks(100, kNever, PEAL_OPERATION_NONE), 1u);
}

TEST_F(LookOnTest, NeverOfASend) { EXPECT_EQ(looks(1000, 1 * kUs, PEAL_OPERATION_SEND), 0u); }

// A yield that finds nobody takes nothing away; one that is soon back, little.
TEST_F(LookOnTest, NoLongerThanHalfOfWhatAYieldTakes) {
  yield(300);
  EXPECT_EQ(looks(1000, 1 * kUs), 0u);
  yield(3 * kUs);
  EXPECT_EQ(wait(kNever), 1500u);
  yield(3000 * kUs);
  EXPECT_EQ(wait(kNever), Wait::kLookOnNs);
}

TEST_F(LookOnTest, NotBeforeAnybodyElseWasSeen) {
  habit_ = {.spin_ns = 1000 * kUs};
  EXPECT_EQ(looks(1000, 1 * kUs), 0u);
}

TEST_F(LookOnTest, NoLongerThanTheUserSays) {
  habit_.spin_ns = 900;
  EXPECT_EQ(wait(kNever), 900u);
  habit_.spin_ns = 0;
  EXPECT_EQ(looks(1000, 1), 0u);
}

// Sixteen pauses before it are part of what a yield took.
TEST_F(WaitHabitTest, PausesAreNobodyElse) {
  Wait wait(habit_, 0);
  wait.yielded(700, true);
  EXPECT_TRUE(habit_.alone);
  wait.yielded(700, false);
  EXPECT_FALSE(habit_.alone);
}

}  // namespace
}  // namespace peal::host
