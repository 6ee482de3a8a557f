// SPDX-License-Identifier: BSD-2-Clause
// Alltoallv in steps with long blocks: a pair of ranks with one exchanges both directly, and the
// steps bring a head of no bytes in their place.
#include "firmware/collective/alltoallv/bruck.h"

#include "tests/unit/firmware/collective/alltoallv/bruck_fixture.h"

namespace peal::test {
namespace {

// Rank 1 of 8. Of all pairs with rank 1 it is the one with rank 4 that has a long block: way 5 from
// 1 to 4, which goes in steps 0 and 2, and way 3 from 4, which comes in step 1.
class MixedBruckv : public BruckvTest {
 protected:
  explicit MixedBruckv(uint32_t sent_packets = kInPackets, uint32_t ranks_ = 8)
      : BruckvTest(ranks_, 1, sent_packets) {}

  // What goes directly to a rank.
  [[nodiscard]] std::string sends_directly(uint32_t to, size_t bytes, uint32_t piece = 0,
                                           const std::string& more = "") const {
    return "send 1>" + std::to_string(to) + " DATA seq=0 piece=" + std::to_string(piece) +
           " step=0 frag=0 len=" + std::to_string(bytes) + more + "\n";
  }
  void deliver_directly(uint32_t sender, uint32_t pieces) {
    for (uint32_t piece = 0; piece < pieces; piece++) {
      bench.deliver(from(sender, piece));
      bench.finish_all_dma();
    }
  }
  [[nodiscard]] uint32_t pieces(size_t bytes) const {
    return static_cast<uint32_t>((bytes + piece_bytes - 1) / piece_bytes);
  }
};

// Sent and received blocks of the pair.
struct PairLengths {
  size_t given;
  size_t back;
};

constexpr size_t kShortOf8 = short_block(8);

class MixedPair : public MixedBruckv,
                  public ::testing::WithParamInterface<std::tuple<PairLengths, uint32_t>> {
 protected:
  MixedPair() : MixedBruckv(std::get<1>(GetParam())) {
    set_all(16);
    set_length(1, 4, pair().given);
    set_length(4, 1, pair().back);
  }
  [[nodiscard]] const PairLengths& pair() const { return std::get<0>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Blocks, MixedPair,
                         ::testing::Combine(::testing::Values(PairLengths{kShortOf8 + 1, 0},
                                                              PairLengths{0, kShortOf8 + 1},
                                                              PairLengths{kShortOf8 + 1, 20},
                                                              PairLengths{20, kShortOf8 + 1},
                                                              PairLengths{kShortOf8 + 1, kShortOf8},
                                                              PairLengths{kShortOf8 + 1,
                                                                          kShortOf8 + 1}),
                                            ::testing::Values(kInChannel, kInPackets)));

TEST_P(MixedPair, GoesDirectlyBothWays) {
  begin();
  const std::string log = bench.take_wire_log();
  EXPECT_EQ(lines_that_begin(log, "send 1>4"), sends_directly(4, pair().given));
  EXPECT_EQ(count_lines_that_begin(log, "send"), 2u);
  const auto sent = bench.port.take_sent();
  for (const Frame& frame : sent) {
    if (frame.header.piece != 0) continue;
    EXPECT_EQ(frame.payload, own(4));
    EXPECT_EQ(frame.header.block_bytes, pair().given);
  }
  for (const Frame& frame : sent) {
    if (frame.header.piece == 0) continue;
    EXPECT_EQ(ways(by_way(frame.payload)), "1:16 3:16 5:0 7:16 ");
  }
  deliver_steps();
  EXPECT_EQ(done(), 0u);
  deliver_directly(4, 1);
  expect_over();
}

TEST_P(MixedPair, EndsOnlyWithTheSteps) {
  begin();
  deliver_directly(4, 1);
  for (uint32_t k = 0; k < steps; k++) {
    EXPECT_EQ(done(), 0u) << k;
    bench.deliver(step(k));
    bench.finish_all_dma();
  }
  expect_over();
}

TEST_P(MixedPair, BothComeBeforeThePost) {
  deliver_directly(4, 1);
  deliver_steps();
  begin();
  expect_over();
}

TEST_P(MixedPair, IsRepairedBothWaysAfterTheEnd) {
  begin();
  deliver_steps();
  deliver_directly(4, 1);
  expect_over();
  scribble();
  for (uint32_t k = 0; k < steps; k++) expect_repaired(k);
  EXPECT_EQ(ask(4), sends_directly(4, pair().given, 0, " repair"));
  EXPECT_EQ(bench.port.take_sent().at(0).payload, own(4));
}

TEST_P(MixedPair, InPlace) {
  set_symmetric();
  set_length(1, 4, kShortOf8 + 1);
  set_length(4, 1, kShortOf8 + 1);
  deliver_directly(4, 1);
  deliver_steps();
  begin(true);
  expect_over();
  scribble();
  for (uint32_t k = 0; k < steps; k++) expect_repaired(k);
  ask(4);
  EXPECT_EQ(bench.port.take_sent().at(0).payload, own(4));
}

// Nothing goes directly where both are as long as a short block may be.
TEST_F(MixedBruckv, TheLongestShortBlocksGoInSteps) {
  set_all(16);
  set_length(1, 4, most);
  set_length(4, 1, most);
  begin();
  EXPECT_EQ(bench.take_wire_log(), sends(0));
  deliver_steps();
  expect_over();
  expect_all_sent();
}

// Heads only, which other ranks' pairs have, too.
TEST_F(MixedBruckv, WhereAllBlocksAreLongStepsBringHeads) {
  set_all(most + 1);
  begin();
  EXPECT_EQ(lines_with(bench.take_wire_log(), "step=0 frag=0 len=16\n"), sends(0));
  for (const Frame& frame : bench.port.take_sent())
    EXPECT_EQ(frame.payload.size(), frame.header.piece == 0 ? most + 1 : 4 * kHead);
  for (uint32_t sender = 0; sender < ranks; sender++)
    if (sender != rank) deliver_directly(sender, 1);
  EXPECT_EQ(done(), 0u);
  for (uint32_t k = 0; k < steps; k++) {
    bench.deliver(step(k));
    bench.finish_all_dma();
  }
  expect_over();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 7u + steps);
}

// What the rank has for itself goes through no step.
TEST_F(MixedBruckv, ItsOwnBlockMayBeLong) {
  set_all(16);
  set_length(1, 1, 2 * piece_bytes + 1);
  begin();
  deliver_steps();
  expect_over();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), steps);
}

