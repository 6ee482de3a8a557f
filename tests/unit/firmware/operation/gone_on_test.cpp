// SPDX-License-Identifier: BSD-2-Clause
// Where ranks have been late silence is lateness, until somebody has begun a later operation than
// this rank's host has posted: then those who owe something have begun what they owe it for.
#include "firmware/operation/gone_on.h"

#include "tests/support/log_lines.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

// Rank 1 of four: blocks of 0 and 2, 3 come from ranks 0 and 3.
class GoneOn : public GroupTest {
 protected:
  static constexpr TimeNs kLong = CONFIG_DEAD_TIMEOUT_US * TimeNs{500};
  static constexpr const char* kAll =
      "send 1>0 NACK seq=0 piece=0 origin=0\n"
      "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n";

  GoneOn() : GroupTest(4, 1) { member_record().patience.wait_ns = kLong; }

  Member& member_record() { return bench.card().members[0]; }
  void post(uint64_t sequence) {
    post_broadcast(sequence, kBlock);
    bench.finish_all_dma();
  }
  // Rank 0 has begun that operation.
  void begin(uint64_t sequence) {
    bench.deliver(block_of(0, sequence, kBlock));
    bench.finish_all_dma();
  }
  std::string asked(TimeNs within) {
    bench.take_log();
    bench.advance(within);
    return lines_with(bench.take_wire_log(), " NACK ");
  }
  // It has begun that, says all the same that it is late, and all that was missing comes.
  void mislead() {
    post(0);
    begin(1);
    EXPECT_EQ(asked(kNack), kAll);
    bench.deliver(late(0));
    deliver_others(0, kBlock);
    bench.finish_all_dma();
  }
  Frame late(uint32_t sender) {
    return wire.not_yet(sender, broadcast_shape(kBlock), 0, 0, sender, sender == 0 ? 0 : 1,
                        now_us(), PEAL_NOT_YET_LATE);
  }
};

TEST_F(GoneOn, SilenceIsLoss) {
  post(0);
  EXPECT_EQ(asked(8 * kNack), "");
  begin(1);
  EXPECT_EQ(asked(kNack - 1), "");
  EXPECT_EQ(asked(1), kAll);
}

// It is a silence that counts, not the time since then.
TEST_F(GoneOn, WhatComesBeginsTheWaitAnew) {
  post(0);
  begin(1);
  bench.advance(kNack / 2);
  bench.deliver(block_of(3, 0, kBlock));
  bench.finish_all_dma();
  EXPECT_EQ(asked(kNack - 1), "");
  EXPECT_NE(asked(1), "");
}

TEST_F(GoneOn, ThisRankMayHaveGoneOnAsWell) {
  post(0);
  post(1);
  begin(1);
  EXPECT_EQ(asked(8 * kNack), "");
}

TEST_F(GoneOn, WithTwoUnderWayTheOldestIsOver) {
  member_record().patience.lossless = false;
  post(0);
  post(1);
  begin(2);
  EXPECT_EQ(asked(kNack), kAll);
  EXPECT_FALSE(member_record().operations[1].inquiry.all_begun);
  EXPECT_TRUE(member_record().operations[0].inquiry.all_begun);
}

// Whoever is late among several under way may have others behind it.
TEST_F(GoneOn, WithTwoUnderWayNobodyIsBelievedBeforeALoss) {
  post(0);
  post(1);
  begin(2);
  EXPECT_EQ(asked(8 * kNack), "");
  EXPECT_FALSE(member_record().operations[0].inquiry.all_begun);
}

// Programs are alike: of a rank that was seen to have two under way others have two as well, when
// it has posted the first one only.
TEST_F(GoneOn, HowManyThereAreIsSeenWhereOneWaits) {
  member_record().patience.lossless = false;
  member_record().patience.wait_ns = kNack;
  post(0);
  post(1);
  EXPECT_NE(asked(kNack), "");  // a look
  deliver_others(0, kBlock);
  deliver_others(1, kBlock);
  bench.finish_all_dma();
  member_record().patience.wait_ns = kLong;
  post(2);
  begin(3);
  EXPECT_EQ(asked(8 * kNack), "");
  begin(4);
  EXPECT_NE(asked(kNack), "");
}

// Then programs have several under way, as far as is known.
TEST_F(GoneOn, WhoWasMisledDoesNotBelieveTheNextOne) {
  mislead();
  post(1);
  begin(2);
  EXPECT_EQ(asked(8 * kNack), "");
}

