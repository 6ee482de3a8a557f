// SPDX-License-Identifier: BSD-2-Clause
// When a card asks for what it lacks, and whom: lateness is not loss.
#include "firmware/group/inquiry.h"

#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr TimeNs kDead = CONFIG_DEAD_TIMEOUT_US * TimeNs{1000};
constexpr TimeNs kWatch = kDead / 8;

// Rank 1 of four: blocks of 0 and 2, 3 come from ranks 0 and 3.
class Inquiries : public GroupTest {
 protected:
  Inquiries() : GroupTest(4, 1) {}

  void post() {
    post_broadcast(0, kBlock);
    bench.finish_all_dma();
    bench.take_log();
  }
  Frame not_yet(uint32_t sender, bool late) {
    return wire.not_yet(sender, broadcast_shape(kBlock), 0, 0, sender, sender == 0 ? 0 : 1,
                        static_cast<uint32_t>(bench.now / 1000),
                        late ? PEAL_NOT_YET_LATE : PEAL_NOT_YET_WAITS);
  }
  // Lets time pass; probes are answered.
  void pass(TimeNs for_ns) {
    const TimeNs until = bench.now + for_ns;
    while (card_next_deadline(bench.card()) <= until && bench.advance_to_deadline()) {
      for (const Frame& frame : bench.port.take_sent()) {
        if (frame.header.type != PEAL_PACKET_PROBE) continue;
        probes_++;
        const uint32_t peer = frame.header.destination[5];
        bench.deliver(alive_ < 0
                          ? wire.alive(peer)
                          : WireMaker::numbered(wire.alive(peer),
                                                peer == 3 ? static_cast<uint8_t>(alive_) : 0));
      }
    }
    bench.now = until;
  }
  // Everybody was asked once, and rank 0 has answered that it has nothing yet.
  void post_and_hear(bool late) {
    post();
    bench.advance(kNack);
    bench.deliver(not_yet(0, late));
    bench.take_log();
  }
  // Without what is asked of an epoch that is recycled: with few channels one is.
  static std::string of_the_operation(const std::string& log) {
    std::istringstream lines(log);
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" NACK recycle ") == std::string::npos) kept += line + "\n";
    }
    return kept;
  }
  // Of rank 3 one packet is lost, of which four epochs later no operation knows; then one waits.
  void lose_one_and_recycle() {
    post();
    bench.deliver(WireMaker::numbered(block_of(3, 0, kBlock), 2));
    deliver_others(0, kBlock);
    run_barriers(1, 4 * kEpoch - 1);
    bench.card().members[0].patience.wait_ns = kNack;
    post_broadcast(4 * kEpoch, kBlock);
    bench.finish_all_dma();
  }
  // Rank 3 says that all that it has sent has come.
  void hear_that_nothing_was_sent(uint8_t sent) {
    bench.advance(1000);
    bench.deliver(WireMaker::numbered(wire.alive(3), sent));
    bench.take_log();
  }
  bool asks_3_within(TimeNs time_ns) {
    bench.advance(time_ns);
    return bench.take_wire_log().find("send 1>3 NACK seq=") != std::string::npos;
  }
  uint64_t nacks() { return bench.counter(PEAL_COUNTER_SENT_NACK); }

  uint32_t probes_ = 0;
  int alive_ = -1;  // what rank 3 says that it has sent; -1: nobody says anything
};

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

// The next operation waits sixteen times as long where the last question was answered "late", and
// as long as before where nobody knew; but as much longer again, for a long silence of somebody who
// waits, when ranks are known to be late.
TEST_F(Inquiries, LatenessTeachesPatience) {
  TimeNs patience = kNack;
  for (uint32_t sequence = 0; sequence < 4; sequence++) {
    const bool late = sequence == 1;
    post_broadcast(sequence, kBlock);
    bench.finish_all_dma();
    bench.take_log();
    bench.advance(patience - 1);
    EXPECT_EQ(bench.take_log(), "") << sequence;
    bench.advance(1);
    EXPECT_NE(bench.take_log(), "") << sequence;
    bench.deliver(wire.not_yet(0, broadcast_shape(kBlock), sequence, 0, 0, 0, now_us(), late));
    if (sequence > 0) patience *= 16;
    deliver_others(sequence, kBlock);
  }
}

