// SPDX-License-Identifier: BSD-2-Clause
// What a gap on an edge makes a card ask, at once and of that peer alone.
#include "firmware/operation/lost.h"

#include <algorithm>

#include "tests/support/log_lines.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

// Rank 1 of four: block 0 comes from rank 0, blocks 3 and 2 from rank 3.
class Lost : public GroupTest {
 protected:
  Lost() : GroupTest(4, 1) {}
  // Patience for anything that is not known to be lost becomes long.
  void make_patient() {
    for (int i = 0; i < 8; i++) {
      bench.advance(kNack << i);
      bench.deliver(
          wire.not_yet(0, broadcast_shape(kBlock), 0, 0, 0, 0, now_us(), PEAL_NOT_YET_LATE));
      bench.deliver(
          wire.not_yet(3, broadcast_shape(kBlock), 0, 0, 3, 1, now_us(), PEAL_NOT_YET_LATE));
    }
  }
};

TEST_F(Lost, TheOldestOperationThatLacksSomethingAsks) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(answer(WireMaker::numbered(block_of(3, 0, kBlock), 1)), "");
  // The first of the next operation, and something between.
  EXPECT_EQ(answer(WireMaker::numbered(block_of(3, 1, kBlock), 3)),
            "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x2\n");
}

TEST_F(Lost, WhatIsTheOtherNeighboursIsNotAskedFor) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  for (const uint32_t origin : {3u, 2u}) bench.deliver(block_of(origin, 0, kBlock));
  // Rank 3 owes nothing here; its own loss is of another operation, which nobody has heard of.
  EXPECT_EQ(answer(WireMaker::numbered(block_of(3, 1, kBlock), 5)),
            "send 1>3 NACK seq=1 piece=0 origin=3 missing=0x2\n");
}

// The question, or what it brought, is lost as well: it is repeated, to that peer alone, and ever
// more seldom, until it is answered.
TEST_F(Lost, AnUnansweredQuestionIsSoonRepeated) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  make_patient();
  const std::string question = "send 1>0 NACK seq=0 piece=0 origin=0\n";
  EXPECT_EQ(answer(WireMaker::numbered(wire.alive(0), 1)), question);
  bench.advance(kNack - 1);
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.advance(1);
  EXPECT_EQ(bench.take_wire_log(), question);
  bench.advance(2 * kNack - 1);
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.advance(1);
  EXPECT_EQ(bench.take_wire_log(), question);
  bench.deliver(wire.not_yet(0, broadcast_shape(kBlock), 0, 0, 0, 0, now_us()));
  bench.advance(4 * kNack);
  EXPECT_EQ(bench.take_wire_log(), "");
}

TEST_F(Lost, ARepairEndsTheDoubt) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  make_patient();
  EXPECT_EQ(answer(WireMaker::numbered(wire.alive(3), 1)),
            "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
  Frame repair = block_of(3, 0, kBlock);
  repair.header.flags = PEAL_PACKET_REPAIR;
  seal(repair);
  EXPECT_EQ(answer(repair), "");
  bench.advance(4 * kNack);
  EXPECT_EQ(bench.take_wire_log(), "");
}

// What is known to be lost is asked for at once, whatever patience says: that it came meanwhile
// says nothing of patience.
TEST_F(Lost, ARepeatedRepairOfWhatIsCertainTeachesNothing) {
  bench.now += 2 * kNack;  // what was learned before may be learned anew
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  for (const uint32_t origin : {3u, 2u}) bench.deliver(block_of(origin, 0, kBlock));
  bench.deliver(WireMaker::numbered(wire.alive(0), 1));
  Frame repair = block_of(0, 0, kBlock);
  bench.deliver(repair);
  const TimeNs before_ns = bench.card().members[0].patience.wait_ns;
  bench.now += 2 * kNack;  // as above
  WireMaker::make_repair(repair);
  bench.deliver(repair);
  bench.finish_all_dma();
  EXPECT_LE(bench.card().members[0].patience.wait_ns, before_ns);
}

// Nor does it say how long others compute that somebody who was asked for it is late: patience was
// not what asked, and may not grow by it without waiting.
TEST_F(Lost, ALateAnswerAboutWhatIsCertainTeachesNothing) {
  for (uint32_t sequence = 0; sequence < 3; sequence++) {
    post_broadcast(sequence, kBlock);
    bench.finish_all_dma();
  }
  const Member& own = bench.card().members[0];
  bench.advance(kNack / 2);
  bench.deliver(WireMaker::numbered(wire.alive(0), 1));
  const TimeNs before_ns = own.patience.wait_ns;
  for (uint32_t sequence = 0; sequence < 3; sequence++) {
    bench.now += kNack / 100;
    bench.deliver(
        wire.not_yet(0, broadcast_shape(kBlock), sequence, 0, 0, 0, now_us(), PEAL_NOT_YET_LATE));
  }
  EXPECT_EQ(own.patience.wait_ns, before_ns);
  EXPECT_EQ(own.late_patience.wait_ns, before_ns);
}

