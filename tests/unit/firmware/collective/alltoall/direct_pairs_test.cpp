// SPDX-License-Identifier: BSD-2-Clause
// What holds up one pair of ranks in a direct exchange, and what does not: pieces that are on their
// way from the channel, or to the user; where one block is for all, ranks that are slower; and the
// card itself, where packets are few or the engine is behind.
#include <algorithm>
#include <cstdio>

#include "firmware/card_types.h"
#include "tests/support/log_lines.h"
#include "tests/unit/firmware/collective/alltoall/direct_fixture.h"
#include "tests/unit/firmware/collective/alltoallv/parts_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kWindow = CONFIG_PIECE_WINDOW;
// Own blocks that are read.
constexpr uint32_t kAtOnce = 8;

// The pieces that a rank was sent since packets were last taken.
std::vector<uint32_t> sent_to(CardBench& bench, const peal_peer_address& rank) {
  std::vector<uint32_t> sent;
  for (const Frame& frame : bench.port.take_sent()) {
    const bool data = frame.header.type == PEAL_PACKET_DATA;
    if (data && frame.header.member == rank.member) sent.push_back(frame.header.piece);
  }
  return sent;
}

// Lets all transfers finish but reads of this memory, those too that come of them.
void finish_all_but_reads_of(CardBench& bench, RegionId region) {
  for (size_t i = 0; i < bench.port.dma_count();) {
    const HeldDma& dma = bench.port.dma(i);
    if (!dma.write && dma.host.region == region) {
      i++;
    } else {
      bench.finish_dma(i);
    }
  }
}

class DirectPairs : public DirectTest {
 protected:
  using DirectTest::DirectTest;
  // As many pieces; the last is short.
  static size_t pieces(uint32_t count) { return (count - 1) * size_t{CONFIG_MTU_BYTES} + 100; }
};

// Where it lies the own block of the piece W behind will be kept.
TEST_F(DirectPairs, WhatIsBeingFetchedFromTheChannelHoldsUpItsPair) {
  const size_t block = pieces(kWindow + 1);
  bench.deliver(from(3, block));
  bench.finish_all_dma();
  post(block);
  finish_all_but_reads_of(bench, member.channels);
  EXPECT_EQ(bench.port.dma_count(), 1u);
  EXPECT_EQ(sent_to(bench, member.everybody[3]).size(), kWindow);
  bench.finish_all_dma();
  EXPECT_EQ(sent_to(bench, member.everybody[3]), std::vector<uint32_t>{kWindow});
  for (const uint32_t sender : {0u, 2u, 4u, 5u, 6u, 7u}) bench.deliver(from(sender, block));
  bench.finish_all_dma();
  for (uint32_t piece = 1; piece <= kWindow; piece++) deliver_all(block, piece);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(block), -1);
}

// Others wait for the own blocks, and only the host for what lands: more of it is under way here
// than of own blocks may be.
TEST_F(DirectPairs, WhatIsOnItsWayToTheUserDoesNotHoldUpOwnBlocks) {
  const size_t block = pieces(2 * kWindow + 1);
  post(block);
  bench.finish_all_dma();
  bench.port.take_sent();
  bench.take_log();
  for (uint32_t piece = 0; piece < kWindow; piece++) {
    for (const uint32_t sender : {0u, 2u, 3u, 4u, 5u, 6u, 7u})
      bench.deliver(from(sender, block, piece));
  }
  EXPECT_EQ(count_lines_that_begin(bench.take_log(), "dma_read given"),
            std::min(7 * kWindow, kAtOnce));
  bench.finish_all_dma();
  bench.port.take_sent();
  for (uint32_t piece = kWindow; piece <= 2 * kWindow; piece++) deliver_all(block, piece);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(block), -1);
}

// Of more ranks than own blocks may be under way.
class DirectPairsOfMany : public AlltoallTest {
 protected:
  static constexpr size_t kBlock = kWindow * size_t{CONFIG_MTU_BYTES};

  DirectPairsOfMany() : AlltoallTest(PEAL_ALGORITHM_DIRECT, 16, 1, kBlock, {.tables = true}) {}
};

