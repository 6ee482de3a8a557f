// SPDX-License-Identifier: BSD-2-Clause
// Alltoallv in steps as one rank sees it, where all blocks are short: what each step sends, and
// where what comes goes on.
#include "firmware/collective/alltoallv/bruck.h"

#include "tests/unit/firmware/collective/alltoallv/bruck_fixture.h"

namespace peal::test {
namespace {

// Rank 1 of 4: step 0 to 0 and from 2, step 1 to and from 3.
class BruckvOf4 : public BruckvTest {
 protected:
  explicit BruckvOf4(uint32_t sent_packets = kInPackets) : BruckvTest(4, 1, sent_packets) {
    for (uint32_t a = 0; a < ranks; a++)
      for (uint32_t b = 0; b < ranks; b++) set_length(a, b, 10 * (a + 1) + b);
  }
};
class BruckvOf4InChannel : public BruckvOf4 {
 protected:
  BruckvOf4InChannel() : BruckvOf4(kInChannel) {}
};

TEST_F(BruckvOf4, InOrder) {
  post();
  EXPECT_EQ(bench.take_log(), "dma_read table+0 128\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), reads_given(0) + reads_given(1) + reads_given(2) + reads_given(3));
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), lands(1));  // what it has for itself
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), sends(0));
  auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(ways(sent[0].payload), "1:20 3:22 ");
  EXPECT_EQ(sent[0].payload, lot(1, 0));
  EXPECT_EQ(sent[0].header.origin, 1);
  EXPECT_EQ(sent[0].header.block_bytes, 0u);
  bench.deliver(step(0));
  EXPECT_EQ(bench.take_log(), lands(2) + sends(1));
  sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(ways(sent[0].payload), "2:23 3:33 ");
  EXPECT_EQ(sent[0].payload, lot(1, 1));
  bench.deliver(step(1));
  EXPECT_EQ(bench.take_log(), lands(3) + lands(0));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 2u);
  expect_staying(2);
}

// Each block is written behind the one before it; a step is read as a whole.
TEST_F(BruckvOf4InChannel, InOrder) {
  const auto writes = [this](uint32_t k, size_t offset, size_t bytes) {
    return "dma_write channel+" + std::to_string(log_place(k) + offset) + " " +
           std::to_string(kHead + bytes) + "\n";
  };
  const auto reads = [this](uint32_t k) {
    return "dma_read channel+" + std::to_string(log_place(k)) + " " +
           std::to_string(lot(rank, k).size()) + "\n";
  };
  begin();
  EXPECT_EQ(lines_with(bench.take_log(), "channel"),
            writes(0, 0, 20) + writes(0, 24, 22) + writes(1, 0, 23) + reads(0));
  bench.deliver(step(0));
  EXPECT_EQ(bench.take_log(), lands(2) + writes(1, 27, 33));
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), reads(1));
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), sends(1));
  expect_all_sent();
  bench.deliver(step(1));
  bench.finish_all_dma();
  expect_over();
  expect_staying(0);
}

// Whatever comes first, a step goes out when those below it have come.
TEST_F(BruckvOf4, AStepWaitsForThoseBeforeIt) {
  begin();
  bench.take_log();
  bench.deliver(step(1));
  EXPECT_EQ(bench.take_log(), lands(3) + lands(0));
  bench.deliver(step(0));
  EXPECT_EQ(bench.take_log(), lands(2) + sends(1));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
  expect_over();
}

// The rank's own reads may be slow.
TEST_F(BruckvOf4, AStepWaitsForAllOwnBlocks) {
  post();
  bench.finish_dma();
  bench.deliver(step(0));
  bench.deliver(step(1));
  for (int reads = 4; reads > 0; reads--) {
    EXPECT_EQ(bench.take_wire_log(), "");
    bench.finish_dma();
  }
  EXPECT_EQ(bench.take_wire_log(), sends(0) + sends(1));
  bench.finish_all_dma();
  expect_all_sent();
  expect_over();
}

TEST_F(BruckvOf4, TheOperationEndsWhenAllHasLanded) {
  begin();
  deliver_steps();
  bench.take_log();
  expect_over();
  post(1, false, 1);
  bench.finish_all_dma();
  bench.deliver(step(0, 1));
  bench.deliver(step(1, 1));
  while (bench.port.dma_count() > 0) {
    EXPECT_EQ(done(), 1u);
    bench.finish_dma();
  }
  EXPECT_EQ(done(), 2u);
  EXPECT_EQ(wrong(1), "");
}

