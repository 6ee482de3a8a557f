// SPDX-License-Identifier: BSD-2-Clause
// How blocks that waited in their packets go to the user when the host posts at last: which first,
// how many at once, and when the pool of records is empty. Rank 1 of a group of four, or of twelve.
#include "firmware/operation/landing.h"

#include <algorithm>

#include "firmware/operation/layout.h"
#include "firmware/operation/transfer.h"
#include "tests/support/log_lines.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kMany = 12;

class LandingOf : public GroupTest {
 protected:
  LandingOf(uint32_t ranks_, uint32_t waiting)
      : GroupTest(ranks_, 1, {.packet_buffers = 8 * waiting, .keeps_early = true}) {}

  [[nodiscard]] Frame data(uint32_t origin, uint32_t piece) const {
    return wire.hopping(broadcast_shape(block), 0, piece, origin,
                        pattern_block(0, origin, uint64_t{piece} * piece_bytes, piece_bytes));
  }
  [[nodiscard]] std::string landed(uint32_t origin, uint32_t piece) const {
    return "dma_write receive+" + std::to_string(origin * block + size_t{piece} * piece_bytes) +
           " " + std::to_string(piece_bytes) + "\n";
  }
  std::string landings() { return lines_that_begin(bench.take_log(), "dma_write receive"); }

  const uint32_t piece_bytes = piece_bytes_for(ranks);
  const size_t block = 2 * piece_bytes;
};

class Landing : public LandingOf {
 protected:
  Landing() : LandingOf(4, 2) {}
};

// The window waits for the first piece; what came first matters to nobody.
TEST_F(Landing, TheEarlierPieceComesFirst) {
  bench.deliver(data(2, 1));
  bench.deliver(data(0, 0));
  EXPECT_EQ(bench.port.dma_count(), 0u);
  post_broadcast(0, block);
  EXPECT_EQ(landings(), landed(0, 0) + landed(2, 1));
  bench.finish_all_dma();
}

// Others have all the records: it comes again by itself, and nothing is lost or written twice.
TEST_F(Landing, WithoutARecordTheyWaitOn) {
  bench.deliver(data(2, 0));
  bench.deliver(data(0, 0));
  const uint32_t in_use = bench.card().dma_in_use;
  bench.card().dma_in_use = CONFIG_DMA_RECORDS;  // as if others had them all
  post_broadcast(0, block);
  EXPECT_EQ(landings(), "");
  EXPECT_EQ(bench.port.packets_unsent(), 2u);
  bench.card().dma_in_use = in_use;
  ASSERT_TRUE(bench.advance_to_deadline());
  EXPECT_EQ(landings(), landed(2, 0) + landed(0, 0));
  bench.finish_all_dma();
}

// Twelve ranks, whose blocks are all there.
class Landings : public LandingOf {
 protected:
  static constexpr uint32_t kWaiting = std::min<uint32_t>(kMany - 1, CONFIG_EARLY_PACKETS);
  Landings() : LandingOf(kMany, kMany - 1) {}
};

// Engines work in order: what is read and written for others must not wait for all of them.
TEST_F(Landings, AreAFewAtATime) {
  std::string begun;
  std::string later = landed(rank, 0) + landed(rank, 1);
  for (uint32_t i = 0; i < kWaiting; i++) {
    const uint32_t origin = i == 0 ? 0 : i + 1;
    bench.deliver(data(origin, 0));
    // One of the piece's transfers reads the own block.
    (i + 1 < kPieceTransfers ? begun : later) += landed(origin, 0);
  }
  EXPECT_EQ(bench.port.dma_count(), 0u);
  post_broadcast(0, block);
  EXPECT_EQ(landings(), begun);
  bench.finish_all_dma();
  EXPECT_EQ(landings(), later);
}

// Others take each record that is given back: all blocks have come, no transfer is under way, and
// what still waits in its packets is nowhere else.
TEST_F(Landings, WhatStillWaitsIsNotDone) {
  const size_t one = piece_bytes;  // of which an operation is a single piece
  for (uint32_t origin = 0; origin < kMany; origin++) {
    if (origin != rank) bench.deliver(block_of(origin, 0, one));
  }
  post_broadcast(0, one);
  bench.finish_dma();  // the own block's read: it is written from here on
  while (bench.port.dma_count() > 0) {
    bench.card().dma_in_use = CONFIG_DMA_RECORDS + 1;
    bench.finish_dma();
  }
  EXPECT_TRUE(bench.port.take_completions().empty());
  bench.card().dma_in_use = 0;
  ASSERT_TRUE(bench.advance_to_deadline());
  bench.finish_all_dma();
  EXPECT_EQ(bench.port.take_completions().size(), 1u);
  EXPECT_EQ(wrong_byte(0, one), -1);
}

}  // namespace
}  // namespace peal::test