// "Not yet" says that it was not of this operation: the next one asks, and recycling last.
TEST_F(Lost, NotYetPassesTheQuestionOn) {
  for (uint32_t sequence = 0; sequence < 3; sequence++) {
    post_broadcast(sequence, kBlock);
    bench.finish_all_dma();
  }
  EXPECT_EQ(answer(WireMaker::numbered(wire.alive(0), 1)),
            "send 1>0 NACK seq=0 piece=0 origin=0\n");
  for (uint32_t sequence = 0; sequence < 2; sequence++) {
    EXPECT_EQ(answer(wire.not_yet(0, broadcast_shape(kBlock), sequence, 0, 0, 0, now_us())),
              "send 1>0 NACK seq=" + std::to_string(sequence + 1) + " piece=0 origin=0\n");
  }
  EXPECT_EQ(answer(wire.not_yet(0, broadcast_shape(kBlock), 2, 0, 0, 0, now_us())), "");
}

// A repair of what has come meanwhile says the same.
TEST_F(Lost, ARepairOfWhatHasComePassesTheQuestionOn) {
  post_barrier(0);
  post_barrier(1);
  EXPECT_EQ(answer(WireMaker::numbered(wire.alive(0), 1)), "send 1>0 NACK barrier seq=0 round=0\n");
  Frame come = wire.signal(0, kBarrierShape, 0, 0);
  bench.deliver(come);
  WireMaker::make_repair(come);
  EXPECT_EQ(answer(come), "send 1>0 NACK barrier seq=1 round=0\n");
}

// But not where an answer said that it had been sent: it was on its way.
TEST_F(Lost, WhatWasOnItsWayPassesNothingOn) {
  post_barrier(0);
  post_barrier(1);
  bench.advance(kNack);
  const auto answered = [&](uint32_t reason) {
    return answer(wire.not_yet(0, kBarrierShape, 0, 0, 0, 0, now_us(), reason));
  };
  EXPECT_EQ(answered(PEAL_NOT_YET_SENT), "");
  EXPECT_EQ(answered(PEAL_NOT_YET_WAITS), "");
}

// All pieces that the window lets come: the first may be held up by somebody's lateness. One
// question names them.
TEST_F(Lost, ItMayBeOfAnyPieceInTheWindow) {
  static_assert(CONFIG_PIECE_WINDOW == 2);
  post_broadcast(0, kBlockMax);
  bench.finish_all_dma();
  EXPECT_EQ(answer(WireMaker::numbered(wire.alive(0), 1)),
            "send 1>0 NACK seq=0 piece=0 origin=0 missing=0x3\n");
  EXPECT_EQ(answer(WireMaker::numbered(wire.alive(3), 1)),
            "send 1>3 NACK seq=0 piece=0 origin=3 missing=0xf\n");
}

// Dropped for want of a DMA record: nobody else knows, so it is asked for as soon as a question
// that was not answered, whatever was promised.
TEST_F(Lost, WhatCannotBeTakenIsSoonAskedFor) {
  constexpr size_t kLong = 2 * CONFIG_MTU_BYTES;
  post_broadcast(0, kLong);
  bench.finish_all_dma();
  bench.advance(default_timeouts().nack_ns);
  bench.deliver(wire.not_yet(0, broadcast_shape(kLong), 0, 0, 0, 0, now_us(), PEAL_NOT_YET_LATE));
  bench.deliver(wire.not_yet(3, broadcast_shape(kLong), 0, 0, 3, 1, now_us(), PEAL_NOT_YET_LATE));
  const uint32_t in_use = bench.card().dma_in_use;
  bench.card().dma_in_use = CONFIG_DMA_RECORDS;  // as if others had them all
  const auto before = bench.counters();
  bench.deliver(
      wire.hopping(broadcast_shape(kLong), 0, 0, 0, pattern_block(0, 0, 0, CONFIG_MTU_BYTES)));
  EXPECT_EQ(bench.counter_changes(before), "+1 drop_no_dma");
  bench.card().dma_in_use = in_use;
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  const std::string question = "send 1>0 NACK seq=0 piece=0 origin=0 missing=0x3\n";
  EXPECT_EQ(bench.take_wire_log().substr(0, question.size()), question);
}

