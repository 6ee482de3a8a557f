// SPDX-License-Identifier: BSD-2-Clause
// What answers teach about waiting.
#include "firmware/base/patience.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/firmware/base/asking_times.h"

namespace peal::test {
namespace {

// How long one waits, in microseconds, after each of these answers.
template <typename Answer>
std::string waits(TimeNs started_ns, const std::vector<TimeNs>& times_ns, Answer answer) {
  Patience patience = patience_start(kTimeouts, started_ns);
  patience.lossless = false;
  std::string text;
  for (const TimeNs now : times_ns) {
    answer(patience, now);
    text += std::to_string(patience.wait_ns / 1000) + " ";
  }
  return text;
}

// A silence that was long enough for whatever patience grows to.
constexpr TimeNs kLong = kTimeouts.dead_ns;

// Of one that knows of a loss.
Patience where_there_are_losses(TimeNs started_ns) {
  Patience patience = patience_start(kTimeouts, started_ns);
  patience.lossless = false;
  return patience;
}

// However soon after the last one.
TEST(Patience, HalvesForEachRepairWhereNobodyWasLate) {
  Patience patience = where_there_are_losses(0);
  patience.wait_ns = 7 * kTimeouts.nack_ns;
  const auto repaired = [&] {
    patience_not_for_lateness(patience, kTimeouts);
    return patience.wait_ns;
  };
  EXPECT_EQ(repaired(), 7 * kTimeouts.nack_ns / 2);
  EXPECT_EQ(repaired(), 7 * kTimeouts.nack_ns / 4);
  EXPECT_EQ(repaired(), kTimeouts.nack_ns);
  patience.wait_ns = kTimeouts.nack_ns / 3;  // not beyond what it is at first
  EXPECT_EQ(repaired(), kTimeouts.nack_ns / 3);
}

TEST(Patience, DoublesOnceForAllThatWasAskedTogether) {
  Patience patience = where_there_are_losses(1'000);
  patience_in_vain(patience, kTimeouts, 201'000, kLong, 210'000);
  EXPECT_EQ(patience.wait_ns, 400'000u);
  patience_in_vain(patience, kTimeouts, 201'000, kLong, 211'000);  // asked before that was known
  EXPECT_EQ(patience.wait_ns, 400'000u);
  patience_in_vain(patience, kTimeouts, 210'000, kLong, 220'000);
  EXPECT_EQ(patience.wait_ns, 800'000u);
}

// Whoever seemed late, and was.
TEST(Patience, OfTheLateGrowsEightfoldWhateverWasLost) {
  Patience patience = where_there_are_losses(1'000);
  patience_late(patience, kTimeouts, 201'000, kLong, 210'000, false);
  EXPECT_EQ(patience.wait_ns, 1'600'000u);
  patience_late(patience, kTimeouts, 201'000, kLong, 211'000,
                false);  // asked before that was known
  EXPECT_EQ(patience.wait_ns, 1'600'000u);
  for (TimeNs now = 300'000; now < 310'000; now += 1'000) {
    patience_late(patience, kTimeouts, now, kLong, now, false);
  }
  EXPECT_EQ(patience.wait_ns, kTimeouts.dead_ns / 2);
}

// Nobody computes for microseconds. But where the operation has lost something it may be loss.
TEST(Patience, OfTheLateIsFourIntervalsAtLeastWhereNothingIsLost) {
  const auto after_one = [](TimeNs before_ns, bool lossless) {
    Patience patience = where_there_are_losses(0);
    patience.wait_ns = before_ns;
    patience_late(patience, kTimeouts, 1'000, kLong, 2'000, lossless);
    return patience.wait_ns;
  };
  EXPECT_EQ(after_one(10'000, true), 4 * kTimeouts.nack_ns);
  EXPECT_EQ(after_one(10'000, false), 80'000u);
  EXPECT_EQ(after_one(200'000, true), 1'600'000u);
}

TEST(Patience, HalvesOnceInItsOwnTime) {
  const auto worth_it = [](Patience& patience, TimeNs now) {
    patience_worth_it(patience, kTimeouts, now);
  };
  EXPECT_EQ(waits(0, {199'999, 200'000, 299'999, 300'000}, worth_it), "200 100 100 50 ");
}

// An inquiry asks again and again in one silence: what its answers say is how long that is.
TEST(Patience, IsNoLongerThanFiveTimesTheSilence) {
  Patience patience = where_there_are_losses(0);
  patience_in_vain(patience, kTimeouts, 200'000, 50'000, 210'000);
  EXPECT_EQ(patience.wait_ns, 250'000u);
  patience_in_vain(patience, kTimeouts, 600'000, 600'000, 610'000);
  EXPECT_EQ(patience.wait_ns, 500'000u);
  patience_in_vain(patience, kTimeouts, 700'000, 90'000, 710'000);
  EXPECT_EQ(patience.wait_ns, 500'000u);
}

TEST(Patience, OfTheLateIsNoLongerThanEightTimesTheSilence) {
  Patience patience = where_there_are_losses(0);
  patience_late(patience, kTimeouts, 200'000, 200'000, 210'000, false);
  EXPECT_EQ(patience.wait_ns, 1'600'000u);
  patience_late(patience, kTimeouts, 600'000, 600'000, 610'000, false);
  EXPECT_EQ(patience.wait_ns, 4'800'000u);
  patience_late(patience, kTimeouts, 700'000, 100'000, 710'000, true);
  EXPECT_EQ(patience.wait_ns, 4'800'000u);
}

// However many questions were in vain before.
TEST(Patience, HalvesForEachRepairThatWasMissing) {
  Patience patience = where_there_are_losses(0);
  TimeNs now = 0;
  for (int questions = 0; questions < 4; questions++) {
    now += 2 * patience.wait_ns;
    Patience repaired = patience;
    patience_worth_it(repaired, kTimeouts, now);
    EXPECT_EQ(repaired.wait_ns, patience.wait_ns / 2) << patience.calm;
    patience_in_vain(patience, kTimeouts, now, kLong, now);
  }
}

// A repair of what had come meanwhile.
TEST(Patience, ARepairTooManyWasInVainOnceInItsOwnTime) {
  const auto in_vain = [](Patience& patience, TimeNs now) {
    patience_in_vain(patience, kTimeouts, now);
  };
  EXPECT_EQ(waits(0, {199'999, 200'000, 599'999}, in_vain), "200 400 400 ");
}

// Lateness is all that it can be. The first repair that was missing, or a gap, ends that.
TEST(Patience, IsSixteenTimesTheSilenceUntilSomethingIsLost) {
  for (const bool by_a_gap : {false, true}) {
    Patience patience = patience_start(kTimeouts, 0);
    patience_in_vain(patience, kTimeouts, 200'000, 200'000, 210'000);
    EXPECT_EQ(patience.wait_ns, 3'200'000u);
    patience_in_vain(patience, kTimeouts, 1'100'000, 100'000, 1'200'000);  // no less
    EXPECT_EQ(patience.wait_ns, 3'200'000u);
    if (by_a_gap) {
      patience_lost(patience, kTimeouts);
    } else {
      patience_worth_it(patience, kTimeouts, 10'000'000);
    }
    const TimeNs before = patience.wait_ns;
    patience_in_vain(patience, kTimeouts, 20'000'000, kLong, 20'000'001);
    EXPECT_EQ(patience.wait_ns, 2 * before);
  }
}

// It is as good as a silence, whenever it is told; and only grows.
TEST(Patience, OfAHostThatIsAwayIsSixteenTimesThatUntilSomethingIsLost) {
  Patience patience = patience_start(kTimeouts, 0);
  const auto after = [&](TimeNs away_ns) {
    patience_away(patience, kTimeouts, away_ns);
    return patience.wait_ns;
  };
  EXPECT_EQ(after(0), 200'000u);
  EXPECT_EQ(after(1'000'000), 16'000'000u);
  EXPECT_EQ(after(2'000'000), 32'000'000u);
  EXPECT_EQ(after(1'000'000), 32'000'000u);
  EXPECT_EQ(after(65'535'000'000), kTimeouts.dead_ns / kPatienceMost);
  EXPECT_EQ(patience.learned_ns, 0u);
  patience_lost(patience, kTimeouts);
  const TimeNs before = patience.wait_ns;
  EXPECT_EQ(after(65'535'000'000), before);
}

// Another rank's is the least, in whole milliseconds; after a loss it is not told, nor believed.
TEST(Patience, IsTold) {
  Patience patience = patience_start(kTimeouts, 0);
  EXPECT_EQ(patience_to_tell(patience), 0u);
  patience_told(patience, kTimeouts, 3);
  EXPECT_EQ(patience.wait_ns, 3'000'000u);
  patience_told(patience, kTimeouts, 2);
  EXPECT_EQ(patience.wait_ns, 3'000'000u);
  patience.wait_ns = 4'999'999;
  EXPECT_EQ(patience_to_tell(patience), 4u);
  patience_told(patience, kTimeouts, 65535);
  EXPECT_EQ(patience.wait_ns, kTimeouts.dead_ns / kPatienceMost);
  patience_lost(patience, kTimeouts);
  EXPECT_EQ(patience_to_tell(patience), 0u);
  const TimeNs before = patience.wait_ns;
  patience_told(patience, kTimeouts, 65535);
  EXPECT_EQ(patience.wait_ns, before);
}

// A long silence is no start of ranks one after the other: it says more.
TEST(Patience, OfWhoWaitsALongSilenceSaysTwiceAsMuch) {
  for (const auto& [silent_ns, times] :
       {std::pair{800'000u, 8u}, {800'001u, 16u}, {3'200'000u, 16u}}) {
    Patience patience = patience_start(kTimeouts, 0);
    patience_in_doubt(patience, kTimeouts, silent_ns, silent_ns, silent_ns, true);
    EXPECT_EQ(patience.wait_ns, TimeNs{times} * silent_ns);
  }
}

// Who waits as well may wait for what is lost: one of four in turn is taken to wait for who is
// late.
TEST(Patience, OneOfFourThatWaitIsBelieved) {
  Patience patience = patience_start(kTimeouts, 0);
  const auto doubt = [&](TimeNs asked_ns) {
    patience_in_doubt(patience, kTimeouts, asked_ns, 200'000, asked_ns + 10'000, false);
    return patience.wait_ns;
  };
  EXPECT_EQ(doubt(200'000), 200'000u);
  EXPECT_EQ(doubt(205'000), 200'000u);  // asked with the one before
  EXPECT_EQ(doubt(400'000), 200'000u);
  EXPECT_EQ(doubt(600'000), 200'000u);
  EXPECT_EQ(doubt(800'000), 1'600'000u);
  patience.wait_ns = 200'000;
  for (const TimeNs asked_ns : {1'000'000u, 1'200'000u, 1'400'000u}) {
    EXPECT_EQ(doubt(asked_ns), 200'000u);
  }
  EXPECT_EQ(doubt(1'600'000), 1'600'000u);
}

// What it grew to while nothing was lost was for lateness alone.
TEST(Patience, TheFirstLossLeavesAQuarter) {
  Patience patience = patience_start(kTimeouts, 0);
  patience.wait_ns = 3'200'000;
  patience_lost(patience, kTimeouts);
  EXPECT_EQ(patience.wait_ns, 800'000u);
  patience_lost(patience, kTimeouts);
  EXPECT_EQ(patience.wait_ns, 800'000u);
  for (const auto& [before_ns, after_ns] :
       {std::pair{200'000u, 50'000u}, {100'000u, 50'000u}, {40'000u, 40'000u}}) {
    patience = patience_start(kTimeouts, 0);
    patience.wait_ns = before_ns;
    patience_lost(patience, kTimeouts);
    EXPECT_EQ(patience.wait_ns, after_ns);
  }
}

// Whoever answers waits as well, perhaps for what is lost.
TEST(Patience, AnAnswerOfOneWhoWaitsSaysSomethingUntilSomethingIsLost) {
  Patience patience = patience_start(kTimeouts, 0);
  patience_in_doubt(patience, kTimeouts, 200'000, 200'000, 210'000, true);
  EXPECT_EQ(patience.wait_ns, 1'600'000u);
  // Asked before it was known.
  patience_in_doubt(patience, kTimeouts, 200'000, 300'000, 220'000, true);
  EXPECT_EQ(patience.wait_ns, 1'600'000u);
  // It knows of longer silences.
  patience_in_doubt(patience, kTimeouts, 620'000, 100'000, 630'000, true);
  EXPECT_EQ(patience.wait_ns, 1'600'000u);
  patience_in_doubt(patience, kTimeouts, 640'000, 400'000, 650'000, true);
  EXPECT_EQ(patience.wait_ns, 3'200'000u);
  EXPECT_EQ(patience.calm, kCalmLeast);
  patience = where_there_are_losses(0);
  patience_in_doubt(patience, kTimeouts, 200'000, 200'000, 210'000, true);
  EXPECT_EQ(patience.wait_ns, 200'000u);
}

TEST(Patience, AnOperationThatHadNothingToWaitForTeachesNothing) {
  Patience patience = patience_start(kTimeouts, 0);
  patience_undisturbed(patience, kTimeouts, 0);
  EXPECT_EQ(patience.wait_ns, 200'000u);
}

TEST(Patience, HasLimits) {
  Patience patience = patience_start(kTimeouts, 0);
  TimeNs now = 0;
  for (int i = 0; i < 40; i++) patience_in_vain(patience, kTimeouts, now, kLong, now + 1), now++;
  EXPECT_EQ(patience.wait_ns, kTimeouts.dead_ns / 2);
  for (int i = 0; i < 40; i++) {
    now += 10'000'000'000;
    patience_worth_it(patience, kTimeouts, now);
  }
  EXPECT_EQ(patience.wait_ns, kTimeouts.nack_ns / kPatienceLeast);
}

TEST(Patience, FollowsTheWaitsOfUndisturbedOperationsDown) {
  Patience patience = patience_start(kTimeouts, 0);
  patience_undisturbed(patience, kTimeouts, 50'000);  // enough already
  EXPECT_EQ(patience.wait_ns, 200'000u);
  patience_undisturbed(patience, kTimeouts, 10'000);
  EXPECT_EQ(patience.wait_ns, 190'000u);
  for (int i = 0; i < 500; i++) patience_undisturbed(patience, kTimeouts, 10'000);
  EXPECT_LT(patience.wait_ns, 40'016u);
  EXPECT_GE(patience.wait_ns, 40'000u);
  for (int i = 0; i < 500; i++) patience_undisturbed(patience, kTimeouts, 1);
  EXPECT_EQ(patience.wait_ns, kTimeouts.nack_ns / kPatienceLeast);
}

// Ranks that are late now and then: what was learned in one operation holds for many. Repairs make
// it forget sooner.
TEST(Patience, ComesDownMoreSlowlyWhereQuestionsAreInVain) {
  Patience patience = where_there_are_losses(0);
  TimeNs now = 0;
  for (const TimeNs share : {32, 64, 128, 256, 256}) {
    now += 2 * patience.wait_ns;
    patience_in_vain(patience, kTimeouts, now, kLong, now);
    const TimeNs before = patience.wait_ns;
    patience_undisturbed(patience, kTimeouts, 1);
    EXPECT_EQ(before - patience.wait_ns, (before - 4) / share) << share;
  }
  for (const TimeNs share : {128, 64, 32, 16, 16}) {
    now += 2 * patience.wait_ns;
    patience_worth_it(patience, kTimeouts, now);
    const TimeNs before = patience.wait_ns;
    patience_undisturbed(patience, kTimeouts, 1);
    EXPECT_EQ(before - patience.wait_ns, (before - 4) / share) << share;
  }
}

// Whoever has waited for minutes tells as much as there is room for, and not that packets are lost.
TEST(Patience, TellsNoMoreThanThereIsRoomFor) {
  Patience patience = patience_start(kTimeouts, 0);
  for (const auto& [wait_ns, told] : {std::pair<TimeNs, uint32_t>{65'534'999'999, 65534},
                                      {65'535'000'000, 65535},
                                      {65'536'000'000, 65535},
                                      {300'000'000'000, 65535}}) {
    patience.wait_ns = wait_ns;
    EXPECT_EQ(patience_to_tell(patience), told);
  }
}

}  // namespace
}  // namespace peal::test
