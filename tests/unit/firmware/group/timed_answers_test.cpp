// SPDX-License-Identifier: BSD-2-Clause
// How long answers take. docs/decisions/0074
#include "firmware/group/inquiry.h"

#include "tests/unit/firmware/group/inquiry_fixture.h"

namespace peal::test {
namespace {

// Ranks 0 and 3 are asked, in this order: it is rank 0's answer that is timed. Whatever was learned
// before says that answers take long.
class TimedAnswers : public Inquiries {
 protected:
  TimedAnswers() {
    post();
    bench.advance(kNack);
  }
  // The price of a question when this rank's block has been sent again.
  TimeNs price_when_repaired(uint32_t sender) {
    TimeNs& price_ns = bench.card().members[0].pace.price_ns;
    price_ns = kSeemed;
    Frame repair = block_of(sender, 0, kBlock);
    WireMaker::make_repair(repair);
    bench.deliver(repair);
    return price_ns;
  }

  static constexpr TimeNs kSeemed = 100'000;
};

// It counts from the question, not from the silence before it: a microsecond is the lowest price,
// of which the first such answer believes a half.
TEST_F(TimedAnswers, ARepairSaysHowLongQueuesAreAtTheMost) {
  const TimeNs lowest_ns = bench.card().members[0].pace.lowest_ns;
  bench.advance(1'000);
  EXPECT_EQ(price_when_repaired(0), kSeemed - (kSeemed - lowest_ns + 1) / 2);
}

// Rank 3 has sent something that is lost, and is asked again for it.
TEST_F(TimedAnswers, ThatAnotherOneWasAskedTwiceDoesNotMatter) {
  bench.advance(1'000);
  bench.deliver(WireMaker::numbered(wire.alive(3), 2));
  EXPECT_EQ(nacks(), 3u);
  EXPECT_LT(price_when_repaired(0), kSeemed);
}

TEST_F(TimedAnswers, NorWhatAnotherOneAnswers) {
  bench.deliver(not_yet(3, true));
  EXPECT_LT(price_when_repaired(0), kSeemed);
}

// What had come all the same was sent again for this question, too.
TEST_F(TimedAnswers, ARepairTooManySaysIt) {
  bench.deliver(block_of(0, 0, kBlock));
  EXPECT_LT(price_when_repaired(0), kSeemed);
}

// Nobody knows whether that was sent for it.
TEST_F(TimedAnswers, WhatIsNoRepairSaysNothing) {
  TimeNs& price_ns = bench.card().members[0].pace.price_ns;
  price_ns = kSeemed;
  bench.deliver(block_of(0, 0, kBlock));
  EXPECT_EQ(price_ns, kSeemed);
}

TEST_F(TimedAnswers, WhoHasSentItAndCannotAgainSaysNothing) {
  bench.deliver(wire.not_yet(0, broadcast_shape(kBlock), 0, 0, 0, 0, now_us(), PEAL_NOT_YET_SENT));
  EXPECT_EQ(price_when_repaired(0), kSeemed);
}

// Whose answer was not to be timed makes room for another's.
TEST_F(TimedAnswers, OneIsTimedAfterWhoWasAskedTwice) {
  bench.advance(2 * kNack);
  EXPECT_EQ(price_when_repaired(0), kSeemed);
  bench.card().members[0].pace.price_ns = 1'000;
  while (nacks() == 4) ASSERT_TRUE(bench.advance_to_deadline());
  EXPECT_LT(price_when_repaired(3), kSeemed);
}

TEST_F(TimedAnswers, OneIsTimedAfterTheAnswerOfWhoWasAskedTwice) {
  bench.advance(2 * kNack);
  bench.deliver(not_yet(0, true));
  bench.card().members[0].pace.price_ns = 1'000;
  while (nacks() == 4) ASSERT_TRUE(bench.advance_to_deadline());
  EXPECT_LT(price_when_repaired(3), kSeemed);
}

TEST_F(TimedAnswers, AnotherOnesRepairSaysNothing) {
  bench.advance(1'000);
  EXPECT_EQ(price_when_repaired(3), kSeemed);
  EXPECT_LT(price_when_repaired(0), kSeemed);
}

TEST_F(TimedAnswers, WhoWasAskedTwiceSaysNothing) {
  bench.advance(2 * kNack);
  EXPECT_EQ(nacks(), 4u);
  EXPECT_EQ(price_when_repaired(0), kSeemed);
}

// It repairs when it can.
TEST_F(TimedAnswers, WhoAnsweredBeforeSaysNothing) {
  bench.deliver(not_yet(0, false));
  EXPECT_EQ(price_when_repaired(0), kSeemed);
}

// After either answer another one may be timed.
TEST_F(TimedAnswers, OneIsTimedAfterTheOther) {
  bench.deliver(not_yet(0, true));
  bench.advance(2 * kNack);
  EXPECT_EQ(nacks(), 3u);
  EXPECT_LT(price_when_repaired(3), kSeemed);
}

TEST_F(TimedAnswers, OneIsTimedAfterTheOthersRepair) {
  EXPECT_LT(price_when_repaired(0), kSeemed);
  bench.card().members[0].pace.price_ns = 1'000;
  while (nacks() == 2) ASSERT_TRUE(bench.advance_to_deadline());
  EXPECT_LT(price_when_repaired(3), kSeemed);
}

}  // namespace
}  // namespace peal::test