// Where nobody knows of anybody who is late, one of four that wait as well is taken to tell of one.
TEST_F(Inquiries, OfFourWhoWaitOneTeachesPatience) {
  for (uint32_t sequence = 0; sequence < 4; sequence++) {
    EXPECT_EQ(bench.card().members[0].patience.wait_ns, kNack);
    post_broadcast(sequence, kBlock);
    bench.finish_all_dma();
    bench.advance(kNack);
    const uint32_t asked_us = now_us();
    bench.advance(2000);
    for (const uint32_t sender : {0u, 3u}) {  // both were asked
      bench.deliver(wire.not_yet(sender, broadcast_shape(kBlock), sequence, 0, sender, sender != 0,
                                 asked_us, PEAL_NOT_YET_WAITS));
    }
    deliver_others(sequence, kBlock);
  }
  EXPECT_EQ(bench.card().members[0].patience.wait_ns, 8 * kNack);
}

// Who is late himself, and is asked for that, learns what a first question would have told him; no
// more from others' questions, nothing where he has lost a packet.
TEST_F(Inquiries, WhoIsLateLearnsWhatHeIsAsked) {
  Patience& patience = bench.card().members[0].patience;
  const auto ask = [&] { bench.deliver(wire.nack(2, broadcast_shape(kBlock), 0, 0, 1, 0, 1)); };
  bench.deliver(block_of(3, 0, kBlock));
  bench.advance(kNack);
  ask();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NOT_YET), 1u);
  EXPECT_EQ(patience.wait_ns, 16 * kNack);
  bench.advance(32 * kNack);
  ask();
  EXPECT_EQ(patience.wait_ns, 16 * kNack);
  patience = {.wait_ns = kNack, .learned_ns = 0, .calm = kCalmLeast, .lossless = false};
  bench.advance(kNack);
  ask();
  EXPECT_EQ(patience.wait_ns, kNack);
}

// Who waits himself for whom he does not know to be late does not.
TEST_F(Inquiries, WhoWaitsAndIsAskedLearnsNothing) {
  post();
  bench.advance(kNack);
  bench.deliver(wire.nack(3, broadcast_shape(kBlock), 0, 0, 0, 1, 1));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NOT_YET), 1u);
  EXPECT_EQ(bench.card().members[0].patience.wait_ns, kNack);
}

// With several under way who is late has others under way, and waits as well.
TEST_F(Inquiries, WithSeveralUnderWayWhoWaitsTeachesPatience) {
  for (const uint32_t under_way : {1u, 2u}) {
    const uint32_t first = under_way - 1;
    for (uint32_t i = 0; i < under_way; i++) post_broadcast(first + i, kBlock);
    bench.finish_all_dma();
    bench.advance(kNack);
    bench.deliver(wire.not_yet(0, broadcast_shape(kBlock), first, 0, 0, 0, now_us(), false));
    EXPECT_EQ(bench.card().members[0].patience.wait_ns, under_way == 1 ? kNack : 8 * kNack);
    for (uint32_t i = 0; i < under_way; i++) deliver_others(first + i, kBlock);
    bench.finish_all_dma();
  }
}

// But not after a silence in which nobody would have asked for what was lost.
TEST_F(Inquiries, WithSeveralUnderWayAShortSilenceTeachesNothing) {
  Patience& patience = bench.card().members[0].patience;
  patience.wait_ns = bench.card().members[0].late_patience.wait_ns = kNack / 2;
  for (const uint32_t sequence : {0u, 1u}) post_broadcast(sequence, kBlock);
  bench.finish_all_dma();
  bench.advance(kNack / 2);
  bench.deliver(wire.not_yet(0, broadcast_shape(kBlock), 0, 0, 0, 0, now_us(), false));
  EXPECT_EQ(patience.wait_ns, kNack / 2);
}