// Engines work in order, and what comes must not wait for long.
TEST_F(DirectPairsOfMany, OwnBlocksAreReadAFewAtATime) {
  post(0, kBlock);
  finish_all_but_reads_of(bench, given.region);  // the addresses
  EXPECT_EQ(bench.port.dma_count(), kAtOnce);
  bench.finish_all_dma();
  EXPECT_EQ(bench.port.take_sent().size(), 15 * kWindow);
}

// A port that carries out many at once gets as many.
class DirectBatch : public AlltoallTest {
 protected:
  static constexpr uint32_t kBatch = 12;
  static constexpr size_t kBlock = kWindow * size_t{CONFIG_MTU_BYTES};

  DirectBatch()
      : AlltoallTest(PEAL_ALGORITHM_DIRECT, 8, 1, kBlock, {.tables = true, .dma_batch = kBatch}) {}
};

TEST_F(DirectBatch, AsManyOwnBlocksAreReadAsThePortMakesMostOf) {
  post(0, kBlock);
  finish_all_but_reads_of(bench, given.region);  // the addresses
  EXPECT_EQ(bench.port.dma_count(), std::min(kBatch, uint32_t{CONFIG_DMA_RECORDS} / 2 + 1));
}

// A card of few packets knows how many they are.
class DirectFewPackets : public AlltoallTest {
 protected:
  static constexpr uint32_t kPackets = 8;
  static constexpr uint32_t kOwn = kPackets / 2 + 1;  // begun while no more than half are held
  static constexpr size_t kBlock = (kWindow + 1) * size_t{CONFIG_MTU_BYTES};

  DirectFewPackets()
      : AlltoallTest(PEAL_ALGORITHM_DIRECT, 8, 1, kBlock,
                     {.packet_buffers = kPackets, .tables = true, .keeps_early = true}) {
    post(0, kBlock);
    finish_all_but_reads_of(bench, given.region);  // the addresses
  }
  bool deliver(uint32_t sender, uint32_t piece) {
    return bench.deliver(
        wire.direct(sender, direct_shape(kBlock), 0, piece,
                    pattern_between(0, sender, rank, piece * CONFIG_MTU_BYTES, CONFIG_MTU_BYTES)));
  }
  // Whatever leaves is on the wire, and no packet of the card's any more.
  void finish_all() {
    while (bench.port.dma_count() > 0) {
      bench.finish_dma(0);
      bench.port.take_sent();
    }
  }
  // Who was starved tries again.
  void finish_all_in_time() {
    for (int turn = 0; turn < 32; turn++) {
      finish_all();
      bench.advance_to_deadline();
    }
    finish_all();
  }
};

TEST_F(DirectFewPackets, HalfAreLeftToWhatArrives) {
  EXPECT_EQ(bench.port.dma_count(), kOwn);
  for (const uint32_t sender : {0u, 2u, 3u}) EXPECT_TRUE(deliver(sender, 0));
  EXPECT_EQ(bench.port.dma_count(), kPackets);
  finish_all();
  for (uint32_t piece = 0; piece <= kWindow; piece++) {
    for (const uint32_t sender : {0u, 2u, 3u, 4u, 5u, 6u, 7u}) {
      if (piece > 0 || sender > 3) deliver(sender, piece);
      finish_all();
    }
  }
  finish_all_in_time();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

// And to what was lost.
TEST_F(DirectFewPackets, RepairsDoNotWaitForOwnBlocks) {
  finish_all_in_time();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 7 * kWindow);
  for (const uint32_t sender : {0u, 2u, 3u, 4u, 6u, 7u}) {
    deliver(sender, 0);
    finish_all_but_reads_of(bench, given.region);
    bench.port.take_sent();
  }
  EXPECT_EQ(bench.port.dma_count(), kOwn);
  bench.take_log();
  bench.deliver(wire.nack(5, direct_shape(kBlock), 0, 0, rank, 0, 1));
  EXPECT_EQ(bench.take_wire_log(), "");
  EXPECT_EQ(bench.port.dma_count(), kOwn + 1);
  bench.finish_dma(kOwn);
  EXPECT_EQ(bench.take_wire_log(), "send 1>5 DATA seq=0 piece=0 origin=1 hop=0 len=" +
                                       std::to_string(CONFIG_MTU_BYTES) + " repair\n");
}

