// SPDX-License-Identifier: BSD-2-Clause
// The life of an operation's record: what opens it, what its timer does, when it ends, and what it
// says to those who ask too early or too late. Rank 1 of 4, in an allgather whose blocks travel
// down trees.
#include "firmware/operation/operation.h"

#include "tests/support/log_lines.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

class OperationRecord : public GroupTest {
 protected:
  [[nodiscard]] uint32_t records() { return card_holds(bench.card()).operations; }
  [[nodiscard]] Frame nack(uint32_t origin, uint32_t hop = 0) const {
    return wire.nack(hop == 0 ? 2 : 3, broadcast_shape(kBlock), 0, 0, origin, hop);
  }
};

TEST_F(OperationRecord, IsOpenedByAPost) {
  post_broadcast(0, kBlock);
  EXPECT_EQ(records(), 1u);
}

TEST_F(OperationRecord, IsOpenedByAPacketOnce) {
  bench.deliver(block_of(0, 0, kBlock));
  EXPECT_EQ(records(), 1u);
  bench.deliver(block_of(3, 0, kBlock));
  post_broadcast(0, kBlock);
  EXPECT_EQ(records(), 1u);
  bench.finish_all_dma();
}

TEST_F(OperationRecord, IsOpenedByAQuestion) {
  EXPECT_EQ(answer(nack(1)), "send 1>2 NOT_YET seq=0 piece=0 origin=1 late\n");
  EXPECT_EQ(records(), 1u);
}

// Its host has not come; others are asked for all the same where somebody below wants theirs.
TEST_F(OperationRecord, HasATimerBeforeThePost) {
  bench.deliver(wire.nack(3, broadcast_shape(kBlock), 0, 0, 0, 1));
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>0 NACK seq=0 piece=0 origin=0\n"
            "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
}

// A host that waits for an earlier operation of this card is not late: it cannot come.
TEST_F(OperationRecord, AHostThatWaitsIsNotLate) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  EXPECT_EQ(answer(wire.nack(2, broadcast_shape(kBlock), 1, 0, 1, 0)),
            "send 1>2 NOT_YET seq=1 piece=0 origin=1\n");
}

TEST_F(OperationRecord, EndsOnceAndStaysForThoseWhoAskLate) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  deliver_others(0, kBlock);
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=64\n"
            "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(records(), 0u);
  EXPECT_EQ(card_next_deadline(bench.card()), kNever) << "nothing is waited for";
  EXPECT_EQ(answer(nack(1)), "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64 repair\n");
  EXPECT_EQ(change(block_of(0, 0, kBlock)), "+1 duplicate");
  EXPECT_EQ(bench.take_wire_log(), "");
}

// A pool was empty: it comes again by itself, long before anybody would ask.
TEST_F(OperationRecord, WhatStarvedIsTriedAgainSoon) {
  bench.port.fail_allocations = {0, kAlways};
  post_broadcast(0, kBlock);
  EXPECT_EQ(bench.take_log(), "");
  bench.port.fail_allocations = {};
  EXPECT_LE(card_next_deadline(bench.card()), bench.now + default_timeouts().nack_ns / 4 + 1);
  ASSERT_TRUE(bench.advance_to_deadline());
  EXPECT_EQ(bench.take_log(), "dma_read send+0 64\n");
  bench.finish_all_dma();
}

// Its buffers are the user's when it is completed, so no DMA may be under way then.
TEST_F(OperationRecord, AFailureWaitsForTheDma) {
  post_broadcast(0, kBlock);
  ASSERT_EQ(bench.port.dma_count(), 1u);
  bench.deliver(wire.death(2, 3));
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"), "");
  EXPECT_EQ(bench.port.dma_count(), 1u);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 PEER_DEAD rank=3\n");
}

// Of two pieces of bad news the first stands.
TEST_F(OperationRecord, KeepsItsFirstVerdict) {
  post_broadcast(0, kBlock);
  bench.deliver(block_of(0, 0, kBlock + 8));  // rank 0 disagrees
  bench.deliver(wire.death(2, 3));
  bench.take_log();
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 MISMATCH rank=0\n");
}

TEST_F(OperationRecord, OneThatWasNeverPostedEndsWithoutACompletion) {
  bench.deliver(block_of(0, 0, kBlock));
  bench.deliver(wire.death(2, 3));
  bench.finish_all_dma();
  EXPECT_EQ(bench.port.take_completions().size(), 0u);
  bench.take_log();
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 PEER_DEAD rank=3\n");
}

// Nobody will post it in a dead group: it keeps neither its record nor its room in staging.
TEST_F(OperationRecord, OneThatWasNeverPostedEndsWithItsGroup) {
  for (const size_t block : {kBlock, 2 * size_t{CONFIG_MTU_BYTES}}) {
    bench.deliver(wire.hopping(broadcast_shape(block), block == kBlock ? 0 : 1, 0, 0,
                               pattern_block(0, 0, 0, std::min<size_t>(block, CONFIG_MTU_BYTES))));
  }
  EXPECT_EQ(card_holds(bench.card()).operations, 2u);
  bench.deliver(wire.death(2, 3));
  bench.finish_all_dma();
  const CardHolds holds = card_holds(bench.card());
  EXPECT_EQ(holds.operations, 0u);
  EXPECT_EQ(holds.packets, 0u);
  EXPECT_EQ(bench.card().staging.free, 1u);
}

}  // namespace
}  // namespace peal::test
