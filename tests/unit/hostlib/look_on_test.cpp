// SPDX-License-Identifier: BSD-2-Clause
// When waits look on before they yield, for times that the test makes up.
#include "hostlib/look_on.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace peal::host {
namespace {

constexpr uint64_t kUs = 1000;
constexpr uint64_t kNever = UINT64_MAX;

class LookOnTest : public testing::Test {
 protected:
  // One wait for what comes `after_ns`; for how long it looks on.
  uint64_t wait(uint64_t after_ns, peal_operation operation = PEAL_OPERATION_PUT) {
    LookOn look_on(habit_, static_cast<uint8_t>(operation));
    const uint64_t ns = look_on.ns(most_ns_);
    if (ns != 0) look_on.looked(std::min(ns, after_ns), after_ns <= ns);
    return ns;
  }

  // In how many of so many waits it looked on.
  uint32_t looks(uint32_t waits, uint64_t after_ns, peal_operation operation = PEAL_OPERATION_PUT) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < waits; i++) count += wait(after_ns, operation) != 0;
    return count;
  }

  LookOnHabit habit_;
  uint64_t most_ns_ = 60 * kUs;
};

TEST_F(LookOnTest, WhereItHelpsItIsDoneEachTime) { EXPECT_EQ(looks(1000, 1 * kUs), 1000u); }

// Where a clock is coarse, or all is there at once.
TEST_F(LookOnTest, WhatTakesNoTimeIsLookedForStill) {
  EXPECT_EQ(looks(1000, 0), 1000u);
  EXPECT_EQ(wait(kNever), 2u);
}

TEST_F(LookOnTest, WhereItDoesNotItIsTriedNowAndThen) {
  EXPECT_LE(looks(100, kNever), 20u);  // until that is learned
  looks(10 * LookOn::kTrialEvery, kNever);
  EXPECT_EQ(looks(20 * LookOn::kTrialEvery, kNever), 20u);
}

// One in two is worth it, one in eight is not, where nobody could foresee which.
TEST_F(LookOnTest, HowOftenItHelpsIsWhatCounts) {
  std::minstd_rand draw(2026);
  const auto looks_of_one_in = [&](uint32_t n) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < 24 * 100; i++) count += looks(1, draw() % n == 0 ? 1 * kUs : kNever);
    return count;
  };
  EXPECT_GE(looks_of_one_in(2), 1800u);
  EXPECT_LE(looks_of_one_in(8), 800u);
}

// What was no use for long is done again as soon as a trial finds that it is.
TEST_F(LookOnTest, ItIsTakenUpAgain) {
  looks(100'000, kNever);
  const uint32_t before = looks(8 * LookOn::kTrialEvery, 1 * kUs);
  EXPECT_GE(before, 1u);
  EXPECT_EQ(looks(100, 1 * kUs), 100u);
}

TEST_F(LookOnTest, ForTwiceAsLongAsItTakesWhereItHelps) {
  EXPECT_EQ(wait(kNever), LookOn::kMostNs);
  looks(100, 700);
  EXPECT_NEAR(static_cast<double>(wait(kNever)), 1400, 20);
  looks(4000, 3 * kUs);  // which trials find
  EXPECT_EQ(wait(kNever), LookOn::kMostNs);
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

TEST_F(LookOnTest, NoLongerThanItMay) {
  most_ns_ = 900;
  EXPECT_EQ(wait(kNever), 900u);
  most_ns_ = 0;
  EXPECT_EQ(looks(1000, 1), 0u);
}

// In how many waits that never help after their history there is a trial.
constexpr uint32_t kTrialsOfTheDoubted = LookOn::kTrialEvery;

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
        const bool looked = wait(would_help == '1' ? 1 * kUs : kNever, operation_) != 0;
        all.helped += looked && would_help == '1';
        all.in_vain += looked && would_help == '0';
      }
    }
    return all;
  }

  peal_operation operation_ = PEAL_OPERATION_BROADCAST;
};