// The silence in which it was asked was long enough for that.
TEST_F(Inquiries, LatenessIsLearnedWhenSomethingElseHasComeMeanwhile) {
  post();
  bench.advance(kNack);
  const auto asked_us = static_cast<uint32_t>(bench.now / 1000);
  bench.advance(2'000);
  bench.deliver(block_of(3, 0, kBlock));
  bench.deliver(wire.not_yet(0, broadcast_shape(kBlock), 0, 0, 0, 0, asked_us, PEAL_NOT_YET_LATE));
  EXPECT_EQ(bench.card().members[0].patience.wait_ns, 16 * kNack);
}

// However late the answer comes: what counts is the silence before the question.
TEST_F(Inquiries, ASlowAnswerTeachesNoLongerSilence) {
  post();
  bench.advance(kNack);
  const auto asked_us = static_cast<uint32_t>(bench.now / 1000);
  bench.card().members[0].patience.wait_ns = 2 * kNack;
  bench.advance(kNack);
  bench.deliver(wire.not_yet(0, broadcast_shape(kBlock), 0, 0, 0, 0, asked_us, PEAL_NOT_YET_LATE));
  EXPECT_EQ(bench.card().members[0].patience.wait_ns, 16 * kNack);
}

// What came by itself sooner than anybody would have been asked: the next question comes sooner.
TEST_F(Inquiries, WaitsThatEndByThemselvesTeachPatience) {
  for (uint32_t sequence = 0; sequence < 3; sequence++) {
    post_broadcast(sequence, kBlock);
    bench.finish_all_dma();
    bench.advance(1'000);
    deliver_others(sequence, kBlock);
    bench.finish_all_dma();
  }
  post_broadcast(3, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(kNack - 20'000);
  EXPECT_NE(bench.take_log(), "");
}

// Also where the other patience is the least.
TEST_F(Inquiries, EachPatienceComesDown) {
  Member& record = bench.card().members[0];
  Patience* const both[] = {&record.patience, &record.late_patience};
  for (uint32_t sequence = 0; sequence < 2; sequence++) {
    both[sequence]->wait_ns = kNack / kPatienceLeast;
    both[1 - sequence]->wait_ns = kNack;
    post_broadcast(sequence, kBlock);
    bench.finish_all_dma();
    bench.advance(1'000);
    deliver_others(sequence, kBlock);
    bench.finish_all_dma();
    EXPECT_EQ(both[sequence]->wait_ns, kNack / kPatienceLeast) << sequence;
    EXPECT_LT(both[1 - sequence]->wait_ns, kNack) << sequence;
  }
}

// Something that was lost is known of: lateness is not all that silence can be.
TEST_F(Inquiries, AGapIsALossThatPatienceKnows) {
  post();
  bench.deliver(WireMaker::numbered(block_of(3, 0, kBlock), 2));
  bench.deliver(not_yet(3, false));
  deliver_others(0, kBlock);
  TimeNs patience = kNack / 4;
  for (uint32_t sequence = 1; sequence < 3; sequence++) {
    post_broadcast(sequence, kBlock);
    bench.finish_all_dma();
    bench.take_log();
    bench.advance(patience - 1);
    EXPECT_EQ(of_the_operation(bench.take_log()), "") << sequence;
    bench.advance(1);
    EXPECT_NE(of_the_operation(bench.take_log()), "") << sequence;
    bench.deliver(
        wire.not_yet(0, broadcast_shape(kBlock), sequence, 0, 0, 0, now_us(), PEAL_NOT_YET_LATE));
    deliver_others(sequence, kBlock);
    patience *= 2;
  }
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

// Nothing was waited for but the own host: that is no reason for others to be asked later.
TEST_F(Inquiries, TheOwnHostsLatenessTeachesNothing) {
  for (const uint32_t origin : {0u, 2u, 3u}) bench.deliver(block_of(origin, 0, kBlock));
  bench.advance(50 * kNack);
  post();
  post_broadcast(1, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(kNack - 1);
  EXPECT_EQ(of_the_operation(bench.take_log()), "");
  bench.advance(1);
  EXPECT_NE(of_the_operation(bench.take_log()), "");
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

// --- how long answers take, docs/decisions/0074 ---

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

// --- who says "late" ---

TEST_F(Inquiries, AHostThatIsAwayIsLate) {
  bench.deliver(wire.nack(2, broadcast_shape(kBlock), 0, 0, 1, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 NOT_YET seq=0 piece=0 origin=1 late\n");
}

// Its host waits for operation 0: what holds it up may be a loss.
TEST_F(Inquiries, AHostThatWaitsIsNotLate) {
  post();
  bench.deliver(wire.nack(2, broadcast_shape(kBlock), 1, 0, 1, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 NOT_YET seq=1 piece=0 origin=1\n");
}

// Rank 2 asks for rank 0's block, which this card lacks as well, until it knows why.
TEST_F(Inquiries, LatenessIsToldOn) {
  post();
  const Frame question = wire.nack(3, broadcast_shape(kBlock), 0, 0, 0, 1);
  bench.deliver(question);
  EXPECT_EQ(bench.take_log(), "send 1>3 NOT_YET seq=0 piece=0 origin=0\n");
  bench.deliver(not_yet(0, true));
  bench.deliver(question);
  EXPECT_EQ(bench.take_log(), "send 1>3 NOT_YET seq=0 piece=0 origin=0 late\n");
  bench.deliver(block_of(2, 0, kBlock));
  bench.take_log();
  bench.deliver(question);
  EXPECT_EQ(bench.take_log(), "send 1>3 NOT_YET seq=0 piece=0 origin=0\n");
}

// A root, say, that only sends sees no loss of its own.
TEST_F(Inquiries, WhoIsAskedLearnsThatPacketsAreLost) {
  const auto question = [&](bool losses) {
    Frame frame = wire.nack(2, broadcast_shape(kBlock), 0, 0, 1, 0);
    if (losses) frame.header.flags |= PEAL_PACKET_LOSSES;
    seal(frame);
    return frame;
  };
  const auto asks = [&](uint64_t sequence) {
    post_broadcast(sequence, kBlock);
    bench.finish_all_dma();
    bench.port.take_sent();
    bench.advance(kNack);
    return bench.port.take_sent().at(0).header;
  };
  bench.deliver(question(false));
  EXPECT_TRUE(bench.card().members[0].patience.lossless);
  const peal_wire_header before = asks(0);
  EXPECT_EQ(before.type, PEAL_PACKET_NACK);
  EXPECT_EQ(before.flags & PEAL_PACKET_LOSSES, 0);
  bench.deliver(question(true));
  EXPECT_FALSE(bench.card().members[0].patience.lossless);
  EXPECT_FALSE(bench.card().members[0].late_patience.lossless);
  deliver_others(0, kBlock);
  const peal_wire_header after = asks(1);
  EXPECT_EQ(after.type, PEAL_PACKET_NACK);
  EXPECT_EQ(after.flags & PEAL_PACKET_LOSSES, PEAL_PACKET_LOSSES);
}

// So does who gets a repair of what was lost.
TEST_F(Inquiries, WhoLearnsOfALossByARepairSaysSo) {
  post();
  bench.advance(2 * kNack);
  Frame repair = block_of(0, 0, kBlock);
  WireMaker::make_repair(repair);
  bench.deliver(repair);
  EXPECT_TRUE(bench.card().members[0].membership.losses);
}

// Rank 1 of four in a barrier, which has long patience and knows of losses: round 0 comes from rank
// 0, and then round 1 goes to rank 3.
class AskedFor : public GroupTest {
 protected:
  AskedFor() : GroupTest(4, 1) {
    note_loss(bench.card(), member_state());
    be_patient(16 * kNack);
  }
  Member& member_state() { return bench.card().members[0]; }
  void be_patient(TimeNs patience_ns) {
    patience = patience_ns;
    member_state().patience.wait_ns = patience_ns;
  }
  void post() {
    post_barrier(0);
    bench.take_log();
  }
  // What it asks soon when rank 3 asks it for round 1.
  std::string asks_when_asked() {
    bench.deliver(wire.nack(3, kBarrierShape, 0, 0, 0, 1));
    bench.take_wire_log();
    bench.advance(2);
    return bench.take_wire_log();
  }
  std::string asks_within(TimeNs time_ns) {
    bench.advance(time_ns);
    return bench.take_wire_log();
  }

  TimeNs patience = 0;
  const std::string question = "send 1>0 NACK barrier seq=0 round=0\n";
};

TEST_F(AskedFor, WhoIsAskedForWhatItLacksAsksOnce) {
  post();
  bench.advance(kNack / kPatienceLeast);
  EXPECT_EQ(asks_when_asked(), question);
  bench.deliver(wire.not_yet(0, kBarrierShape, 0, 0, 0, 0, now_us()));
  bench.advance(kNack);
  EXPECT_EQ(asks_when_asked(), "");
}

// Whatever else keeps it from asking: patience is not used up by others' questions.
TEST_F(AskedFor, OthersQuestionsMakeItLookOnce) {
  post();
  bench.advance(kNack);
  member_state().patience.calm = kCalmInVain;
  Inquiry& inquiry = member_state().operations[0].inquiry;
  asks_when_asked();
  const TimeNs interval_ns = inquiry.interval_ns;
  for (int times = 0; times < 8; times++) {
    inquiry.asked = false;  // as if it had been kept from it
    EXPECT_EQ(asks_when_asked(), "");
  }
  EXPECT_EQ(inquiry.interval_ns, interval_ns);
}

TEST_F(AskedFor, NotBeforeTheLeastThatAnybodyWaits) {
  post();
  bench.advance(kNack / kPatienceLeast - 10);
  EXPECT_EQ(asks_when_asked(), "");
}

TEST_F(AskedFor, NotWhereNothingWasLost) {
  member_state().membership.losses = false;
  post();
  bench.advance(kNack);
  EXPECT_EQ(asks_when_asked(), "");
}

// Of several pieces more is on its way.
TEST_F(AskedFor, NotOfSeveralPieces) {
  post();
  member_state().operations[0].piece_count = 2;
  bench.advance(kNack);
  EXPECT_EQ(asks_when_asked(), "");
}

// Patience did not ask.
TEST_F(AskedFor, TheAnswerTeachesNothing) {
  post();
  bench.advance(kNack);
  EXPECT_EQ(asks_when_asked(), question);
  bench.deliver(wire.not_yet(0, kBarrierShape, 0, 0, 0, 0, now_us(), PEAL_NOT_YET_LATE));
  EXPECT_EQ(member_state().patience.wait_ns, patience);
  EXPECT_EQ(member_state().patience.calm, kCalmLeast);
}

// Who has what it was asked for sends it, and asks nobody.
TEST_F(AskedFor, NotWhoHasIt) {
  post();
  bench.deliver(wire.signal(0, kBarrierShape, 0, 0));
  bench.advance(kNack);
  bench.take_wire_log();
  EXPECT_EQ(asks_when_asked(), "");
}

// The question or the answer was lost: it is asked again after a first interval, however long
// patience is.
TEST_F(AskedFor, AQuestionThatNobodyAnswersIsRepeated) {
  post();
  EXPECT_EQ(asks_within(patience), question);
  EXPECT_EQ(asks_within(kNack - 1), "");
  EXPECT_EQ(asks_within(1), question);
  bench.deliver(wire.not_yet(0, kBarrierShape, 0, 0, 0, 0, now_us()));
  EXPECT_EQ(asks_within(4 * kNack), "");
}

// But only the first one of a silence, and ever more slowly.
TEST_F(AskedFor, WhoIsSilentForLongIsNotAskedAllTheTime) {
  post();
  for (int doubled = 0; doubled < 16; doubled++) bench.advance(patience);
  uint64_t before = bench.counter(PEAL_COUNTER_SENT_NACK);
  EXPECT_LE(before, 4u + 7u);
  bench.advance(8 * patience);
  EXPECT_LE(bench.counter(PEAL_COUNTER_SENT_NACK) - before, 2u);
}

TEST_F(AskedFor, WhereNothingWasLostItIsNotRepeated) {
  member_state().membership.losses = false;
  post();
  EXPECT_EQ(asks_within(patience), question);
  EXPECT_EQ(asks_within(4 * kNack), "");
}

// Whose patience is short asks soon again anyway.
TEST_F(AskedFor, NorWherePatienceIsShort) {
  be_patient(kNack / 2);
  post();
  EXPECT_EQ(asks_within(patience), question);
  EXPECT_EQ(asks_within(2 * patience - 1), "");
  EXPECT_EQ(asks_within(1), question);
}

// A card with a queue before it waits for that, as others have one, too.
TEST_F(AskedFor, ACardThatIsBehindRepeatsLater) {
  bench.card().behind_ns = 2 * kNack;
  Inquiry inquiry = {};
  inquiry_doubt(bench.card(), member_state(), inquiry, peer_behind(0));
  EXPECT_EQ(inquiry.doubt_ns, 4 * 2 * kNack);
  bench.card().behind_ns = 0;
}

// What a gap has caused is forgotten with the next doubt.
TEST_F(AskedFor, ADoubtOfAnotherKindIsNoGap) {
  Inquiry inquiry = {};
  inquiry_suspect(inquiry, peer_behind(0));
  inquiry.asked_suspect = true;
  EXPECT_TRUE(inquiry_cleared(bench.card(), member_state(), inquiry));
  EXPECT_TRUE(inquiry_has_gap(inquiry, peer_behind(0)));
  EXPECT_FALSE(inquiry_has_gap(inquiry, peer_behind(1)));
  inquiry_doubt(bench.card(), member_state(), inquiry, peer_behind(0));
  EXPECT_FALSE(inquiry_has_gap(inquiry, peer_behind(0)));
}

}  // namespace
}  // namespace peal::test
