// SPDX-License-Identifier: BSD-2-Clause
// How blocks move in a ring: on, to the user, and to the channel, before and after the post.
#include "firmware/collective/allgather/ring.h"

#include "tests/unit/firmware/collective/allgather/ring_fixture.h"

namespace peal::test {
namespace {

TEST_F(RingTest, TheOwnBlockIsReadOnceKeptAndGoesToTheRight) {
  post();
  EXPECT_EQ(bench.take_log(), "dma_read given+0 64\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(),
            "dma_write channel.short+64 64\n"
            "dma_write result+64 64\n"
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64\n");
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, part(1));
}

TEST_F(RingTest, WhatComesFromTheLeftGoesOnAsItComesButTheRightOnesOwn) {
  post();
  bench.finish_all_dma();
  for (uint32_t distance = 1; distance + 1 < ranks; distance++) {
    bench.port.take_sent();
    EXPECT_EQ(heard(distance), "send 1>2 DATA seq=0 piece=0 origin=" +
                                   std::to_string(origin_at(distance)) + " hop=0 len=64\n");
    const auto sent = bench.port.take_sent();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].payload, part(origin_at(distance)));
  }
  EXPECT_EQ(heard(7), "complete ctx0 cookie=100 OK\n");
  EXPECT_TRUE(right());
  EXPECT_EQ(bench.counter(PEAL_COUNTER_FORWARDED), 6u);
}

// Before any DMA is done.
TEST_F(RingTest, ABlockGoesOnBeforeItHasLanded) {
  post();
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(block_at(1));
  EXPECT_EQ(bench.take_log(),
            "dma_write result+0 64\n"
            "dma_write channel.short+0 64\n"
            "send 1>2 DATA seq=0 piece=0 origin=0 hop=0 len=64\n");
}

TEST_F(RingTest, WhoeverPassesOnSaysWhatItHoldsBack) {
  EXPECT_EQ(heard(1), "send 1>2 DATA seq=0 piece=0 origin=0 hop=0 held=1 len=64\n");
  EXPECT_EQ(heard(4, 2), "send 1>2 DATA seq=0 piece=0 origin=5 hop=0 held=3 len=64\n");
  // The right neighbour's own block is not passed on, and counts for nothing.
  EXPECT_EQ(heard(7, 4), "");
  EXPECT_EQ(heard(2, 3), "send 1>2 DATA seq=0 piece=0 origin=7 hop=0 held=2 len=64\n");
  post();
  bench.take_log();
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 held=1 len=64\n");
}

TEST_F(RingTest, EverythingBeforeThePostGoesOnAndWaitsInTheChannel) {
  deliver_all();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 7u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_FORWARDED), 6u);
  post();
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_TRUE(right());
}

class RingTestThatKeepsEarly : public RingTest {
 protected:
  static BenchOptions keeping() {
    BenchOptions options;
    options.keeps_early = true;
    return options;
  }
  RingTestThatKeepsEarly() : RingTest(keeping()) {}
};

// It is asked for from the channel meanwhile.
TEST_F(RingTestThatKeepsEarly, WhatComesBeforeThePostWaitsInItsPacketToo) {
  bench.deliver(block_at(1));
  EXPECT_EQ(lines_that_begin(bench.take_log(), "dma"), "dma_write channel.short+0 64\n");
  bench.finish_all_dma();
  EXPECT_EQ(asked(0), "send 1>2 DATA seq=0 piece=0 origin=0 hop=0 len=64 repair\n");
  post();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "dma"),
            "dma_read given+0 64\ndma_write result+0 64\n");
  bench.finish_all_dma();
  deliver_all();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_TRUE(right());
}

TEST_F(RingTest, InPlaceTheOwnBlockIsOnlyKept) {
  post(kBlock, 0, true);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "dma"),
            "dma_read result+64 64\ndma_write channel.short+64 64\n");
  deliver_all();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_TRUE(right());
}

TEST_F(RingTest, NoBytes) {
  post(0);
  EXPECT_EQ(bench.take_log(), "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=0\n");
  deliver_all(0);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_OPERATIONS), 0u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(asked(1, 0x7f, 0),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=0 repair\n"
            "send 1>2 DATA seq=0 piece=0 origin=0 hop=0 len=0 repair\n"
            "send 1>2 DATA seq=0 piece=0 origin=7 hop=0 len=0 repair\n"
            "send 1>2 DATA seq=0 piece=0 origin=6 hop=0 len=0 repair\n"
            "send 1>2 DATA seq=0 piece=0 origin=5 hop=0 len=0 repair\n"
            "send 1>2 DATA seq=0 piece=0 origin=4 hop=0 len=0 repair\n"
            "send 1>2 DATA seq=0 piece=0 origin=3 hop=0 len=0 repair\n");
}

// W own pieces are under way, and the next one when the first is complete.
TEST_F(RingTest, TheWindowMovesWithTheFirstPiece) {
  const size_t block = (kWindow + 1) * size_t{piece_bytes_for(ranks)};
  const auto own = [&] { return lines_that_begin(bench.take_log(), "dma_read given"); };
  post(block);
  bench.finish_all_dma();
  own();
  for (uint32_t distance = 1; distance + 1 < ranks; distance++) heard(distance, 0, block, 0);
  EXPECT_EQ(own(), "");
  bench.deliver(block_at(7, 0, block, 0));
  EXPECT_EQ(own(), "");  // it has not landed
  bench.finish_all_dma();
  EXPECT_NE(own(), "");
  for (uint32_t piece = 1; piece <= kWindow; piece++) deliver_all(block, piece);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_TRUE(right(block));
}

TEST_F(RingTest, WhatIsNotOfTheRingIsDropped) {
  post();
  bench.finish_all_dma();
  const auto with = [&](auto change_header) {
    Frame frame = block_at(2, 1);
    change_header(frame.header);
    seal(frame);
    return change(frame);
  };
  EXPECT_EQ(with([](auto& h) { h.hop = 1; }), "+1 drop_hop");
  EXPECT_EQ(with([](auto& h) { h.piece = 1; }), "+1 drop_piece");
  EXPECT_EQ(with([](auto& h) { h.origin = 1; }), "+1 drop_origin");
  EXPECT_EQ(with([](auto& h) { h.origin = 8; }), "+1 drop_origin");
  // Peers, but not the left neighbour.
  for (const uint32_t other : {2u, 3u, 7u}) {
    EXPECT_EQ(with([&](auto& h) {
                h.sender = static_cast<uint16_t>(other);
                h.identity = identity_of(other);
              }),
              "+1 drop_sender");
  }
  EXPECT_EQ(change(wire.ring(ring_shape(kBlock), 0, 0, 7, std::vector<uint8_t>(63))),
            "+1 drop_length");
  bench.deliver(block_at(2, 1));
  EXPECT_EQ(change(block_at(2, 1)), "+1 duplicate");
}

TEST_F(RingTest, AFaultOfTheUsersMemoryIsToldToAll) {
  bench.port.fault_dmas = {0, 1};
  post();
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 0u);
}

}  // namespace
}  // namespace peal::test
