// SPDX-License-Identifier: BSD-2-Clause
// Questions and answers about steps with numbers that nobody sends, and one packet after another.
#include "firmware/collective/alltoallv/bruck.h"

#include "tests/unit/firmware/collective/alltoallv/bruck_fixture.h"

namespace peal::test {
namespace {

class BruckvNumbers : public BruckvTest {
 protected:
  explicit BruckvNumbers(uint32_t sent_packets = kInPackets) : BruckvTest(8, 1, sent_packets) {
    set_all(40);
  }
};

// What came early is kept by a number, which no question finds; nor one that is behind it.
TEST_F(BruckvNumbers, AQuestionNamesNoPacketThatCame) {
  bench.deliver(step(2));
  bench.take_log();
  for (const uint32_t piece : {PEAL_PIECE_STEP - 1, PEAL_PIECE_STEP - 2}) {
    bench.deliver(wire.nack(3, shape(), 0, piece, rank, 0));
    bench.finish_all_dma();
    EXPECT_EQ(lines_with(bench.take_log(), "DATA"), "") << piece;
  }
}

// Of ranks that are no peers no step is awaited: nothing of theirs is in doubt.
TEST_F(BruckvNumbers, AnAnswerOfWhoSendsNoStepIsNone) {
  begin();
  bench.take_log();
  const Inquiry& inquiry = bench.card().members[0].operations[0].inquiry;
  bench.deliver(wire.not_yet(4, shape(), 0, PEAL_PIECE_STEP, 4, 0, 0, PEAL_NOT_YET_SENT));
  bench.finish_all_dma();
  EXPECT_EQ(inquiry.doubts, 0u);
  bench.deliver(wire.not_yet(2, shape(), 0, PEAL_PIECE_STEP, 2, 0, 0, PEAL_NOT_YET_SENT));
  EXPECT_NE(inquiry.doubts, 0u);
}

// As "I wait as well" of any algorithm in steps says; in a direct exchange it says nothing.
TEST_F(BruckvNumbers, WhoWaitsInAStepTeachesPatience) {
  begin();
  Member& self = bench.card().members[0];
  self.depth = 4;
  const TimeNs before_ns = self.patience.wait_ns;
  bench.advance(2 * kNack);
  const auto asked_us = static_cast<uint32_t>((bench.now - kNack / 2) / 1000);
  const auto waits = [&](uint32_t piece) {
    bench.deliver(wire.not_yet(2, shape(), 0, piece, 2, 0, asked_us, PEAL_NOT_YET_WAITS));
  };
  waits(0);
  EXPECT_EQ(self.patience.wait_ns, before_ns);
  waits(PEAL_PIECE_STEP);
  EXPECT_GT(self.patience.wait_ns, before_ns);
}

}  // namespace
}  // namespace peal::test
