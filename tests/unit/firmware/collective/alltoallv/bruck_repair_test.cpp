// SPDX-License-Identifier: BSD-2-Clause
// Alltoallv in steps where packets are lost: who asks whom for which step, and what is answered.
#include "firmware/collective/alltoallv/bruck.h"

#include "firmware/group/inquiry.h"
#include "tests/unit/firmware/collective/alltoallv/bruck_fixture.h"

namespace peal::test {
namespace {

// What was sent lies in the channel, or in as many packets as the parameter says.
class BruckvRepair : public BruckvTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  BruckvRepair() : BruckvTest(8, 1, GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Keeps, BruckvRepair, ::testing::Values(kInChannel, 1, kInPackets));

TEST_P(BruckvRepair, AStepThatWasSentIsSentAgain) {
  begin();
  for (uint32_t k = 0; k < steps; k++) {
    for (uint32_t sent = 0; sent <= k; sent++) expect_repaired(sent);
    bench.deliver(step(k));
    bench.finish_all_dma();
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), steps);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_REPAIR), 1u + 2u + 3u);
  expect_over();
}

// Then the user's memory is the user's again.
TEST_P(BruckvRepair, AlsoAfterTheEndAndTwice) {
  begin();
  deliver_steps();
  expect_over();
  scribble();
  for (int twice = 0; twice < 2; twice++)
    for (uint32_t k = 0; k < steps; k++) expect_repaired(k);
}

TEST_P(BruckvRepair, AStepOfNoBlocksIsAHeaderAgain) {
  set_all(0);
  begin();
  deliver_steps();
  for (uint32_t k = 0; k < steps; k++) expect_repaired(k);
}

// The next one has a place of its own for it.
TEST_P(BruckvRepair, TheNextOperationLeavesItAlone) {
  begin();
  deliver_steps();
  post(1, false, 1);
  bench.finish_all_dma();
  deliver_steps(1);
  EXPECT_EQ(done(), 2u);
  scribble();
  for (uint32_t k = 0; k < steps; k++) expect_repaired(k);
}

TEST_P(BruckvRepair, BeforeItWasSentTheAnswerIsNotYet) {
  post();
  for (uint32_t k = 0; k < steps; k++) {
    bench.take_log();
    bench.deliver(question(k));
    EXPECT_EQ(lines_that_begin(bench.take_log(), "send"), not_yet(k)) << k;
  }
  bench.finish_all_dma();
  for (uint32_t k = 0; k < steps; k++) {
    for (uint32_t later = k + 1; later < steps; later++)
      EXPECT_EQ(lines_with(ask_for_step(later), "NOT_YET"), not_yet(later)) << k << later;
    bench.deliver(step(k));
    bench.finish_all_dma();
  }
  expect_over();
}

TEST_P(BruckvRepair, BeforeThePostTheHostIsLate) {
  bench.deliver(step(0));
  bench.finish_all_dma();
  EXPECT_EQ(ask_for_step(0), not_yet(0, " late"));
}

TEST_P(BruckvRepair, WhenNothingMayBeSentAgainTheAnswerSaysThatItWasSent) {
  begin();
  bench.spend_repairs();
  EXPECT_EQ(ask_for_step(0), not_yet(0, " sent"));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_HELD_BACK_REPAIR), 1u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_REPAIR), 0u);
  bench.spend_repairs(1);
  expect_repaired(0);
  EXPECT_EQ(ask_for_step(0), not_yet(0, " sent"));
}

TEST_P(BruckvRepair, WithoutAPacketForItTheAnswerSaysThatItWasSent) {
  begin();
  bench.port.fail_allocations = {0, 1};
  EXPECT_EQ(ask_for_step(0), not_yet(0, " sent"));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_REPAIR), 0u);
  expect_repaired(0);
}

TEST_P(BruckvRepair, QuestionsThatCannotBe) {
  begin();
  bench.take_log();
  const auto refused = [this](void (*spoil)(Frame & frame)) {
    Frame frame = question(0);
    spoil(frame);
    seal(frame);
    return change(frame);
  };
  EXPECT_EQ(refused([](Frame& frame) { frame.header.hop = 3; }), "+1 drop_hop");
  // Rank 7 gets step 1, not step 0.
  EXPECT_EQ(change(wire.nack(7, shape(), 0, PEAL_PIECE_STEP, rank, 0)), "+1 drop_sender");
  EXPECT_EQ(change(wire.nack(2, shape(), 0, PEAL_PIECE_STEP, rank, 0)), "+1 drop_sender");
  EXPECT_EQ(change(wire.nack(0, shape(), 0, PEAL_PIECE_STEP, rank, 0, 0)), "+1 drop_fragment");
  EXPECT_EQ(change(wire.nack(0, shape(), 0, PEAL_PIECE_STEP, rank, 0, 3)), "+1 drop_fragment");
  EXPECT_EQ(bench.take_log(), "");
}

class BruckvQuestions : public BruckvTest {
 protected:
  void deliver_only(uint32_t k) {
    bench.deliver(step(k));
    bench.finish_all_dma();
  }
  [[nodiscard]] Frame says_not_yet(uint32_t k, uint32_t why) const {
    return wire.not_yet(above(k), shape(), 0, PEAL_PIECE_STEP, above(k), k, now_us(), why);
  }
};

