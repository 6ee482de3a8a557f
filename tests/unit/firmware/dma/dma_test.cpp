// SPDX-License-Identifier: BSD-2-Clause
// DMA as a fixed pool and a queue that may be full: order of retries, exhaustion as back-pressure,
// completions in any order and for operations that are long over.
#include "firmware/dma/dma.h"

#include <algorithm>

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr size_t kLarge = CONFIG_MTU_BYTES;

class Dma : public GroupTest {};

TEST_F(Dma, WhatTheEngineRefusesWaitsInOrder) {
  bench.port.refuse_dmas = {0, 1};
  post_broadcast(0, kLarge);
  post_broadcast(1, kLarge);
  EXPECT_EQ(bench.port.dma_count(), 0u);  // the second waits behind the first
  EXPECT_EQ(card_holds(bench.card()).dma_records, 2u);
  ASSERT_TRUE(bench.advance_to_deadline());
  EXPECT_EQ(bench.port.dma_count(), 2u);
}

TEST_F(Dma, AnEngineThatNeverTakesAnythingLosesNothing) {
  bench.port.refuse_dmas = {0, kAlways};
  post_broadcast(0, kLarge);
  for (const uint32_t origin : {0u, 2u, 3u}) bench.deliver(block_of(origin, 0, kLarge));
  bench.advance(5'000'000);
  EXPECT_EQ(bench.port.take_completions().size(), 0u);
  bench.port.refuse_dmas = {};
  for (int i = 0; i < 50 && bench.port.take_completions().empty(); i++) {
    ASSERT_TRUE(bench.advance_to_deadline());
    bench.finish_all_dma();
    bench.port.take_sent();
  }
  EXPECT_EQ(wrong_byte(0, kLarge), -1);
}

TEST_F(Dma, CompletionsInAnyOrder) {
  for (uint32_t seed = 1; seed <= 20; seed++) {
    CardBench other(BenchOptions{.index = 1});
    const Memory from = other.add_memory("send", kLarge);
    const Memory to = other.add_memory("receive", 4 * kLarge);
    const Membership theirs = other.join(4, 1);
    const WireMaker maker(theirs);
    const auto own = pattern_block(0, 1, 0, kLarge);
    std::copy(own.begin(), own.end(), other.port.bytes(from.region).begin());
    uint32_t state = seed;
    const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 16; };
    for (const uint32_t origin : {3u, 0u}) {
      other.deliver(maker.hopping(broadcast_shape(kLarge), 0, 0, origin,
                                  pattern_block(0, origin, 0, kLarge)));
      if (next() % 2 != 0 && other.port.dma_count() > 0)
        other.finish_dma(next() % other.port.dma_count());
    }
    other.submit(allgather_entry(theirs, 0, 7, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, kLarge,
                                 from.key, to.key));
    if (next() % 2 != 0) other.finish_dma(next() % other.port.dma_count());
    other.deliver(maker.hopping(broadcast_shape(kLarge), 0, 0, 2, pattern_block(0, 2, 0, kLarge)));
    while (other.port.dma_count() > 0) other.finish_dma(next() % other.port.dma_count());
    EXPECT_EQ(other.port.bytes(to.region), pattern_result(0, 4, kLarge)) << "seed " << seed;
    EXPECT_EQ(other.port.take_completions().size(), 1u) << "seed " << seed;
    EXPECT_EQ(other.problems(), "");
  }
}

// A repair is being read when its place is recycled and used by another operation.
TEST_F(Dma, ARepairOutlivesItsOperation) {
  post_broadcast(0, kLarge);
  bench.finish_all_dma();
  deliver_others(0, kLarge);
  bench.deliver(wire.nack(2, broadcast_shape(kLarge), 0, 0, 1, 0));
  ASSERT_EQ(bench.port.dma_count(), 1u);
  bench.port.take_completions();
  run_barriers(1, kEpoch - 1);
  deliver_recycling(0);
  run_barriers(kEpoch, kEpoch);
  run_barrier(CONFIG_CHANNELS);  // in the place of sequence 0
  const auto done = bench.port.take_completions();
  EXPECT_EQ(done.size(), size_t{CONFIG_CHANNELS});
  for (const auto& [context, entry] : done) EXPECT_EQ(status_text(entry.status), "OK");
  bench.finish_all_dma();
  EXPECT_TRUE(bench.port.take_completions().empty());
  EXPECT_EQ(card_holds(bench.card()).dma_records, 0u);
}

// The same when the operation that has the place now was refused: that is no verdict on the repair.
TEST_F(Dma, ARepairIsSentWhateverHasItsPlace) {
  post_broadcast(0, kLarge);
  bench.finish_all_dma();
  deliver_others(0, kLarge);
  bench.deliver(wire.nack(2, broadcast_shape(kLarge), 0, 0, 1, 0));
  ASSERT_EQ(bench.port.dma_count(), 1u);
  run_barriers(1, kEpoch - 1);
  deliver_recycling(0);
  run_barriers(kEpoch, kEpoch);
  bench.deliver(wire.refuse(2, kBarrierShape, CONFIG_CHANNELS, 3));
  bench.take_log();
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=" +
                                       std::to_string(kLarge) + " repair\n");
}

// The largest group: more blocks arrive than there are packets or DMA records; the rest is dropped
// by name and comes again.
class ManyBlocks : public GroupTest {
 protected:
  static constexpr uint32_t kRanks = CONFIG_GROUP_RANKS_MAX < 64 ? CONFIG_GROUP_RANKS_MAX : 64;
  static constexpr size_t kBlock =
      CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW) / kRanks & ~size_t{7};
  // What one operation can ask for at once; in the profiles with large pools nothing runs out.
  static constexpr bool kRunsOut = CONFIG_CHANNELS * (kRanks - 1) > CONFIG_DMA_RECORDS;

  ManyBlocks() : GroupTest(kRanks, 1) {}
  void deliver_all(uint32_t sequence) {
    for (uint32_t origin = 0; origin < ranks; origin++) {
      if (origin != rank && !bench.deliver(block_of(origin, sequence, kBlock))) lost_++;
      bench.port.take_sent();
    }
  }
  uint32_t lost_ = 0;  // the wire found no packet: all are held by DMA
};