// Something was lost before. Own blocks and what has come wait for the engine; rank 4 is silent, or
// its first block is lost.
class DirectEngine : public DirectPairs {
 protected:
  static constexpr uint32_t kQueue = std::min(2 * kAtOnce, CONFIG_DMA_RECORDS / 4u);
  const size_t block = kWindow * size_t{CONFIG_MTU_BYTES};

  DirectEngine() {
    bench.card().members[0].patience.lossless = false;
    post(block);
    finish_all_but_reads_of(bench, given.region);  // the addresses
    for (uint32_t piece = 0; piece < kWindow; piece++) {
      for (const uint32_t sender : {0u, 2u, 3u, 5u, 6u, 7u}) {
        bench.deliver(from(sender, block, piece));
      }
    }
    bench.take_log();
  }
  // Questions within the first interval, or that time.
  std::string asked(TimeNs within = default_timeouts().nack_ns) {
    bench.take_log();
    bench.advance(within);
    return lines_with(bench.take_wire_log(), " NACK ");
  }
  static std::string question(uint32_t missing) {
    char text[80];
    std::snprintf(text, sizeof(text), "send 1>4 NACK seq=0 piece=0 origin=4 missing=0x%x\n",
                  missing);
    return text;
  }
  static constexpr uint32_t kAll = (1u << kWindow) - 1;
};

TEST_F(DirectEngine, WhoseTransfersWaitAsksLater) {
  EXPECT_GT(bench.port.dma_count(), size_t{kQueue});
  EXPECT_EQ(asked(), "");
  EXPECT_EQ(asked(), "");
  bench.finish_all_dma();
  EXPECT_EQ(asked(), question(kAll));
}

// Nor is patience short then.
TEST_F(DirectEngine, WhoHasLostNothingAsks) {
  bench.card().members[0].patience.lossless = true;
  EXPECT_EQ(asked(), question(kAll));
}

TEST_F(DirectEngine, AFewTransfersAreNoQueue) {
  while (bench.port.dma_count() > kQueue) bench.finish_dma(bench.port.dma_count() - 1);
  EXPECT_EQ(bench.port.dma_count(), size_t{kQueue});
  EXPECT_EQ(asked(), question(kAll));
}

TEST_F(DirectEngine, OthersTransfersHoldUpNobodysQuestions) {
  bench.finish_all_dma();
  bench.port.take_sent();
  AlltoallTest::post(1, block);
  for (uint32_t piece = 0; piece < kWindow; piece++) {
    for (const uint32_t sender : {0u, 2u, 3u, 5u, 6u, 7u}) {
      bench.deliver(wire.direct(
          sender, direct_shape(block), 1, piece,
          pattern_between(1, sender, rank, piece * CONFIG_MTU_BYTES, CONFIG_MTU_BYTES)));
    }
  }
  EXPECT_GT(bench.port.dma_count(), size_t{kQueue});
  EXPECT_EQ(asked(), question(kAll));
}

// What is lost does not come by waiting.
TEST_F(DirectEngine, WhatIsKnownToBeLostIsAskedFor) {
  if (kWindow < 2) return;
  bench.deliver(from(4, block, 1));
  EXPECT_EQ(asked(default_timeouts().nack_ns / 4), question(1));
}

// What comes before the post waits in its packet.
class DirectPairsEarly : public DirectPairs {
 protected:
  DirectPairsEarly() : DirectPairs(true) {}
};

// What lands of it is counted like all that does, or nothing would be begun any more when it is
// there.
TEST_F(DirectPairsEarly, WhatWaitedInItsPacketDoesNotHoldUpOwnBlocks) {
  const uint32_t count = 2 * kWindow + 1;
  const size_t block = pieces(count);
  deliver_all(block);
  post(block);
  bench.finish_all_dma();
  for (uint32_t piece = 1; piece < count; piece++) {
    bench.port.take_sent();
    deliver_all(block, piece);
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(block), -1);
}

// One block of each for all.
class DirectPace : public PartsTest {
 protected:
  static constexpr uint32_t kCount = 2 * kWindow + 2;

  DirectPace() : PartsTest(PEAL_OPERATION_ALLGATHERV) {}
};

