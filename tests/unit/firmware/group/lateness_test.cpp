// SPDX-License-Identifier: BSD-2-Clause
// What answers teach of lateness, and who tells of it.
#include "firmware/group/inquiry.h"

#include "tests/unit/firmware/group/inquiry_fixture.h"

namespace peal::test {
namespace {

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
// more from others' questions, however long his host is away, and nothing where he has lost a
// packet.
TEST_F(Inquiries, WhoIsLateLearnsWhatHeIsAsked) {
  Patience& patience = bench.card().members[0].patience;
  const auto ask = [&] { bench.deliver(wire.nack(2, broadcast_shape(kBlock), 1, 0, 1, 0, 1)); };
  post_broadcast(0, kBlock);
  deliver_others(0, kBlock);
  bench.finish_all_dma();
  bench.deliver(block_of(3, 1, kBlock));
  bench.take_log();
  bench.advance(kNack);
  ask();
  EXPECT_EQ(bench.take_log(), "send 1>2 NOT_YET seq=1 piece=0 origin=1 late\n");
  EXPECT_EQ(patience.wait_ns, 16 * kNack);
  bench.advance(32 * kNack);
  ask();
  EXPECT_EQ(bench.take_log(), "send 1>2 NOT_YET seq=1 piece=0 origin=1 late\n");
  EXPECT_EQ(patience.wait_ns, 16 * kNack);
  patience = patience_start(default_timeouts(), 0);
  patience.lossless = false;
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

}  // namespace
}  // namespace peal::test