// Roots in turn: which looks help is the same in each round.
TEST_F(ForeseenTest, WhatHelpsAtTheSamePlacesOfEachRoundIsForeseen) {
  rounds(50, "01101011");
  const Foreseen later = rounds(1000, "01101011");
  EXPECT_EQ(later.helped, 5000u);
  EXPECT_LE(later.in_vain, 3000u / kTrialsOfTheDoubted + 25);
  EXPECT_GE(later.in_vain, 3000u / kTrialsOfTheDoubted - 5);
}

TEST_F(ForeseenTest, AnotherOrderIsLearned) {
  rounds(1000, "01101011");
  rounds(200, "00111100");
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
  Foreseen all;
  for (int i = 0; i < 1000; i++) {
    const Foreseen now = rounds(1, "0111");
    if (i >= 500) all.helped += now.helped;
    if (i >= 500) all.in_vain += now.in_vain;
    wait(i % 3 == 0 ? 1 * kUs : kNever, PEAL_OPERATION_GET);
  }
  EXPECT_GE(all.helped, 1490u);
  EXPECT_LE(all.in_vain, 40u);
}

// What a look costs must be less than what it saves, which is a turn of the processor.
class WorthItTest : public ForeseenTest {
 protected:
  void turns_cost(uint64_t ns) {
    for (int i = 0; i < 100; i++) habit_.turn_cost(ns);
  }
};

// Looks that help in one of three waits, nobody knows in which, each 1 us and in vain 2.
TEST_F(WorthItTest, WhereTurnsAreSlowOneOfThreeIsEnough) {
  std::minstd_rand draw(2026);
  const auto looks_of_one_in_three = [&] {
    uint32_t count = 0;
    for (int i = 0; i < 3000; i++)
      count += wait(draw() % 3 == 0 ? 1 * kUs : kNever, operation_) != 0;
    return count;
  };
  turns_cost(16 * kUs);
  looks(300, 1 * kUs, operation_);
  EXPECT_GE(looks_of_one_in_three(), 1500u);
  turns_cost(2 * kUs);
  looks_of_one_in_three();
  EXPECT_LE(looks_of_one_in_three(), 300u);
}

TEST_F(WorthItTest, WhereTurnsAreAsQuickAsAnswersOneYieldsAtOnce) {
  turns_cost(1 * kUs);
  looks(1000, 1 * kUs, operation_);
  EXPECT_LE(looks(10 * LookOn::kTrialEvery, 1 * kUs, operation_), 10u);
}

TEST_F(WorthItTest, WhereTurnsAreALittleSlowerItIsWorthItIfItIsSure) {
  turns_cost(1500);
  looks(10'000, 1 * kUs, operation_);
  EXPECT_EQ(looks(1000, 1 * kUs, operation_), 1000u);
}

// Who waits for a put waits for nobody else: what others lose meanwhile is not held against it.
TEST_F(WorthItTest, WhatTheCardDoesAloneIsLookedForAnyway) {
  turns_cost(1 * kUs);
  for (const auto each :
       {PEAL_OPERATION_PUT, PEAL_OPERATION_GET, PEAL_OPERATION_FENCE, PEAL_OPERATION_NONE})
    EXPECT_EQ(looks(1000, 1 * kUs, each), 1000u) << each;
  EXPECT_LE(looks(1000, 1 * kUs, PEAL_OPERATION_RECEIVE), 20u);
}

// One that was interrupted cost more; that is not believed at once.
TEST_F(WorthItTest, OneTurnIsNoRule) {
  turns_cost(2 * kUs);
  habit_.turn_cost(50'000 * kUs);
  EXPECT_LE(habit_.turn_ns, 2 * kUs + 300);
  turns_cost(20 * kUs);
  EXPECT_GE(habit_.turn_ns, 19 * kUs);
}

}  // namespace
}  // namespace peal::host