TEST_F(ManyBlocks, ExhaustionIsCountedAndRepaired) {
  for (uint32_t sequence = 0; sequence < CONFIG_CHANNELS; sequence++) deliver_all(sequence);
  EXPECT_LE(bench.port.dma_count(), static_cast<size_t>(CONFIG_DMA_RECORDS));
  if (kRunsOut) {
    EXPECT_GT(bench.counter(PEAL_COUNTER_DROP_NO_DMA) + lost_, 0u);
  }
  bench.finish_all_dma();
  fill_send(0, kBlock);
  post_broadcast(0, kBlock);
  for (int turn = 0; turn < 4; turn++) {
    bench.finish_all_dma();
    bench.port.take_sent();
    deliver_all(0);
  }
  bench.finish_all_dma();
  EXPECT_EQ(bench.port.take_completions().size(), 1u);
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

// More packets than DMA records, and more blocks than both.
class FewRecords : public GroupTest {
 protected:
  static constexpr uint32_t kRanks = CONFIG_GROUP_RANKS_MAX < 200 ? CONFIG_GROUP_RANKS_MAX : 200;
  static constexpr size_t kPiece =
      CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW) / kRanks & ~size_t{7};
  static constexpr size_t kBlock = 2 * kPiece;  // too long for staging
  static_assert(CONFIG_CHANNELS * (kRanks - 1) > CONFIG_DMA_RECORDS);

  FewRecords()
      : GroupTest(kRanks, 1, {.packet_buffers = CONFIG_PACKET_BUFFERS + CONFIG_DMA_RECORDS}) {}
  Frame first_piece(uint32_t origin, uint32_t sequence) {
    return wire.hopping(broadcast_shape(kBlock), sequence, 0, origin,
                        pattern_block(sequence, origin, 0, kPiece));
  }
  // Early blocks until one finds no record; returns it.
  Frame fill(uint32_t first_sequence) {
    for (uint32_t sequence = first_sequence; sequence < CONFIG_CHANNELS; sequence++) {
      for (uint32_t origin = 0; origin < ranks; origin++) {
        if (origin == rank) continue;
        const Frame frame = first_piece(origin, sequence);
        bench.deliver(frame);
        bench.port.take_sent();
        if (bench.counter(PEAL_COUNTER_DROP_NO_DMA) > 0) return frame;
      }
    }
    return {};
  }
};

TEST_F(FewRecords, TheLastIsUsedAndWhatFoundNoneComesAgain) {
  const Frame dropped = fill(0);
  EXPECT_EQ(bench.port.dma_count(), static_cast<size_t>(CONFIG_DMA_RECORDS));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DROP_NO_DMA), 1u);
  bench.finish_all_dma();
  const auto before = bench.counters();
  bench.deliver(dropped);
  EXPECT_EQ(bench.counter_changes(before),
            "+1 received, +" + std::to_string(dropped.payload.size()) +
                " dma_write_bytes, +1 dma_operations, +1 early_data");
  EXPECT_EQ(bench.port.dma_count(), 1u);
  bench.finish_all_dma();
}

// What has no record is lost when it comes from others, and a little later when it is the own.
TEST_F(FewRecords, HalfOfThemAreLeftToWhatArrives) {
  for (uint32_t i = 0; bench.port.dma_count() <= CONFIG_DMA_RECORDS / 2; ++i) {
    if (i % ranks == rank) continue;
    bench.deliver(first_piece(i % ranks, 1 + i / ranks));
    bench.port.take_sent();
  }
  post_broadcast(0, kBlock);
  EXPECT_EQ(bench.port.dma_count(), CONFIG_DMA_RECORDS / 2 + 1u);
  bench.finish_dma(0);
  ASSERT_TRUE(bench.advance_to_deadline());
  EXPECT_EQ(bench.port.dma_count(), CONFIG_DMA_RECORDS / 2 + 1u);  // one read has begun
  bench.finish_all_dma();  // and the others as records become free
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_READ_BYTES),
            std::min<size_t>(CONFIG_PIECE_WINDOW, kBlock / kPiece) * kPiece);
}

// The own block is read, and the others' have taken the records for what must be done with it.
TEST_F(FewRecords, TheOwnBlockIsReadAgainWhenNoneAreLeft) {
  post_broadcast(0, kBlock);
  ASSERT_EQ(bench.port.dma_count(), static_cast<size_t>(CONFIG_PIECE_WINDOW));  // W reads
  fill(1);
  ASSERT_EQ(bench.port.dma_count(), static_cast<size_t>(CONFIG_DMA_RECORDS));
  bench.port.take_sent();
  bench.finish_dma(0);
  EXPECT_EQ(bench.port.dma_count(), CONFIG_DMA_RECORDS - 1u);
  EXPECT_TRUE(bench.port.take_sent().empty());
  size_t own = 0;
  for (int turn = 0; turn < 2; turn++) {
    bench.finish_all_dma();
    for (const Frame& frame : bench.port.take_sent()) {
      const peal_wire_header& header = frame.header;
      own += header.type == PEAL_PACKET_DATA && header.origin == rank && header.piece == 0 ? 1 : 0;
    }
    bench.advance(default_timeouts().nack_ns / 4 + 1);
  }
  EXPECT_GT(own, 0u);
}

}  // namespace
}  // namespace peal::test
