// SPDX-License-Identifier: BSD-2-Clause
// How fast a member may ask: a burst, then a rate that follows what the answers were worth.
#include "firmware/base/pace.h"

#include <gtest/gtest.h>

#include <vector>

#include "firmware/card.h"
#include "tests/unit/firmware/base/asking_times.h"

namespace peal::test {
namespace {

uint32_t paid_at_once(Pace& pace, TimeNs now) {
  uint32_t paid = 0;
  while (paid < 10'000 && pace_ask(pace, kTimeouts, now)) paid++;
  return paid;
}

TEST(Pace, StartsWithABurstAndThenARate) {
  Pace pace = pace_start(kTimeouts, 5, 64);
  EXPECT_EQ(paid_at_once(pace, 5), 67u);
  pace_answered(pace, kTimeouts, 10'000, 0);
  uint32_t paid = 0;
  for (TimeNs at = 0; at < 1'000'000; at += 1'000) {
    paid += paid_at_once(pace, 10'000 + at);
    pace_answered(pace, kTimeouts, 10'000, 0);
  }
  EXPECT_EQ(paid, 323u);  // 64 in 200 us
}

TEST(Pace, CreditDoesNotGrowBeyondTheBurst) {
  Pace pace = pace_start(kTimeouts, 0, 64);
  paid_at_once(pace, 0);
  pace_repaired(pace);
  EXPECT_EQ(paid_at_once(pace, 3'600'000'000'000), 67u);
}

// Nobody answers: a partition, or queues of which nobody knows how long they are.
TEST(Pace, SilenceMakesQuestionsDearer) {
  Pace pace = pace_start(kTimeouts, 0, 64);
  paid_at_once(pace, 0);
  uint32_t paid = 0;
  std::vector<uint32_t> by_doubling;
  TimeNs until = 200'000;
  for (TimeNs at = 1'000; at <= 102'400'000; at += 1'000) {
    paid += paid_at_once(pace, at);
    if (at < until) continue;
    by_doubling.push_back(paid);
    paid = 0;
    until *= 2;
  }
  EXPECT_EQ(by_doubling, (std::vector<uint32_t>{38, 11, 10, 11, 11, 10, 11, 11, 11, 10}));
}

TEST(Pace, AnAnswerTellsTheRoundTrip) {
  Pace pace = pace_start(kTimeouts, 0, 64);
  const TimeNs lowest = pace.price_ns;
  pace_answered(pace, kTimeouts, 50'000, 0);
  EXPECT_EQ(pace.price_ns, lowest);
  pace_answered(pace, kTimeouts, 160'000, 0);
  EXPECT_EQ(pace.price_ns, 10'000u);
  pace_answered(pace, kTimeouts, 16'000'000, 0);
  EXPECT_EQ(pace.price_ns, 1'000'000u);
  pace_answered(pace, kTimeouts, 1'600'000, 0);  // down by an eighth of the way at a time
  EXPECT_EQ(pace.price_ns, 887'500u);
  for (int i = 0; i < 100; i++) pace_answered(pace, kTimeouts, 1'000, 0);
  EXPECT_EQ(pace.price_ns, lowest);
}

// It may have waited for memory, or for who promised it.
TEST(Pace, ARepairTellsItAtTheMost) {
  Pace pace = pace_start(kTimeouts, 0, 64);
  const TimeNs lowest = pace.price_ns;
  pace_repaired_after(pace, kTimeouts, 16'000'000, 0);
  EXPECT_EQ(pace.price_ns, lowest);
  pace_answered(pace, kTimeouts, 16'000'000, 0);
  pace_repaired_after(pace, kTimeouts, 1'600'000, 0);
  EXPECT_EQ(pace.price_ns, 887'500u);
  for (int i = 0; i < 100; i++) pace_repaired_after(pace, kTimeouts, 320'000, 0);
  EXPECT_EQ(pace.price_ns, 20'000u);
  for (int i = 0; i < 100; i++) pace_repaired_after(pace, kTimeouts, 1'000, 0);
  EXPECT_EQ(pace.price_ns, lowest);
}

// One card may have no queue where others have; a second answer says that it is of another time.
TEST(Pace, WhatIsOfAnotherTimeIsForgottenAtTheSecondAnswer) {
  Pace pace = pace_start(kTimeouts, 0, 64);
  pace_answered(pace, kTimeouts, 16'000'000, 0);
  pace_answered(pace, kTimeouts, 1'000'000, 0);  // a half of the way at first
  EXPECT_EQ(pace.price_ns, 531'250u);
  pace_answered(pace, kTimeouts, 500'000, 0);
  EXPECT_EQ(pace.price_ns, 31'250u);
  pace_answered(pace, kTimeouts, 16'000'000, 0);
  pace_repaired_after(pace, kTimeouts, 1'000'000, 0);
  EXPECT_EQ(pace.price_ns, 531'250u);
  pace_repaired_after(pace, kTimeouts, 500'000, 0);
  EXPECT_EQ(pace.price_ns, 31'250u);
}

// Nor is it where the two do not follow each other.
TEST(Pace, OneAnswerInBetweenIsEnough) {
  Pace pace = pace_start(kTimeouts, 0, 64);
  for (int i = 0; i < 3; i++) {
    pace_answered(pace, kTimeouts, 16'000'000, 0);
    pace_answered(pace, kTimeouts, 1'000'000, 0);
    EXPECT_EQ(pace.price_ns, 531'250u);
  }
  pace_answered(pace, kTimeouts, 8'000'000, 0);  // an eighth
  EXPECT_EQ(pace.price_ns, 527'343u);
  pace_answered(pace, kTimeouts, 500'000, 0);
  EXPECT_EQ(pace.price_ns, 279'296u);
}

// Whose own card has a queue does not believe that there are none.
TEST(Pace, ACardThatIsBehindForgetsSlowly) {
  Pace pace = pace_start(kTimeouts, 0, 64);
  const TimeNs behind_ns = (kTimeouts.nack_ns + 23) / 24;
  pace_answered(pace, kTimeouts, 64'000'000, 0);
  for (const TimeNs price : {2'015'625u, 1'023'437u, 527'343u}) {
    pace_answered(pace, kTimeouts, 500'000, behind_ns);
    EXPECT_EQ(pace.price_ns, price);
  }
  pace_answered(pace, kTimeouts, 500'000, behind_ns - 1);
  EXPECT_EQ(pace.price_ns, 31'250u);
}

TEST(Pace, TheHighestPriceLeavesOneQuestionPerProbe) {
  Pace pace = pace_start(kTimeouts, 0, 64);
  pace_answered(pace, kTimeouts, kTimeouts.dead_ns, 0);
  EXPECT_EQ(pace.price_ns, kTimeouts.probe_interval_ns);
}

TEST(Pace, IsScarceBelowHalfOfTheBurst) {
  Pace pace = pace_start(kTimeouts, 0, 64);
  for (int i = 0; i < 33; i++) {
    EXPECT_FALSE(pace_is_scarce(pace, kTimeouts, 0)) << i;
    ASSERT_TRUE(pace_ask(pace, kTimeouts, 0));
  }
  ASSERT_TRUE(pace_ask(pace, kTimeouts, 0));
  EXPECT_TRUE(pace_is_scarce(pace, kTimeouts, 0));
}

TEST(Pace, RepairsAreNotAnsweredAndStayCheap) {
  Pace pace = pace_start(kTimeouts, 0, 256);
  uint32_t paid = 0;
  for (TimeNs at = 0; at < 1'000'000; at += 1'000) {
    while (pace_repair(pace, kTimeouts, at)) paid++;
  }
  EXPECT_EQ(paid, 1'537u);  // the burst, and 256 in 200 us
}

// Probes rarer than a question at the lowest price: it has nowhere to go.
TEST(Pace, ShortProbeInterval) {
  const CardTimeouts timeouts = {
      .nack_ns = 200'000, .nack_max_ns = 200'000, .probe_interval_ns = 1, .dead_ns = 1};
  Pace pace = pace_start(timeouts, 0, 64);
  const TimeNs lowest = pace.price_ns;
  pace_answered(pace, timeouts, 3'600'000'000'000, 0);
  EXPECT_EQ(pace.price_ns, lowest);
}

// However slow the answers are, no interval is longer than the longest.
TEST(Pace, PatienceFollowsTheAnswersUpToTheLongestInterval) {
  Pace pace = pace_start(kTimeouts, 0, 64);
  EXPECT_EQ(pace_patience(pace, kTimeouts), 0u);
  pace_answered(pace, kTimeouts, 1'000'000, 0);
  EXPECT_EQ(pace_patience(pace, kTimeouts), 2'000'000u);
  pace_answered(pace, kTimeouts, 1'000'000'000, 0);
  EXPECT_EQ(pace_patience(pace, kTimeouts), kTimeouts.nack_max_ns);
}

}  // namespace
}  // namespace peal::test