// Where packets are lost who says so may be wrong.
TEST_F(GoneOn, WhereThereAreLossesTheNextOneIsBelieved) {
  member_record().patience.lossless = false;
  mislead();
  member_record().patience.wait_ns = kLong;
  post(1);
  begin(2);
  EXPECT_NE(asked(kNack), "");
}

// Who waits as well says nothing of that, nor one who is late of programs that have more under way.
TEST_F(GoneOn, HowManyThereAreAtLeastWhoIsLateSays) {
  Member& self = member_record();
  post(0);
  begin(1);
  EXPECT_EQ(asked(kNack), kAll);
  bench.deliver(wire.not_yet(3, broadcast_shape(kBlock), 0, 0, 3, 1, now_us(), PEAL_NOT_YET_WAITS));
  EXPECT_EQ(self.depth, 1u);
  self.depth_epoch = self.recycled - 9;
  bench.deliver(late(0));
  EXPECT_EQ(self.depth, 2u);
  EXPECT_EQ(self.depth_epoch, self.recycled);
}
TEST_F(GoneOn, WhoIsLateDoesNotSayThatThereAreFewer) {
  post(0);
  begin(1);
  member_record().depth = 3;
  bench.deliver(late(0));
  EXPECT_EQ(member_record().depth, 3u);
}

// What is seen all the time is not forgotten.
TEST_F(GoneOn, HowManyThereAreIsSeenAgain) {
  Member& self = member_record();
  post(0);
  post(1);
  self.depth = 2;
  self.depth_epoch = self.recycled - 64;
  begin(2);
  EXPECT_EQ(self.depth_epoch, self.recycled);
}

// Where nobody was late before there is nothing to believe.
TEST_F(GoneOn, WithoutLatenessNobodyNeedSayAnything) {
  member_record().patience.wait_ns = kNack;
  post(0);
  begin(1);
  EXPECT_FALSE(member_record().operations[0].inquiry.all_begun);
}

// Each further question takes twice as long, however many go on.
TEST_F(GoneOn, ItIsSaidOnce) {
  post(0);
  begin(1);
  EXPECT_EQ(asked(kNack), kAll);
  begin(2);
  EXPECT_EQ(asked(kNack), "");
  EXPECT_EQ(asked(kNack), kAll);
}

// Who promised to send what it has has it.
TEST_F(GoneOn, PromisesCountNoMore) {
  member_record().patience.wait_ns = kNack;
  post(0);
  EXPECT_EQ(asked(kNack), kAll);
  bench.deliver(late(0));
  bench.deliver(late(3));
  begin(1);
  EXPECT_EQ(asked(kNack), "send 1>0 NACK seq=0 piece=0 origin=0\n");  // one at a time
}

TEST_F(GoneOn, WhoIsLateAllTheSameSaysSo) {
  post(0);
  begin(1);
  EXPECT_EQ(asked(kNack), kAll);
  bench.deliver(late(0));
  bench.deliver(block_of(2, 0, kBlock));
  EXPECT_EQ(asked(64 * kNack), "");
}

// As if it had not been believed.
TEST_F(GoneOn, WhoWasMisledWaitsOn) {
  post(0);
  begin(1);
  EXPECT_EQ(asked(kNack), kAll);
  bench.deliver(late(0));
  bench.deliver(late(3));
  EXPECT_EQ(asked(64 * kNack), "");
}

TEST_F(GoneOn, WhoWasMisledIsNotInAHurry) {
  Inquiry& inquiry = member_record().operations[0].inquiry;
  member_record().patience.lossless = false;
  post(0);
  begin(1);
  EXPECT_EQ(asked(kNack), kAll);
  member_record().patience.wait_ns = kNack;
  inquiry.interval_ns = 64 * kNack;
  bench.deliver(late(0));
  EXPECT_EQ(inquiry.interval_ns, 64 * kNack);
}

TEST_F(GoneOn, NothingIsPutOff) {
  member_record().patience.wait_ns = 2 * kNack;
  post(0);
  bench.advance(kNack + kNack / 2);
  begin(1);
  EXPECT_EQ(asked(kNack / 2), kAll);
}