// A repair that makes no sense answers nothing.
TEST_F(Lost, ADroppedRepairIsNoAnswer) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.advance(default_timeouts().nack_ns);
  bench.deliver(wire.not_yet(0, broadcast_shape(kBlock), 0, 0, 0, 0, now_us(), PEAL_NOT_YET_LATE));
  bench.deliver(wire.not_yet(3, broadcast_shape(kBlock), 0, 0, 3, 1, now_us(), PEAL_NOT_YET_LATE));
  EXPECT_EQ(answer(WireMaker::numbered(wire.alive(0), 1)),
            "send 1>0 NACK seq=0 piece=0 origin=0\n");
  Frame wrong = block_of(0, 0, kBlock);
  wrong.header.flags = PEAL_PACKET_REPAIR;
  wrong.header.hop = 1;
  seal(wrong);
  const auto before = bench.counters();
  bench.deliver(wrong);
  EXPECT_EQ(bench.counter_changes(before), "+1 drop_hop");
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK seq=0 piece=0 origin=0\n");
}

// What is sent again is no new packet of its edge.
TEST_F(Lost, RepairsAreNotNumbered) {
  const auto to_rank_2 = [&] {
    for (const Frame& frame : bench.port.take_sent()) {
      if (frame.header.destination[5] == 2) return frame.header;
    }
    return peal_wire_header{};
  };
  bench.take_log();
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(to_rank_2().edge, 1u);
  bench.deliver(wire.nack(2, broadcast_shape(kBlock), 0, 0, 1, 0));
  bench.finish_all_dma();
  const peal_wire_header repair = to_rank_2();
  EXPECT_EQ(repair.flags, PEAL_PACKET_REPAIR);
  EXPECT_EQ(repair.edge, 0u);
  post_broadcast(1, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(to_rank_2().edge, 2u);
}

TEST_F(Lost, APromiseIsNoHindrance) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.advance(default_timeouts().nack_ns);
  bench.deliver(wire.not_yet(0, broadcast_shape(kBlock), 0, 0, 0, 0, now_us(), PEAL_NOT_YET_LATE));
  EXPECT_EQ(answer(WireMaker::numbered(wire.alive(0), 1)),
            "send 1>0 NACK seq=0 piece=0 origin=0\n");
  EXPECT_EQ(answer(WireMaker::numbered(wire.alive(0), 1)), "");
}

// What was dropped has not been heard: it is lost like any other.
TEST_F(Lost, ADroppedPacketIsMissing) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  Frame wrong = block_of(0, 0, kBlock);
  wrong.header.hop = 1;
  EXPECT_EQ(answer(WireMaker::numbered(wrong, 1)), "");
  EXPECT_EQ(answer(WireMaker::numbered(block_of(0, 1, kBlock), 2)),
            "send 1>3 DATA seq=1 piece=0 origin=0 hop=1 len=64\n"
            "send 1>0 NACK seq=0 piece=0 origin=0\n");
}

TEST_F(Lost, ASignalIsAskedForToo) {
  post_barrier(0);
  EXPECT_EQ(answer(WireMaker::numbered(wire.signal(0, kBarrierShape, 1, 0), 2)),
            "send 1>0 NACK barrier seq=0 round=0\n");
}

// Round 1 comes from rank 3; round 0 is rank 0's, of whom nothing is known to be lost.
TEST_F(Lost, ALaterRoundOfTheOneWhoLostItIsAskedForBeforeTheFirst) {
  post_barrier(0);
  EXPECT_EQ(answer(WireMaker::numbered(wire.alive(3), 1)), "send 1>3 NACK barrier seq=0 round=1\n");
}

// When no operation lacks anything of the peer, it was a signal of recycling.
TEST_F(Lost, RecyclingAsksLast) {
  run_own(0, kEpoch);
  EXPECT_EQ(answer(WireMaker::numbered(wire.alive(0), 1)),
            "send 1>0 NACK recycle epoch=0 below root=1 hop=0\n");
}

// Rank 1 of eight: four blocks of step 2 come from rank 5, in four packets.
class LostOfEight : public GroupTest {
 protected:
  static constexpr size_t kPacket = CONFIG_MTU_BYTES;
  static constexpr size_t kLong = 2 * kPacket;  // two pieces, which do not gather in staging
  static_assert(CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW) / 8 >= kPacket);

  LostOfEight() : GroupTest(8, 1) {
    bench.card().members[0].patience.wait_ns = 64 * kNack;  // as if ranks were late now and then
    post_doubling(0, kLong);
    bench.finish_all_dma();
    bench.take_log();
  }
  // A packet of step 2, as the edge's first and the following.
  Frame packet(uint64_t sequence, uint32_t fragment, uint8_t number) {
    return WireMaker::numbered(
        wire.doubling(doubling_shape(kLong), static_cast<uint32_t>(sequence), 0, 2, fragment,
                      pattern_block(sequence, 4 + fragment, 0, kPacket)),
        number);
  }
  void deliver(const Frame& frame) {
    bench.deliver(frame);
    bench.finish_all_dma();
  }
  // What is asked for of the first piece.
  std::string asked() {
    return lines_that_begin(bench.take_wire_log(), "send 1>5 NACK seq=0 piece=0");
  }
};

