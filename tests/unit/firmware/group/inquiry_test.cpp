// SPDX-License-Identifier: BSD-2-Clause
// When a card asks for what it lacks, and whom: lateness is not loss.
#include "firmware/group/inquiry.h"

#include <string>

#include "tests/unit/firmware/group/inquiry_fixture.h"

namespace peal::test {
namespace {

TEST_F(Inquiries, OneQuestionForEachNeighbourThatOwes) {
  post();
  bench.advance(kNack - 1);
  EXPECT_EQ(bench.take_log(), "");
  bench.advance(1);
  EXPECT_EQ(bench.take_log(),
            "send 1>0 NACK seq=0 piece=0 origin=0\n"
            "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
}

// Rank 0 is late and says so; rank 3 says nothing.
TEST_F(Inquiries, WhoeverPromisedIsNotAskedAgainForLong) {
  post_and_hear(true);
  bench.advance(2 * kNack);
  EXPECT_EQ(bench.take_log(), "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
  bench.advance(4 * kNack);
  EXPECT_EQ(bench.take_log(), "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
  bench.advance(8 * kNack);
  EXPECT_EQ(bench.take_log(), "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
  bench.advance(16 * kNack);
  EXPECT_EQ(bench.take_log(),
            "send 1>0 NACK seq=0 piece=0 origin=0\n"
            "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
}

// The others are late for the same reason as the oldest, most likely, until an answer says more.
TEST_F(Inquiries, UntilAnAnswerComesTheOldestAloneAsks) {
  post();
  post_broadcast(1, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(kNack);
  EXPECT_EQ(bench.take_log(),
            "send 1>0 NACK seq=0 piece=0 origin=0\n"
            "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
  bench.deliver(not_yet(3, false));
  bench.card().members[0].patience.wait_ns = kNack;  // whatever that has taught
  bench.advance(2 * kNack);
  EXPECT_EQ(of_the_operation(bench.take_log()),
            "send 1>0 NACK seq=1 piece=0 origin=0\n"
            "send 1>3 NACK seq=1 piece=0 origin=3 missing=0x3\n"
            "send 1>0 NACK seq=0 piece=0 origin=0\n"
            "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
}

// What had come before its timers had its turn first: so what it waits for lies in a queue as well.
TEST_F(Inquiries, ACardThatIsBehindAsksLater) {
  post();
  bench.now += 2 * kNack;
  card_on_timer(bench.card(), bench.now);
  EXPECT_EQ(bench.take_log(), "");
  bench.advance(kNack - 1);
  EXPECT_EQ(bench.take_log(), "");
  bench.advance(1);  // it has caught up
  EXPECT_EQ(bench.take_log(),
            "send 1>0 NACK seq=0 piece=0 origin=0\n"
            "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
}

// A card that never catches up asks all the same.
TEST_F(Inquiries, WhoHasWaitedForFourQueuesAsks) {
  post();
  bench.now += kNack + kNack / 4;
  card_on_timer(bench.card(), bench.now);
  EXPECT_EQ(bench.take_log(),
            "send 1>0 NACK seq=0 piece=0 origin=0\n"
            "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
}

// Whoever waits himself has promised nothing: what he waits for may be lost.
TEST_F(Inquiries, WhoeverWaitsHimselfIsAskedAgain) {
  post_and_hear(false);
  bench.advance(2 * kNack);
  EXPECT_EQ(bench.take_log(),
            "send 1>0 NACK seq=0 piece=0 origin=0\n"
            "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
}

// An arrival begins the wait anew, for all but those who promised.
TEST_F(Inquiries, AnArrivalLeavesPromisesStanding) {
  post_and_hear(true);
  bench.card().members[0].patience.wait_ns = 4 * kNack;  // sooner than that one has promised
  bench.deliver(block_of(2, 0, kBlock));
  bench.take_log();
  bench.advance(4 * kNack);
  EXPECT_EQ(bench.take_log(), "send 1>3 NACK seq=0 piece=0 origin=3\n");
}

// Where questions have been in vain lately one neighbour is asked at a time, by turns.
TEST_F(Inquiries, OneAtATimeWhereQuestionsWereInVain) {
  TimeNs patience = kNack;
  for (uint32_t sequence = 0; sequence < 2; sequence++) {
    post_broadcast(sequence, kBlock);
    bench.finish_all_dma();
    bench.advance(patience);
    bench.deliver(
        wire.not_yet(0, broadcast_shape(kBlock), sequence, 0, 0, 0, now_us(), PEAL_NOT_YET_LATE));
    patience *= 16;
    deliver_others(sequence, kBlock);
  }
  bench.card().members[0].patience.wait_ns = patience = kNack;
  post_broadcast(2, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  const std::string of_0 = "send 1>0 NACK seq=2 piece=0 origin=0\n";
  const std::string of_3 = "send 1>3 NACK seq=2 piece=0 origin=3 missing=0x3\n";
  for (const std::string& question : {of_0, of_3, of_0}) {
    bench.advance(patience);
    EXPECT_EQ(of_the_operation(bench.take_wire_log()), question);
    patience *= 2;
  }
}

// A late rank of seconds: few questions, and it is looked after all the time.
TEST_F(Inquiries, SecondsCostFewQuestions) {
  post();
  bench.advance(kNack);
  bench.deliver(not_yet(0, true));
  bench.deliver(not_yet(3, true));
  const uint64_t before = nacks();
  for (int i = 0; i < 20; i++) {
    pass(kWatch);
    bench.deliver(not_yet(0, true));
    bench.deliver(not_yet(3, true));
  }
  EXPECT_LE(nacks() - before, 14u);
  EXPECT_GE(probes_, 20u);
  EXPECT_LE(probes_, 80u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
}

// What it sends goes over an edge that it says is empty: there is nothing to ask for. But after the
// silence of the dead nothing is believed.
TEST_F(Inquiries, WhoSaysThatAllItSentHasComeIsNotAsked) {
  post();
  bench.advance(kNack);
  bench.deliver(not_yet(0, true));
  bench.deliver(not_yet(3, true));
  alive_ = 0;
  pass(2 * kWatch);
  uint64_t before = nacks();
  pass(5 * kWatch);
  EXPECT_EQ(nacks() - before, 0u);
  EXPECT_GE(probes_, 8u);
  pass(6 * kWatch);
  EXPECT_EQ(nacks() - before, 1u);
}

// What was asked for had been sent when the question came, and was on its way: no loss, though it
// is asked for again, and rank 3 says then that it has nothing more.
TEST_F(Inquiries, WhatCrossesAQuestionIsNotLost) {
  const Patience& patience = bench.card().members[0].patience;
  post();
  bench.advance(kNack);
  bench.deliver(wire.not_yet(3, broadcast_shape(kBlock), 0, 0, 3, 1, now_us(), PEAL_NOT_YET_SENT));
  bench.take_log();
  bench.advance(kNack);
  EXPECT_NE(bench.take_wire_log().find("send 1>3 NACK seq=0"), std::string::npos);
  bench.deliver(not_yet(3, false));
  EXPECT_TRUE(patience.lossless);
  EXPECT_GE(patience.wait_ns, kNack);
}

// One packet of rank 3 is lost, and it says "not yet" of all that this card lacks: it was of an
// operation that the card does not know. Four epochs later that is over, and no sooner: packets of
// the epoch after the next two may come, and show that both are over when they have.
TEST_F(Inquiries, WhereSomethingIsLostAQuestionIsAskedAllTheSame) {
  post();
  bench.deliver(WireMaker::numbered(block_of(3, 0, kBlock), 2));
  bench.deliver(not_yet(3, true));
  alive_ = 2;
  pass(2 * kWatch);
  uint64_t before = nacks();
  pass(5 * kWatch);
  EXPECT_GE(nacks() - before, 1u);
  deliver_others(0, kBlock);
  for (const uint32_t epochs : {3u, 4u}) {
    const uint32_t first = epochs == 3 ? 1 : 3 * kEpoch + 1;
    run_barriers(first, epochs * kEpoch - first);
    post_broadcast(epochs * kEpoch, kBlock);
    bench.finish_all_dma();
    pass(2 * kWatch);
    before = nacks();
    pass(5 * kWatch);
    EXPECT_EQ(nacks() != before, epochs == 3) << epochs;
    deliver_others(epochs * kEpoch, kBlock);
    bench.finish_all_dma();
  }
}

// Where nothing was ever lost, whoever says that all it had sent has come may be late for long.
TEST_F(Inquiries, WhereNothingWasLostAnEmptyEdgeIsBelieved) {
  post();
  hear_that_nothing_was_sent(0);
  EXPECT_FALSE(asks_3_within(kWatch));
}

// Where something was, it may have sent since: it is believed for 24 first intervals.
TEST_F(Inquiries, WhereSomethingWasLostAnEmptyEdgeIsBelievedForAWhile) {
  lose_one_and_recycle();
  hear_that_nothing_was_sent(2);
  EXPECT_FALSE(asks_3_within(23 * kNack));
  EXPECT_TRUE(asks_3_within(24 * kNack));
}

// What was said late in the silence is believed for longer: twelve times as long as the silence was
// then, so that whoever answers all that it is asked is asked two or three times.
TEST_F(Inquiries, WhatWasSaidLateInTheSilenceIsBelievedForLonger) {
  lose_one_and_recycle();
  bench.advance(40 * kNack);
  hear_that_nothing_was_sent(2);
  EXPECT_FALSE(asks_3_within(12 * 40 * kNack - 41 * kNack));
  EXPECT_TRUE(asks_3_within(200 * kNack));
}

// It dies after its promise: told within the time of silence, and two looks.
TEST_F(Inquiries, APromiseIsNoLife) {
  post();
  bench.advance(kNack);
  bench.deliver(not_yet(0, true));
  bench.deliver(not_yet(3, true));
  const TimeNs promised = bench.now;
  while (bench.counter(PEAL_COUNTER_PEERS_DEAD) == 0) ASSERT_TRUE(bench.advance_to_deadline());
  EXPECT_LE(bench.now - promised, 10 * kWatch);
}

}  // namespace
}  // namespace peal::test