// What patience has learned of lateness goes with it; what was repaired before may have been late.
TEST_F(GoneOn, RepairsBringPatienceDown) {
  const auto repair = [&](uint32_t origin) {
    Frame frame = block_of(origin, 0, kBlock);
    WireMaker::make_repair(frame);
    bench.deliver(frame);
    bench.finish_all_dma();
    return member_record().patience.wait_ns;
  };
  member_record().patience.wait_ns = 8 * kNack;
  member_record().patience.lossless = false;
  post(0);
  EXPECT_EQ(asked(8 * kNack), kAll);
  EXPECT_EQ(repair(2), 4 * kNack);
  EXPECT_EQ(repair(3), 4 * kNack);  // one for all that was asked together
  begin(1);
  EXPECT_EQ(repair(0), 2 * kNack);
}

// A queue is as long as it is.
TEST_F(GoneOn, QueuesAreWaitedFor) {
  member_record().pace.price_ns = kNack / 8;  // sixteen of them, there and back
  post(0);
  begin(1);
  EXPECT_EQ(asked(4 * kNack - 1), "");
  EXPECT_EQ(asked(1), kAll);
}

// Nobody waits longer for it than before.
TEST_F(GoneOn, ShortPatienceStaysShort) {
  member_record().patience.wait_ns = kNack / 2;
  member_record().late_patience.wait_ns = kNack;  // ranks are late all the same
  post(0);
  begin(1);
  EXPECT_EQ(asked(kNack / 2), kAll);
}

// A rank of rank 0's tree, of whose broadcasts it has all but one.
class EpochOver : public GoneOn {
 protected:
  // Of the first epoch; operations of the next wait as well.
  void lack_one() {
    for (uint64_t sequence = 0; sequence <= kEpoch; sequence++) {
      post_relay(sequence);
      if (sequence != 0 && sequence != kEpoch) deliver_relay(sequence);
    }
    bench.take_log();
  }
  bool has_begun(uint64_t sequence) {
    return member_record().operations[sequence].inquiry.all_begun;
  }
};

// A root may have begun this one long before those that are below it in other trees.
TEST_F(EpochOver, ARootThatIsAheadSaysNothingBeforeALoss) {
  const auto root_begins = [&](uint32_t sequence) {
    bench.deliver(
        wire.binomial(binomial_shape(8, 0), sequence, 0, 0, pattern_block(sequence, 0, 0, 8)));
    bench.finish_all_dma();
  };
  post_relay(0);
  root_begins(1);
  EXPECT_FALSE(has_begun(0));
  member_record().patience.lossless = false;
  root_begins(2);
  EXPECT_TRUE(has_begun(0));
}

// Who asks for what comes behind an epoch has finished it: all its operations were begun.
TEST_F(EpochOver, AQuestionSaysThatAllItsOperationsHaveBegun) {
  lack_one();
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 1));
  EXPECT_TRUE(has_begun(0));
  EXPECT_FALSE(has_begun(kEpoch));
  EXPECT_EQ(asked(kNack), "send 1>0 NACK seq=0 piece=0 origin=0 missing=0x1 credit=0\n");
}

TEST_F(EpochOver, ASignalSaysItWhereSilenceIsLateness) {
  for (const bool late : {false, true}) {
    member_record().patience.wait_ns = late ? kLong : kNack;
    if (!late) lack_one();
    bench.deliver(wire.recycle_below(0, 1, late ? 1 : 0));
    EXPECT_EQ(has_begun(0), late);
  }
}

TEST_F(EpochOver, OfAnEpochThatIsNoneOfTheseNothingIsNoted) {
  lack_one();
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 2, 0, 1));
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0xffffffff, 0, 1));
  EXPECT_FALSE(has_begun(0));
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 1, 0, 1));
  EXPECT_FALSE(has_begun(0));
  EXPECT_TRUE(has_begun(kEpoch));
}

// Where packets are lost, what was on its way to somebody who then forwarded it may be lost again.
TEST_F(EpochOver, AnEmptyEdgeIsNotBelievedOfWhatHasBegun) {
  member_record().patience = patience_start(default_timeouts(), 0);
  member_record().patience.lossless = false;
  lack_one();
  bench.advance(1000);
  bench.deliver(WireMaker::numbered(wire.alive(0), 0));
  EXPECT_EQ(asked(2 * kNack), "");
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 1));
  EXPECT_NE(asked(4 * kNack), "");
}

}  // namespace
}  // namespace peal::test