// Steps, and pieces of a long block, at their own pace each.
class LongMixedBruckv : public MixedBruckv, public ::testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr uint32_t kPieces = CONFIG_PIECE_WINDOW + 2;

  LongMixedBruckv() : MixedBruckv(GetParam()) {
    set_all(16);
    set_length(1, 4, kPieces * piece_bytes - 5);
  }
};

INSTANTIATE_TEST_SUITE_P(Keeps, LongMixedBruckv, ::testing::Values(kInChannel, kInPackets));

TEST_P(LongMixedBruckv, PiecesGoBesideTheSteps) {
  begin();
  deliver_directly(4, kPieces - 1);
  deliver_steps();
  EXPECT_EQ(done(), 0u);
  bench.deliver(from(4, kPieces - 1));
  bench.finish_all_dma();
  expect_over();
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), kPieces + steps);
  uint32_t piece = 0;
  for (const Frame& frame : sent) {
    if (frame.header.piece == PEAL_PIECE_STEP) continue;
    EXPECT_EQ(frame.header.piece, piece);
    EXPECT_EQ(frame.payload, own(4, piece)) << piece;
    piece++;
  }
}

class MixedBruckvOf16 : public MixedBruckv {
 protected:
  MixedBruckvOf16() : MixedBruckv(kInPackets, 16) {}
  // Finishes a transfer from the memory that is given. False: none is under way.
  bool finish_read_of_given() {
    for (size_t i = 0; i < bench.port.dma_count(); i++) {
      if (bench.port.dma(i).host.region != given.region) continue;
      bench.finish_dma(i);
      return true;
    }
    return false;
  }
};

// Ways 8 to 15 come in step 3, of eight ranks: as many transfers as own blocks may have under way.
// Whatever the host does with them, the block for rank 2 is read.
TEST_F(MixedBruckvOf16, WhatLandsHoldsUpNoLongBlock) {
  set_all(16);
  set_length(1, 2, most + 1);
  post();
  while (bench.port.dma(0).host.region != given.region) bench.finish_dma();
  bench.take_log();
  bench.deliver(step(3));
  EXPECT_EQ(count_lines_that_begin(bench.take_log(), "dma_write result"), 8u);
  std::string log;
  while (finish_read_of_given()) log += bench.take_log();
  EXPECT_EQ(lines_with(log, "dma_write result"),
            "dma_write result+" + std::to_string(place(1)) + " 16\n");
  EXPECT_EQ(count_lines_that_begin(log, reads_given(2)), 1u);
}

class MixedBruckvInChannel : public MixedBruckv {
 protected:
  MixedBruckvInChannel() : MixedBruckv(kInChannel, 16) {}  // so that an image is full
};

// A full place for every rank but two in every image, and all logs behind them.
TEST_F(MixedBruckvInChannel, LongBlocksAndStepsDoNotMeetInTheChannel) {
  constexpr uint32_t kPieces = 2 * CONFIG_PIECE_WINDOW;
  set_all(most);
  for (uint32_t other = 2; other < ranks; other++) set_length(1, other, kPieces * piece_bytes);
  begin();
  for (uint32_t piece = 0; piece < kPieces; piece++)
    for (uint32_t other = 2; other < ranks; other++) {
      bench.deliver(from(other, piece));
      bench.finish_all_dma();
    }
  deliver_steps();
  expect_over();
  scribble();
  for (uint32_t k = 0; k < steps; k++) expect_repaired(k);
  for (uint32_t other = 2; other < ranks; other++) {
    for (uint32_t piece = kPieces - CONFIG_PIECE_WINDOW; piece < kPieces; piece++) {
      ask(other, piece);
      EXPECT_EQ(bench.port.take_sent().at(0).payload, own(other, piece)) << other << " " << piece;
    }
  }
}

}  // namespace
}  // namespace peal::test
