// SPDX-License-Identifier: BSD-2-Clause
// Alltoallv in steps: packets that come before they can go on, in place and otherwise, and
// operations one behind the other.
#include "firmware/collective/alltoallv/bruck.h"

#include "tests/unit/firmware/collective/alltoallv/bruck_fixture.h"

namespace peal::test {
namespace {

class EarlyBruckv : public BruckvTest {
 protected:
  explicit EarlyBruckv(uint32_t sent_packets = kInPackets) : BruckvTest(8, 1, sent_packets) {
    set_all(24);
  }
  std::string landings() { return lines_that_begin(bench.take_log(), "dma_write result"); }
  // What comes for the rank itself in a step.
  [[nodiscard]] std::string all_land(const std::vector<uint32_t>& origins) const {
    std::string text;
    for (const uint32_t origin : origins) text += lands(origin);
    return text;
  }
};
class EarlyBruckvInChannel : public EarlyBruckv {
 protected:
  EarlyBruckvInChannel() : EarlyBruckv(kInChannel) {}
};

TEST_F(EarlyBruckv, PacketsWaitAsTheyAre) {
  EXPECT_EQ(change(step(1)), "+1 received, +1 early_data");
  EXPECT_EQ(change(step(0)), "+1 received, +1 early_data");
  EXPECT_EQ(bench.take_log(), "");
  expect_staying(2);
  begin();
  deliver_steps();
  expect_over();
  expect_all_sent();
  expect_staying(steps);
}

TEST_F(EarlyBruckvInChannel, WithoutAPacketForThemTheyLieThere) {
  const auto written = [this](uint32_t k) {
    return "dma_write channel+" + std::to_string(arrival_place(k)) + " " +
           std::to_string(lot(above(k), k).size()) + "\n";
  };
  bench.deliver(step(0));
  bench.deliver(step(2));
  EXPECT_EQ(bench.take_log(), written(0) + written(2));
  EXPECT_EQ(card_holds(bench.card()).sent_blocks, 0u);
  begin();
  EXPECT_EQ(count_lines_that_begin(bench.take_log(),
                                   "dma_read channel+" + std::to_string(arrival_place(0))),
            1u);
  deliver_steps();
  expect_over();
  expect_all_sent();
  expect_staying(0);
}

// It is on its way into the channel when the table comes.
TEST_F(EarlyBruckvInChannel, WhatIsBeingStoredIsNotReadBefore) {
  bench.deliver(step(0));
  post();
  bench.take_log();
  while (bench.port.dma_count() > 1) bench.finish_dma(1);
  const std::string reads = "dma_read channel+" + std::to_string(arrival_place(0));
  EXPECT_EQ(count_lines_that_begin(bench.take_log(), reads), 0u);
  bench.finish_dma();
  EXPECT_EQ(count_lines_that_begin(bench.take_log(), reads), 1u);
  bench.finish_all_dma();
  deliver_steps();
  expect_over();
}

// Posted, but nobody knows yet where its blocks lie.
TEST_F(EarlyBruckv, WhatComesBeforeTheTableWaits) {
  post();
  bench.take_log();
  EXPECT_EQ(change(step(0)), "+1 received");
  EXPECT_EQ(bench.take_log(), "");
  bench.finish_all_dma();
  EXPECT_EQ(landings(), lands(2) + lands(1));
  deliver_steps();
  expect_over();
}

// Elsewhere it does not have to wait for them.
TEST_F(EarlyBruckv, WhatComesBeforeTheOwnBlocksGoesOnAtOnce) {
  post();
  bench.finish_dma();
  bench.finish_dma();
  bench.take_log();
  bench.deliver(step(0));
  EXPECT_EQ(landings(), lands(2));
  bench.finish_all_dma();
  deliver_steps();
  expect_over();
}

TEST_F(EarlyBruckv, InPlaceNothingLandsBeforeTheOwnBlocksAreRead) {
  for (uint32_t k = 0; k < steps; k++) bench.deliver(step(k));
  post(0, true);
  bench.finish_dma();
  bench.finish_dma();
  EXPECT_EQ(bench.port.dma_count(), ranks - 1);  // not what it has for itself
  bench.take_log();
  while (bench.port.dma_count() > 0 && !bench.port.dma(0).write) {
    EXPECT_EQ(landings(), "");
    bench.finish_dma();
  }
  EXPECT_EQ(landings(), all_land({2, 3, 4, 5, 6, 7, 0}));
  bench.finish_all_dma();
  expect_over();
  expect_all_sent();
}

// Nor what comes then.
TEST_F(EarlyBruckv, InPlaceWhatComesWhileTheyAreReadWaits) {
  post(0, true);
  bench.finish_dma();
  bench.finish_dma();
  bench.take_log();
  bench.deliver(step(0));
  EXPECT_EQ(landings(), "");
  bench.finish_all_dma();
  EXPECT_EQ(landings(), lands(2));
  deliver_steps();
  expect_over();
  expect_all_sent();
}

class RunsOfBruckv : public EarlyBruckv, public ::testing::WithParamInterface<uint32_t> {
 protected:
  RunsOfBruckv() : EarlyBruckv(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Keeps, RunsOfBruckv, ::testing::Values(kInChannel, 1, kInPackets));

TEST_P(RunsOfBruckv, BlocksOfTheNextOperationDoNotMix) {
  post(0, false, 0);
  deliver_steps(1);
  deliver_steps(0);
  expect_over();
  post(1, false, 1);
  bench.finish_all_dma();
  EXPECT_EQ(done(), 2u);
  EXPECT_EQ(wrong(1), "");
}

// A slot of the member serves operation after operation, of other lengths each.
TEST_P(RunsOfBruckv, EveryOperationBeginsAnew) {
  for (uint32_t sequence = 0; sequence < 3 * CONFIG_CHANNELS; sequence++) {
    set_varied();
    set_length(sequence % ranks, rank, sequence % 2 == 0 ? 0 : 8);
    if (sequence % 3 == 0) deliver_steps(sequence);
    post(sequence, false, sequence % kTables);
    bench.finish_all_dma();
    for (uint32_t k = 0; k < steps; k++) {
      EXPECT_EQ(done(), sequence + (sequence % 3 == 0 ? 1 : 0));
      bench.deliver(step(k, sequence));
      bench.finish_all_dma();
    }
    EXPECT_EQ(done(), sequence + 1u);
    EXPECT_EQ(wrong(sequence), "") << sequence;
    bench.port.take_sent();
    if (sequence % kEpoch != kEpoch - 1) continue;
    deliver_recycling(sequence / kEpoch);
    expect_staying(0);
  }
}

// Where short blocks went in steps, those of a direct one do not.
TEST_P(RunsOfBruckv, ASlotMayServeADirectOneNext) {
  for (uint32_t sequence = 0; sequence < 2 * CONFIG_CHANNELS; sequence++) {
    const bool in_steps = sequence / CONFIG_CHANNELS == 0;
    algorithm = in_steps ? PEAL_ALGORITHM_BRUCK : PEAL_ALGORITHM_DIRECT;
    post(sequence);
    bench.finish_all_dma();
    if (in_steps) {
      deliver_steps(sequence);
    } else {
      EXPECT_EQ(done(), sequence);
      deliver_all(0, sequence);
    }
    EXPECT_EQ(done(), sequence + 1u);
    EXPECT_EQ(wrong(sequence), "");
    bench.port.take_sent();
    if (sequence % kEpoch == kEpoch - 1) deliver_recycling(sequence / kEpoch);
  }
}

// A refused operation left something there, in the slot that another has now.
TEST_F(EarlyBruckvInChannel, WhatLayThereOfARefusedOneIsNotTheNextOnes) {
  deliver_steps(0);
  bench.deliver(wire.refuse(0, shape(), 0, 3));
  for (uint32_t sequence = 0; sequence < CONFIG_CHANNELS; sequence++) {
    post(sequence);
    bench.finish_all_dma();
    if (sequence > 0) deliver_steps(sequence);
    if (sequence % kEpoch == kEpoch - 1) deliver_recycling(sequence / kEpoch);
  }
  ASSERT_EQ(done(), CONFIG_CHANNELS - 1u);
  bench.port.take_sent();
  bench.deliver(step(0, CONFIG_CHANNELS));
  post(CONFIG_CHANNELS);
  bench.take_log();
  while (bench.port.dma_count() > 1) bench.finish_dma(1);
  const std::string reads = "dma_read channel+" + std::to_string(arrival_place(0)) + " ";
  EXPECT_EQ(lines_with(bench.take_log(), reads), "");
  bench.finish_all_dma();
  deliver_steps(CONFIG_CHANNELS);
  EXPECT_EQ(done(), CONFIG_CHANNELS + 0u);
  EXPECT_EQ(wrong(CONFIG_CHANNELS), "");
}

TEST_F(EarlyBruckv, WhatStaysIsLetGoWhenTheHostIsGone) {
  bench.deliver(step(0));
  bench.deliver(step(1));
  post();
  expect_staying(2);
  card_close_context(bench.card(), bench.context(), bench.now);
  bench.finish_all_dma();
  expect_staying(0);
}

}  // namespace
}  // namespace peal::test