TEST_F(BruckvQuestions, NobodyIsAskedBeforeTheTableIsKnown) {
  post();
  bench.take_log();
  bench.advance(4 * kNack);
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.finish_all_dma();
  deliver_steps();
  expect_over();
}

// Whatever has come behind it.
TEST_F(BruckvQuestions, NameTheFirstMissingStepAndItsSender) {
  begin();
  bench.deliver(step(2));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(kNack);
  EXPECT_EQ(bench.take_log(), asks(0));
  bench.deliver(step(0));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(kNack);
  EXPECT_EQ(bench.take_log(), asks(1));
  bench.deliver(step(1));
  bench.finish_all_dma();
  expect_over();
  bench.take_log();
  bench.advance(100 * kNack);
  EXPECT_EQ(bench.take_log(), "");
}

// There is no DMA record for what it brings.
TEST_F(BruckvQuestions, WhatHasComeAndWaitsIsNotAskedFor) {
  set_all(16);
  begin();
  bench.take_log();
  bench.card().dma_in_use = CONFIG_DMA_RECORDS;  // as if others had them all
  bench.deliver(step(0));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_RECEIVED), 1u);
  bench.advance(kNack);
  EXPECT_EQ(bench.take_log(), asks(1));
  bench.card().dma_in_use = 0;
  bench.advance(kNack);
  bench.finish_all_dma();
  deliver_steps();
  expect_over();
}

TEST_F(BruckvQuestions, ALostStepIsAskedForAgain) {
  begin();
  bench.take_log();
  bench.advance(10 * kNack);
  EXPECT_EQ(distinct_lines(bench.take_log()), asks(0));
  EXPECT_GT(bench.counter(PEAL_COUNTER_SENT_NACK), 1u);
  Frame repaired = step(0);
  WireMaker::make_repair(repaired);
  bench.deliver(repaired);
  deliver_steps();
  expect_over();
}

// The rest of the pair's blocks goes directly, and is asked for likewise.
TEST_F(BruckvQuestions, LongBlocksAreAskedForBesideTheSteps) {
  set_length(1, 4, most + 1);
  begin();
  bench.take_log();
  bench.advance(kNack);
  EXPECT_EQ(bench.take_log(), "send 1>4 NACK seq=0 piece=0 step=0 missing=0x1\n" + asks(0));
}

// Who is asked for a step that waits for another asks for that, however long the blocks are that go
// directly. (Where packets are lost, and ranks are known to be late.)
TEST_F(BruckvQuestions, WhoIsAskedForAStepAsksForTheOneBefore) {
  set_length(1, 4, 2 * CONFIG_MTU_BYTES);
  note_loss(bench.card(), bench.card().members[0]);
  bench.card().members[0].patience.wait_ns = default_timeouts().dead_ns;
  begin();
  bench.advance(kNack);
  EXPECT_EQ(lines_with(ask_for_step(1), "NOT_YET"), not_yet(1));
  bench.advance(2);
  EXPECT_EQ(lines_with(bench.take_wire_log(), names(0)), asks(0));  // beside what the pair lacks
}

// Its sender says that it has sent one packet more than came.
TEST_F(BruckvQuestions, ALossThatShowsIsAskedForAtOnce) {
  begin();
  deliver_only(2);
  EXPECT_EQ(answer(WireMaker::numbered(wire.alive(above(1)), 1)), asks(1));
}

TEST_F(BruckvQuestions, WhoIsLateIsNotAskedAgainForLong) {
  begin();
  bench.take_log();
  bench.advance(kNack);
  EXPECT_EQ(bench.take_log(), asks(0));
  bench.deliver(says_not_yet(0, PEAL_NOT_YET_LATE));
  bench.advance(4 * kNack);
  EXPECT_EQ(bench.take_log(), "");
}

// It is lost, or on its way.
TEST_F(BruckvQuestions, WhoHasSentItIsSoonAskedAgain) {
  begin();
  bench.take_log();
  bench.advance(kNack);
  EXPECT_EQ(bench.take_log(), asks(0));
  bench.deliver(says_not_yet(0, PEAL_NOT_YET_SENT));
  bench.advance(kNack);
  EXPECT_EQ(bench.take_log(), asks(0));
}

class BruckvTwice : public BruckvTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  BruckvTwice() : BruckvTest(8, 1, GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Keeps, BruckvTwice, ::testing::Values(kInChannel, kInPackets));

TEST_P(BruckvTwice, WhatComesAgainIsADuplicate) {
  bench.deliver(step(1));
  EXPECT_EQ(change(step(1)), "+1 duplicate");  // early
  begin();
  EXPECT_EQ(change(step(1)), "+1 duplicate");
  bench.deliver(step(0));
  EXPECT_EQ(change(step(0)), "+1 duplicate");
  bench.finish_all_dma();
  deliver_steps();
  expect_over();
  for (uint32_t k = 0; k < steps; k++) EXPECT_EQ(change(step(k)), "+1 duplicate");
  expect_all_sent();
}

TEST_P(BruckvTwice, AnEmptyStepThatComesAgainIsADuplicate) {
  set_all(0);
  bench.deliver(step(1));
  EXPECT_EQ(change(step(1)), "+1 duplicate");
  begin();
  EXPECT_EQ(change(step(1)), "+1 duplicate");
  deliver_steps();
  expect_over();
}

}  // namespace
}  // namespace peal::test
