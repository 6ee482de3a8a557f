// SPDX-License-Identifier: BSD-2-Clause
// Recursive doubling (N a power of two) and Bruck's order (other N) as one rank sees them; what
// they have in common with other exchanges in steps is in stepping_test.cpp.
#include "firmware/collective/allgather/doubling.h"

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

class DoublingBase : public GroupTest {
 protected:
  using GroupTest::GroupTest;
  // What the partner of step k sends: `blocks` blocks from `first` on, going round.
  Frame step(uint32_t k, uint32_t first, uint32_t blocks, uint64_t sequence = 0,
             size_t block = kBlock) {
    std::vector<uint8_t> payload;
    for (uint32_t i = 0; i < blocks; i++) {
      const auto one = pattern_block(sequence, (first + i) % ranks, 0, block);
      payload.insert(payload.end(), one.begin(), one.end());
    }
    return wire.doubling(doubling_shape(block), static_cast<uint32_t>(sequence), 0, k, 0, payload);
  }
  // Nothing but the completion is left to come.
  void expect_end(uint64_t sequence) {
    bench.finish_all_dma();
    EXPECT_EQ(bench.take_wire_log(),
              "complete ctx0 cookie=" + std::to_string(100 + sequence) + " OK\n");
    EXPECT_EQ(wrong_byte(sequence, kBlock), -1);
  }
};

// Rank 1 of 4: step 0 with 0, step 1 with 3.
class Doubling : public DoublingBase {
 protected:
  Frame first() { return step(0, 0, 1); }
  Frame second() { return step(1, 2, 2); }
  // A whole packet leaves.
  static std::string sent(uint32_t to, uint32_t step, uint32_t fragment) {
    return "send 1>" + std::to_string(to) + " DATA seq=0 piece=0 step=" + std::to_string(step) +
           " frag=" + std::to_string(fragment) + " len=" + kMtuText + "\n";
  }
};

TEST_F(Doubling, InOrder) {
  post_doubling(0, kBlock);
  EXPECT_EQ(bench.take_log(), "dma_read send+0 64\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=64\n");
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, pattern_block(0, 1, 0, kBlock));
  bench.deliver(first());
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128\n");
  const auto expected = pattern_result(0, ranks, kBlock);
  EXPECT_EQ(bench.port.take_sent()[0].payload,
            std::vector<uint8_t>(expected.begin(), expected.begin() + 2 * kBlock));
  bench.deliver(second());
  EXPECT_EQ(bench.take_wire_log(), "");
  expect_end(0);
}

TEST_F(Doubling, FaultyDmaEndsTheOperationByName) {
  bench.port.fault_dmas = {0, 1};
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(),
            "dma_read send+0 64\n"
            "send 1>2 REFUSE seq=0 rank=1\n"
            "send 1>0 REFUSE seq=0 rank=1\n"
            "send 1>3 REFUSE seq=0 rank=1\n"
            "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
}

// Rank 3 of 5: step k receives from 3 + 2^k and sends to 3 - 2^k;
// blocks of ranks 3, 4, 0, 1, 2 in this order.
class Bruck : public DoublingBase {
 protected:
  Bruck() : DoublingBase(5, 3) {}
};

TEST_F(Bruck, InOrder) {
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 3>2 DATA seq=0 piece=0 step=0 frag=0 len=64\n");
  bench.deliver(step(0, 4, 1));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 3>1 DATA seq=0 piece=0 step=1 frag=0 len=128\n");
  bench.deliver(step(1, 0, 2));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 3>4 DATA seq=0 piece=0 step=2 frag=0 len=64\n");
  bench.deliver(step(2, 2, 1));
  expect_end(0);
}

class DoublingOf1 : public DoublingBase {
 protected:
  DoublingOf1() : DoublingBase(1, 0) {}
};

TEST_F(DoublingOf1, CopiesTheBlock) {
  post_doubling(0, kBlock);
  expect_end(0);
  post_broadcast(1, kBlock);
  expect_end(1);
}

// Large steps are cut into fragments, each NACKed by its bit.
TEST_F(Doubling, FragmentsOfALargeStep) {
  const size_t block = CONFIG_MTU_BYTES;
  ASSERT_GE(CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW) / 4, block);
  post_doubling(0, block);
  bench.finish_all_dma();
  bench.deliver(step(0, 0, 1, 0, block));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), sent(0, 0, 0) + sent(3, 1, 0) + sent(3, 1, 1));
  const auto fragment = [&](uint32_t number) {
    return wire.doubling(doubling_shape(block), 0, 0, 1, number,
                         pattern_block(0, 2 + number, 0, block));
  };
  bench.deliver(fragment(1));
  bench.finish_all_dma();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 NACK seq=0 piece=0 step=1 missing=0x1\n");
  bench.deliver(wire.nack(3, doubling_shape(block), 0, 0, 1, 1, 2));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>3 DATA seq=0 piece=0 step=1 frag=1 len=" + std::to_string(block) + " repair\n");
  bench.deliver(fragment(0));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, block), -1);
}

// What goes out in a step is read from the channel, so it must lie there: the own block...
TEST_F(Doubling, TheFirstStepWaitsForTheOwnBlockInTheChannel) {
  post_doubling(0, kBlockMax);
  bench.take_log();
  bench.finish_dma();  // read, and on its way into the channel
  const std::string log = bench.take_log();
  EXPECT_EQ(log, "dma_write channel+" + kMtuText + " " + kMtuText + "\n");
}

// ... and what the partners sent.
TEST_F(Doubling, TheNextStepWaitsForTheBytesInTheChannel) {
  post_doubling(0, kBlockMax);
  bench.finish_all_dma();
  bench.take_log();
  const uint32_t piece = CONFIG_MTU_BYTES;
  bench.deliver(
      wire.doubling(doubling_shape(kBlockMax), 0, 0, 0, 0, pattern_block(0, 0, 0, piece)));
  ASSERT_EQ(bench.port.dma_count(), 1u);
  EXPECT_EQ(bench.take_log(), "dma_write channel+0 " + kMtuText + "\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "dma_read channel+0 " + kMtuText + "\ndma_read channel+" + kMtuText +
                                  " " + kMtuText + "\n" + sent(3, 1, 0) + sent(3, 1, 1));
}

// Staging is given out in runs: what is free in front of another operation's part may be too short.
TEST_F(Doubling, OperationsShareNoStaging) {
  constexpr size_t kTwoUnits = CONFIG_STAGING_BYTES / 16 / 4 + 8;
  for (uint64_t sequence = 0; sequence < 2; sequence++) {
    post_doubling(sequence, kBlock);
    bench.finish_all_dma();
  }
  bench.deliver(step(0, 0, 1, 0));
  bench.deliver(step(1, 2, 2, 0));
  bench.deliver(step(0, 0, 1, 1));
  bench.finish_all_dma();
  ASSERT_EQ(bench.port.take_completions().size(), 1u);  // the first unit is free again
  post_doubling(2, kTwoUnits);
  bench.finish_all_dma();
  bench.deliver(step(1, 2, 2, 2, kTwoUnits));
  bench.deliver(step(1, 2, 2, 1));
  bench.finish_all_dma();
  ASSERT_EQ(bench.port.take_completions().size(), 1u);
  EXPECT_EQ(wrong_byte(1, kBlock), -1);
}

}  // namespace
}  // namespace peal::test