struct BruckvPlace {
  uint32_t ranks;
  uint32_t rank;
  uint32_t sent_packets;
};

class BruckvOfAny : public BruckvTest, public ::testing::WithParamInterface<BruckvPlace> {
 protected:
  BruckvOfAny() : BruckvTest(GetParam().ranks, GetParam().rank, GetParam().sent_packets) {}
};

std::vector<BruckvPlace> bruckv_places() {
  std::vector<BruckvPlace> places;
  for (const uint32_t ranks : {2u, 3u, 5u, 8u})
    for (uint32_t rank = 0; rank < ranks; rank += 2)
      for (const uint32_t sent_packets : {kInChannel, 1u, kInPackets})
        places.push_back({ranks, rank, sent_packets});
  return places;
}

INSTANTIATE_TEST_SUITE_P(Of, BruckvOfAny, ::testing::ValuesIn(bruckv_places()),
                         [](const auto& row) {
                           return std::to_string(row.param.ranks) + "Rank" +
                                  std::to_string(row.param.rank) + "Keeps" +
                                  std::to_string(row.param.sent_packets);
                         });

TEST_P(BruckvOfAny, EachStepSendsOwnBlocksAndWhatHasComeForIt) {
  begin();
  for (uint32_t k = 0; k < steps; k++) {
    EXPECT_EQ(bench.take_wire_log(), sends(k));
    const auto sent = bench.port.take_sent();
    ASSERT_EQ(sent.size(), 1u) << k;
    EXPECT_EQ(by_way(sent[0].payload), lot(rank, k)) << k;
    bench.deliver(step(k));
    bench.finish_all_dma();
  }
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 OK\n");
  expect_over();
}

TEST_P(BruckvOfAny, EverythingBeforeThePost) {
  deliver_steps();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), steps);
  begin();
  expect_over();
  expect_all_sent();
}

TEST_P(BruckvOfAny, InPlace) {
  set_symmetric();
  deliver_steps();
  begin(true);
  expect_over();
  expect_all_sent();
}

// All are as long as a short block may be: packets are full.
TEST_P(BruckvOfAny, TheLongestShortBlocksFit) {
  set_all(most);
  begin();
  for (uint32_t k = 0; k < steps; k++) {
    EXPECT_EQ(bench.take_wire_log(), sends(k));
    bench.deliver(step(k));
    bench.finish_all_dma();
  }
  expect_over();
  expect_all_sent();
}

TEST_P(BruckvOfAny, AStepWithoutBlocksIsAHeaderOnly) {
  set_all(0);
  begin();
  EXPECT_EQ(lines_with(bench.take_log(), "len="), sends(0));
  deliver_steps();
  expect_over();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), steps);
  for (const auto& packet : bench.port.take_sent()) EXPECT_EQ(packet.payload.size(), 0u);
}

class BruckvAlone : public BruckvTest {
 protected:
  BruckvAlone() : BruckvTest(1, 0) {}
};

TEST_F(BruckvAlone, CopiesTheBlock) {
  uint64_t sequence = 0;
  for (const size_t block : {size_t{0}, size_t{1}, 3 * piece_bytes}) {
    set_all(block);
    post(sequence);
    bench.finish_all_dma();
    EXPECT_EQ(bench.take_wire_log(),
              "complete ctx0 cookie=" + std::to_string(100 + sequence) + " OK\n");
    EXPECT_EQ(wrong(sequence), "");
    if (sequence % kEpoch == kEpoch - 1) deliver_recycling(sequence / kEpoch);
    sequence++;
  }
}

class BruckvOf8 : public BruckvTest {};

// Rank 1 of 8 has, or brings further, blocks of each of these ways.
TEST_F(BruckvOf8, EmptyBlocksAreLeftOut) {
  set_all(8);
  set_length(1, 4, 0);  // way 5, of steps 0 and 2
  set_length(2, 1, 0);  // way 1, which would come in step 0
  set_length(2, 7, 0);  // way 3, which comes in step 0 and goes on in step 1
  begin();
  deliver_steps();
  expect_over();
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(ways(by_way(sent[0].payload)), "1:8 3:8 7:8 ");
  EXPECT_EQ(ways(by_way(sent[1].payload)), "2:8 6:8 7:8 ");
  EXPECT_EQ(ways(by_way(sent[2].payload)), "4:8 5:8 6:8 7:8 ");
}

}  // namespace
}  // namespace peal::test
