// SPDX-License-Identifier: BSD-2-Clause
// When waits sleep, for times that the test makes up: each wait is a line of text.
#include "hostlib/wait_habit.h"

#include <gtest/gtest.h>

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

// Looking on before the first yield: no longer than half of what a yield gives away.
class BeforeTheFirstYieldTest : public WaitHabitTest {
 protected:
  uint64_t look_on_ns(peal_operation operation = PEAL_OPERATION_PUT) {
    return Wait(habit_, 0, operation).look_on_ns();
  }
  void yield(uint64_t took_ns, uint64_t own_ns = 0) {
    Wait(habit_, 0).yielded(took_ns, false, own_ns);
  }
};

// A yield that finds nobody takes nothing away; one that is soon back, little.
TEST_F(BeforeTheFirstYieldTest, NoLongerThanHalfOfWhatAYieldTakes) {
  yield(300);
  EXPECT_EQ(look_on_ns(), 0u);
  yield(3 * kUs);
  EXPECT_EQ(look_on_ns(), 1500u);
  yield(3000 * kUs);
  EXPECT_EQ(look_on_ns(), LookOn::kMostNs);
  yield(300);
  EXPECT_EQ(look_on_ns(), 0u);
}

TEST_F(BeforeTheFirstYieldTest, NotBeforeAnybodyElseWasSeen) { EXPECT_EQ(look_on_ns(), 0u); }

TEST_F(BeforeTheFirstYieldTest, NoLongerThanTheUserSays) {
  yield(3000 * kUs);
  habit_.spin_ns = 900;
  EXPECT_EQ(look_on_ns(), 900u);
  habit_.spin_ns = 0;
  EXPECT_EQ(look_on_ns(), 0u);
}

// What looks have taught is asked for the kind that the wait is of.
TEST_F(BeforeTheFirstYieldTest, EachKindOfOperationByItself) {
  yield(60 * kUs);
  for (int i = 0; i < 20; i++) {
    Wait wait(habit_, 0, PEAL_OPERATION_BARRIER);
    if (const uint64_t ns = wait.look_on_ns(); ns != 0) wait.looked_on(ns, false);
  }
  EXPECT_EQ(look_on_ns(PEAL_OPERATION_BARRIER), 0u);
  EXPECT_EQ(look_on_ns(PEAL_OPERATION_PUT), LookOn::kMostNs);
}

// One yield in so many is asked for what it costs, and says so where it found others.
TEST_F(BeforeTheFirstYieldTest, SomeYieldsTellWhatATurnCosts) {
  Wait wait(habit_, 0);
  uint32_t timed = 0;
  for (uint32_t i = 0; i < 10 * Wait::kTimedYields; i++) timed += wait.times_yield() ? 1 : 0;
  EXPECT_EQ(timed, 10u);
  yield(300, 200);
  EXPECT_EQ(habit_.look_on.turn_ns, 0u);
  yield(60 * kUs);
  EXPECT_EQ(habit_.look_on.turn_ns, 0u);
  yield(60 * kUs, 2 * kUs);
  EXPECT_EQ(habit_.look_on.turn_ns, 2 * kUs);
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