TEST_F(LostOfEight, OfAStepOnlyWhatIsBeforeTheLastPacket) {
  deliver(packet(0, 1, 2));
  EXPECT_EQ(asked(), "send 1>5 NACK seq=0 piece=0 step=2 missing=0x1\n");
}

// Behind a packet of the next operation nothing of this one follows.
TEST_F(LostOfEight, AllOfAStepBehindWhichAnotherOperationComes) {
  for (const uint8_t fragment : {0, 1, 2}) {
    deliver(packet(0, fragment, static_cast<uint8_t>(fragment + 1)));
  }
  EXPECT_EQ(bench.take_wire_log(), "");
  deliver(packet(1, 0, 5));
  EXPECT_EQ(asked(), "send 1>5 NACK seq=0 piece=0 step=2 missing=0x8\n");
}

TEST_F(LostOfEight, WhatCannotBeTakenThoughItIsTheLast) {
  for (const uint8_t fragment : {0, 1, 2}) {
    deliver(packet(0, fragment, static_cast<uint8_t>(fragment + 1)));
  }
  const uint32_t in_use = bench.card().dma_in_use;
  bench.card().dma_in_use = CONFIG_DMA_RECORDS;  // as if others had them all
  EXPECT_EQ(change(packet(0, 3, 4)), "+1 drop_no_dma");
  bench.card().dma_in_use = in_use;
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(asked(), "send 1>5 NACK seq=0 piece=0 step=2 missing=0x8\n");
}

// Of two packets that rank 3 asks for one can be sent again now.
TEST_F(LostOfEight, WhoCannotSendAllAgainSaysSo) {
  deliver(wire.doubling(doubling_shape(kLong), 0, 0, 0, 0, pattern_block(0, 0, 0, kPacket)));
  bench.spend_repairs(1);
  const std::string log = answer(wire.nack(3, doubling_shape(kLong), 0, 0, 3, 1, 0b11));
  EXPECT_EQ(lines_with(log, "NOT_YET"), "send 1>3 NOT_YET seq=0 piece=0 step=1 sent\n");
  EXPECT_EQ(lines_with(log, "repair"), lines_with(log, "step=1 frag=0")) << log;
  EXPECT_NE(lines_with(log, "repair"), "");
}

// It sends one of four packets again, and says that it cannot send the others now. They are asked
// for until they come.
TEST_F(LostOfEight, WhatCouldNotBeSentAgainIsAskedForAgainSoon) {
  const TimeNs nack = default_timeouts().nack_ns;
  const auto say_sent = [this] {
    bench.deliver(wire.not_yet(5, doubling_shape(kLong), 0, 0, 5, 2, now_us(), PEAL_NOT_YET_SENT));
  };
  const auto asked_in = [this](TimeNs within) {
    bench.take_log();
    bench.advance(within);
    return asked();
  };
  say_sent();  // that it was asked in silence, for whatever this was
  EXPECT_EQ(asked_in(nack), "send 1>5 NACK seq=0 piece=0 step=2 missing=0xf\n");
  say_sent();
  Frame repair = packet(0, 0, 0);
  repair.header.flags = PEAL_PACKET_REPAIR;
  seal(repair);
  deliver(repair);
  EXPECT_EQ(asked_in(2 * nack), "send 1>5 NACK seq=0 piece=0 step=2 missing=0xe\n");
  bench.deliver(wire.not_yet(5, doubling_shape(kLong), 0, 0, 5, 2, now_us()));
  EXPECT_EQ(asked_in(8 * nack), "");
}

// It cannot send that again for long, and says so each time: it is asked ever more seldom all the
// same.
TEST_F(LostOfEight, WhoCannotSendAgainIsAskedEverMoreSeldom) {
  const auto& timeouts = default_timeouts();
  const auto say_sent = [this] {
    bench.deliver(wire.not_yet(5, doubling_shape(kLong), 0, 0, 5, 2, now_us(), PEAL_NOT_YET_SENT));
  };
  say_sent();
  TimeNs interval = timeouts.nack_ns;
  for (int look = 0; look < 12; look++) {
    bench.take_log();
    bench.advance(interval - 1);
    EXPECT_EQ(asked(), "") << look;
    bench.advance(1);
    EXPECT_EQ(asked(), "send 1>5 NACK seq=0 piece=0 step=2 missing=0xf\n") << look;
    say_sent();
    interval = std::min(2 * interval, timeouts.nack_max_ns);
  }
}

// What was asked for and has not come is asked for with all that is behind it.
TEST_F(LostOfEight, AllOfAStepWhenNobodyAnswers) {
  deliver(packet(0, 1, 2));
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(asked(), "send 1>5 NACK seq=0 piece=0 step=2 missing=0xd\n");
}

}  // namespace
}  // namespace peal::test