// Rank 4 has begun, so the others wait for it, and owe nothing until they may go on.
TEST_F(DirectPace, WhoWaitsForTheSlowestIsNotAsked) {
  set_all(kCount * kPiece);
  post();
  bench.finish_all_dma();
  bench.deliver(from(4));
  for (uint32_t piece = 0; piece < kWindow + 1; piece++) {
    for (const uint32_t sender : {0u, 2u, 3u, 5u, 6u, 7u}) bench.deliver(from(sender, piece));
    bench.finish_all_dma();
    bench.port.take_sent();
  }
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  char expected[80];
  std::snprintf(expected, sizeof(expected), "send 1>4 NACK seq=0 piece=1 origin=4 missing=0x%x\n",
                (1u << kWindow) - 1);
  EXPECT_EQ(bench.take_log(), expected);
}

// Most pairs have one piece, and are over. Only rank 4 has more, and does not wait for rank 7, from
// which nothing has come.
TEST_F(DirectPace, APairThatIsOverHasNothingToDo) {
  set_all(20);
  set_length(4, 0, kCount * kPiece);
  post();
  bench.finish_all_dma();
  for (const uint32_t sender : {0u, 2u, 3u, 5u, 6u}) bench.deliver(from(sender));
  for (uint32_t piece = 0; piece < kCount; piece++) {
    bench.deliver(from(4, piece));
    bench.finish_all_dma();
  }
  EXPECT_EQ(sent_to(bench, member.everybody[4]).size(), kCount);
  bench.deliver(from(7));
  bench.finish_all_dma();
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
}

// Rank 4 comes when the others are 2W pieces ahead of what it needs next, which has the record of
// the piece that is being read for them.
TEST_F(DirectPace, WhatTheLateNeedIsNotWhatIsBeingRead) {
  constexpr size_t kLong = 3 * kWindow * kPiece + 1;
  static_assert(kLong <= kRoom);
  set_all(kLong);
  post();
  bench.finish_all_dma();
  for (uint32_t piece = 0; piece < 2 * kWindow + 1; piece++) {
    bench.finish_all_dma();
    for (const uint32_t sender : {0u, 2u, 3u, 5u, 6u, 7u}) bench.deliver(from(sender, piece));
  }
  ASSERT_EQ(bench.port.dma(bench.port.dma_count() - 1).bytes, 1u);  // the last piece
  EXPECT_EQ(sent_to(bench, member.everybody[4]).size(), kWindow);
  bench.deliver(from(4));
  bench.finish_all_dma();
  EXPECT_EQ(sent_to(bench, member.everybody[4]), std::vector<uint32_t>{kWindow});
}

class DirectPairsOfParts : public PartsTest {
 protected:
  static constexpr uint32_t kCount = 2 * kWindow + 2;

  DirectPairsOfParts() : PartsTest(PEAL_OPERATION_ALLTOALLV) { set_all(kCount * kPiece); }
};

// Of what was never kept nothing may be read: zeros look like a block of nothing.
TEST_F(DirectPairsOfParts, WhatTheAskerHasIsNotLookedForInTheChannel) {
  post();
  bench.finish_all_dma();
  for (uint32_t piece = 0; piece < kCount; piece++) deliver_all(piece);
  ASSERT_EQ(done(), 1u);
  for (const uint32_t asker : {0u, 4u}) {
    EXPECT_EQ(change(wire.nack(asker, shape(), 0, kCount - kWindow - 1, rank, 0)), "+1 drop_stale");
    EXPECT_EQ(change(wire.nack(asker, shape(), 0, 0, rank, 0)), "+1 drop_stale");
    ask(asker, kCount - 1);
    EXPECT_EQ(bench.port.take_sent().at(0).payload, own(asker, kCount - 1)) << asker;
  }
}

TEST_F(DirectPairsOfParts, ADuplicateRefusesNothing) {
  post();
  bench.finish_all_dma();
  bench.deliver(from(4));
  bench.finish_all_dma();
  Frame again = from(4);
  again.header.block_bytes = 0;
  again.payload.clear();
  again.header.length = 0;
  seal(again);
  EXPECT_EQ(change(again), "+1 duplicate");
  for (uint32_t piece = 0; piece < kCount; piece++) deliver_all(piece);
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
}

}  // namespace
}  // namespace peal::test
