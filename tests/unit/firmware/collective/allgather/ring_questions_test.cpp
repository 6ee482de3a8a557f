// SPDX-License-Identifier: BSD-2-Clause
// What a rank of a ring asks for, and what it answers.
#include "firmware/collective/allgather/ring_questions.h"

#include "tests/unit/firmware/collective/allgather/ring_fixture.h"

namespace peal::test {
namespace {

class RingQuestions : public RingTest {
 protected:
  RingQuestions() {
    post();
    bench.finish_all_dma();
    bench.take_log();
  }
  // Questions in what comes of a packet.
  std::string asks(const Frame& frame) { return lines_that_begin(answer(frame), "send 1>0"); }
  static std::string nack(uint32_t first, const std::string& bits, uint32_t piece = 0) {
    return "send 1>0 NACK seq=0 piece=" + std::to_string(piece) +
           " origin=" + std::to_string(first) + " missing=" + bits + "\n";
  }
  std::string silence(TimeNs ns) {
    bench.take_log();
    bench.advance(ns);
    return lines_that_begin(bench.take_wire_log(), "send 1>0 NACK");
  }
  static Frame repair(Frame frame) {
    WireMaker::make_repair(frame);
    return frame;
  }
};

TEST_F(RingQuestions, WhatIsJumpedOverIsAskedForAtOnceByName) {
  EXPECT_EQ(asks(block_at(1)), "");
  EXPECT_EQ(asks(block_at(4)), nack(7, "0x3"));
  EXPECT_EQ(asks(block_at(5)), "");  // once
  EXPECT_EQ(asks(block_at(7)), nack(3, "0x1"));
}

TEST_F(RingQuestions, WhatTheLeftNeighbourHoldsBackIsNotAskedFor) {
  EXPECT_EQ(asks(block_at(4, 3)), "");
  EXPECT_EQ(asks(block_at(2, 2)), "");
  // One more than it says: one of these is lost.
  EXPECT_EQ(asks(block_at(6, 2)), nack(4, "0x1"));
}

// It was held back, and was sent since: nobody can tell which it was.
TEST_F(RingQuestions, OneThatWasLateAndIsLostIsAskedForWithAllThatAreMissing) {
  EXPECT_EQ(asks(block_at(4, 3)), "");
  EXPECT_EQ(asks(block_at(5, 2)), nack(0, "0x7"));
}

TEST_F(RingQuestions, ARepairMakesUpForOneAndGoesOn) {
  bench.deliver(block_at(3));
  EXPECT_EQ(answer(repair(block_at(1))),
            "send 1>2 DATA seq=0 piece=0 origin=0 hop=0 held=1 len=64\n");
  EXPECT_EQ(asks(block_at(5, 0)), nack(5, "0x1"));
}

// Whatever comes meanwhile; and by name, which silence would not.
TEST_F(RingQuestions, WhatIsLostIsAskedForAgainUntilItComes) {
  const TimeNs half = default_timeouts().nack_ns / 2;
  bench.deliver(block_at(3));
  EXPECT_EQ(silence(half), "");
  bench.deliver(block_at(4));
  EXPECT_EQ(silence(half), nack(0, "0x3"));
  bench.deliver(block_at(5));
  EXPECT_EQ(silence(half), "");  // ever more seldom
}

// A later one has come farther: what it passed there was the end.
TEST_F(RingQuestions, TheEndOfAPieceShowsByALaterOne) {
  RingTest::TearDown();
  const size_t block = 2 * size_t{piece_bytes_for(ranks)};
  post(block, 1);
  bench.finish_all_dma();
  const auto of = [&](uint32_t distance, uint32_t piece, uint8_t number) {
    Frame frame = wire.ring(ring_shape(block), 1, piece, origin_at(distance),
                            part(origin_at(distance), block, piece));
    return WireMaker::numbered(frame, number);
  };
  const auto deliver = [&](const Frame& frame) {
    return lines_that_begin(answer(frame), "send 1>0");
  };
  // All of the first operation.
  for (uint32_t distance = 1; distance < ranks; distance++)
    deliver(WireMaker::numbered(block_at(distance), static_cast<uint8_t>(distance)));
  EXPECT_EQ(deliver(of(1, 0, 8)), "");
  EXPECT_EQ(deliver(of(1, 1, 9)), "");
  // Number 10 was the second block of piece 0.
  EXPECT_EQ(deliver(of(2, 1, 11)), "send 1>0 NACK seq=1 piece=0 origin=7 missing=0x1\n");
  // The next says that one is lost, which is under way already.
  EXPECT_EQ(deliver(of(3, 1, 12)), "");
}

// One question for the edge, seldom, whatever is missing; "not yet" silences it.
TEST_F(RingQuestions, InSilenceOneQuestionIsAskedOfTheFirstPiece) {
  EXPECT_EQ(silence(default_timeouts().nack_ns), nack(0, "0x7f"));
  EXPECT_EQ(asks(wire.not_yet(0, ring_shape(kBlock), 0, 0, 0, 0, now_us(), PEAL_NOT_YET_LATE)), "");
  EXPECT_EQ(silence(4 * default_timeouts().nack_ns), "");
}

// The edge has nothing under way: what is missing is missing farther up.
TEST_F(RingQuestions, WhoeverSaysThatAllHasComeIsNotAsked) {
  bench.deliver(WireMaker::numbered(block_at(1), 1));
  EXPECT_NE(silence(default_timeouts().nack_ns), "");
  bench.deliver(WireMaker::numbered(wire.not_yet(0, ring_shape(kBlock), 0, 0, 7, 0, now_us()), 1));
  EXPECT_EQ(silence(100 * default_timeouts().nack_ns), "");
}

// A gap that is explained is nobody else's: an older operation that waits as well is silent.
TEST_F(RingQuestions, WhatAPieceKnowsToBeLostIsNotAskedForElsewhere) {
  post(kBlock, 1);
  bench.finish_all_dma();
  const auto next = [&](uint32_t distance, uint8_t number) {
    const uint32_t origin = origin_at(distance);
    return asks(WireMaker::numbered(
        wire.ring(ring_shape(kBlock), 1, 0, origin, pattern_block(1, origin, 0, kBlock)), number));
  };
  EXPECT_EQ(next(1, 1), "");
  EXPECT_EQ(next(4, 4), "send 1>0 NACK seq=1 piece=0 origin=7 missing=0x3\n");
  EXPECT_EQ(next(5, 5), "");
}

// What shows the loss is another operation's: of this one all was sent.
TEST_F(RingQuestions, TheEndOfAnOperationShowsByTheNextOne) {
  bench.deliver(WireMaker::numbered(block_at(1), 1));
  post_barrier(1);
  bench.take_log();
  EXPECT_EQ(asks(WireMaker::numbered(wire.signal(0, kBarrierShape, 1, 0), 8)), nack(7, "0x3f"));
}

TEST_F(RingQuestions, AnswersWhatItHasFromTheChannelAndAsksNobodyForTheRest) {
  bench.deliver(block_at(1));
  bench.deliver(block_at(3, 1));
  bench.finish_all_dma();
  EXPECT_EQ(asked(1, 0xf),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64 repair\n"
            "send 1>2 DATA seq=0 piece=0 origin=0 hop=0 len=64 repair\n"
            "send 1>2 DATA seq=0 piece=0 origin=6 hop=0 len=64 repair\n");
  EXPECT_EQ(asked(7), "send 1>2 NOT_YET seq=0 piece=0 origin=7\n");
}

TEST_F(RingQuestions, WhatIsOnItsWayToTheChannelIsAnsweredWhenItLiesThere) {
  bench.deliver(block_at(1));
  bench.take_log();
  bench.deliver(wire.nack(2, ring_shape(kBlock), 0, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 NOT_YET seq=0 piece=0 origin=0 sent\n");
  bench.finish_all_dma();
  EXPECT_EQ(asked(0), "send 1>2 DATA seq=0 piece=0 origin=0 hop=0 len=64 repair\n");
  bench.spend_repairs();
  EXPECT_EQ(asked(0), "send 1>2 NOT_YET seq=0 piece=0 origin=0 sent\n");
}

TEST_F(RingQuestions, AfterTheEndTheChannelAnswersNotTheUsersMemory) {
  deliver_all();
  ASSERT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  scribble();
  for (uint32_t distance = 0; distance + 1 < ranks; distance++) {
    const uint32_t origin = origin_at(distance);
    bench.port.take_sent();
    asked(origin);
    const auto sent = bench.port.take_sent();
    ASSERT_EQ(sent.size(), 1u) << origin;
    EXPECT_EQ(sent[0].payload, part(origin)) << origin;
  }
}

TEST_F(RingQuestions, NothingIsSentBeforeThePostButWhatHasCome) {
  EXPECT_EQ(answer(wire.nack(2, ring_shape(kBlock), 1, 0, 1, 0)),
            "send 1>2 NOT_YET seq=1 piece=0 origin=1\n");
  EXPECT_EQ(silence(default_timeouts().nack_ns), nack(0, "0x7f"));  // of the first
  deliver_all();
  bench.take_log();
  EXPECT_EQ(silence(1000 * default_timeouts().nack_ns), "");
}

TEST_F(RingQuestions, WhoeverIsNotTheRightNeighbourOrAsksForWhatItNeverGetsIsDropped) {
  const auto with = [&](uint32_t asker, uint32_t origin, uint64_t bits, uint32_t hop = 0,
                        uint32_t piece = 0) {
    return change(wire.nack(asker, ring_shape(kBlock), 0, piece, origin, hop, bits));
  };
  EXPECT_EQ(with(2, 1, 1, 1), "+1 drop_hop");
  EXPECT_EQ(with(2, 1, 1, 0, 1), "+1 drop_piece");
  EXPECT_EQ(with(0, 1, 1), "+1 drop_sender");
  EXPECT_EQ(with(3, 1, 1), "+1 drop_sender");
  EXPECT_EQ(with(2, 2, 1), "+1 drop_origin");
  EXPECT_EQ(with(2, 8, 1), "+1 drop_origin");
  EXPECT_EQ(with(2, 1, 0), "+1 drop_fragment");
  EXPECT_EQ(with(2, 1, 0x80), "+1 drop_fragment");  // its own
  EXPECT_EQ(with(2, 3, 2), "+1 drop_fragment");
  EXPECT_EQ(with(2, 3, 1), "+1 sent_not_yet, +1 received");
}

}  // namespace
}  // namespace peal::test
