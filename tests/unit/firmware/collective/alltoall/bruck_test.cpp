// SPDX-License-Identifier: BSD-2-Clause
// Bruck's all-to-all as one rank sees it, in staging; what it has in common with other exchanges in
// steps is in stepping_test.cpp.
#include "firmware/collective/alltoall/bruck.h"

#include "tests/unit/firmware/collective/alltoall/bruck_fixture.h"

namespace peal::test {
namespace {

// Rank 1 of 4: step 0 to 0 and from 2, step 1 to and from 3.
class BruckOf4 : public BruckTest {
 protected:
  void deliver_all(uint64_t sequence = 0, size_t block = kSmall) {
    bench.deliver(step(0, sequence, block));
    bench.deliver(step(1, sequence, block));
    bench.finish_all_dma();
  }
};

TEST_F(BruckOf4, InOrder) {
  post(0, kSmall);
  EXPECT_EQ(bench.take_log(), "dma_read given+0 256\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=128\n");
  auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, lot(1, 0, 0, 0, kSmall));
  EXPECT_EQ(sent[0].header.origin, 1);
  bench.deliver(step(0));
  EXPECT_EQ(bench.take_log(), "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128\n");
  sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, lot(1, 1, 0, 0, kSmall));
  bench.deliver(step(1));
  // The blocks of ranks 1, 2, 3, and that of 0. What was sent stays in staging.
  EXPECT_EQ(bench.take_log(),
            "dma_write result+64 192\n"
            "dma_write result+0 64\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kSmall), -1);
}

TEST_F(BruckOf4, InPlaceTheOwnBlocksAreReadFirst) {
  deliver_all();
  post_in_place(0, kSmall);
  EXPECT_EQ(bench.take_log(), "dma_read result+0 256\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(),
            "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=128\n"
            "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128\n"
            "dma_write result+64 192\n"
            "dma_write result+0 64\n");
  const auto sent = bench.port.take_sent();
  EXPECT_EQ(sent[0].payload, lot(1, 0, 0, 0, kSmall));
  EXPECT_EQ(sent[1].payload, lot(1, 1, 0, 0, kSmall));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kSmall), -1);
  scribble();
  EXPECT_EQ(answer(0, 0), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=128 repair\n");
  EXPECT_EQ(bench.port.take_sent()[0].payload, lot(1, 0, 0, 0, kSmall));
}

TEST_F(BruckOf4, OwnBlocksWithoutAPacketAreReadSoon) {
  bench.port.fail_allocations = {0, 1};
  post(0, kSmall);
  EXPECT_EQ(bench.take_log(), "");
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  EXPECT_EQ(bench.take_log(), "dma_read given+0 256\n");
}

TEST_F(BruckOf4, BlocksOfTheNextOperationDoNotMix) {
  post(0, kSmall);
  bench.deliver(step(0, 1));
  bench.deliver(step(1, 1));
  bench.finish_all_dma();
  deliver_all(0);
  EXPECT_EQ(wrong_byte(0, kSmall), -1);
  post(1, kSmall);
  bench.finish_all_dma();
  EXPECT_EQ(wrong_byte(1, kSmall), -1);
  ASSERT_EQ(bench.port.take_completions().size(), 2u);
}

class BadAlltoall : public BruckOf4 {
 protected:
  void expect_refused(const peal_submission& entry, const std::string& status) {
    bench.submit(entry);
    EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=7 " + status + "\n");
    EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 0u);
  }
  [[nodiscard]] peal_submission good() const {
    return alltoall_entry(member, 0, 7, kBlockMax, given.key, result.key);
  }
};

TEST_F(BadAlltoall, CommandsAreRefusedByName) {
  const Memory write_only = bench.add_memory("write only", kBlockMax * 4, PEAL_ACCESS_WRITE);
  peal_submission entry = good();
  entry.block_bytes = kBlockMax + 1;
  expect_refused(entry, "BAD_BOUNDS");
  entry.block_bytes = uint64_t{1} << 32;
  expect_refused(entry, "BAD_LENGTH");
  entry = good();
  entry.send_offset = 1;
  expect_refused(entry, "BAD_BOUNDS");
  entry = good();
  entry.receive_offset = 1;
  expect_refused(entry, "BAD_BOUNDS");
  entry = good();
  entry.send_key ^= 0x10000;
  expect_refused(entry, "BAD_KEY");
  entry = good();
  entry.receive_key ^= 0x10000;
  expect_refused(entry, "BAD_KEY");
  entry = good();
  entry.receive_key = given.key;
  expect_refused(entry, "BAD_ACCESS");
  entry = good();
  entry.send_key = write_only.key;
  expect_refused(entry, "BAD_ACCESS");
  entry = good();
  entry.flags = PEAL_SUBMIT_IN_PLACE;
  entry.receive_key = write_only.key;
  expect_refused(entry, "BAD_ACCESS");
  entry = good();
  entry.algorithm = PEAL_ALGORITHM_RECURSIVE_DOUBLING;
  expect_refused(entry, "BAD_ALGORITHM");
  entry = good();
  entry.root = 1;
  expect_refused(entry, "BAD_ROOT");
  bench.submit(good());
  bench.finish_all_dma();
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 1u);
}

class BruckFault : public BruckOf4, public ::testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Transfers, BruckFault, ::testing::Range(0u, 5u));

// The read of the own blocks, the two parts of the result; none behind them.
TEST_P(BruckFault, EndsAStagedOperationByName) {
  bench.port.fault_dmas = {GetParam(), 1};
  post(0, kSmall);
  bench.finish_all_dma();
  deliver_all();
  EXPECT_EQ(bench.port.take_completions().size(), 1u);
  const std::string log = bench.take_wire_log();
  const std::string sent =
      "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=128\n"
      "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128\n";
  const std::string told =
      "send 1>2 REFUSE seq=0 rank=1\n"
      "send 1>0 REFUSE seq=0 rank=1\n"
      "send 1>3 REFUSE seq=0 rank=1\n"
      "complete ctx0 cookie=100 DMA_FAULT rank=1\n";
  const bool fault = GetParam() < 3;
  EXPECT_EQ(log, (GetParam() == 0 ? "" : sent) + (fault ? told : "complete ctx0 cookie=100 OK\n"));
}

// Rank 3 of 5: to 2, 1, 4 and from 4, 0, 2, of two, two and one block.
class BruckOf5 : public BruckTest {
 protected:
  BruckOf5() : BruckTest(5, 3) {}
};

TEST_F(BruckOf5, InOrder) {
  post(0, kSmall);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 3>2 DATA seq=0 piece=0 step=0 frag=0 len=128\n");
  bench.deliver(step(0));
  EXPECT_EQ(bench.take_wire_log(), "send 3>1 DATA seq=0 piece=0 step=1 frag=0 len=128\n");
  bench.deliver(step(1));
  EXPECT_EQ(bench.take_wire_log(), "send 3>4 DATA seq=0 piece=0 step=2 frag=0 len=64\n");
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 3u);
  for (uint32_t k = 0; k < 3; k++) EXPECT_EQ(sent[k].payload, lot(3, k, 0, 0, kSmall)) << k;
  bench.deliver(step(2));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kSmall), -1);
}

class BruckOf2 : public BruckTest {
 protected:
  BruckOf2() : BruckTest(2, 0) {}
};

TEST_F(BruckOf2, OneExchange) {
  post(0, kSmall);
  bench.finish_all_dma();
  bench.deliver(step(0));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 0>1 DATA seq=0 piece=0 step=0 frag=0 len=64\n"
            "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kSmall), -1);
}

class BruckOf1 : public BruckTest {
 protected:
  BruckOf1() : BruckTest(1, 0) {}
};

TEST_F(BruckOf1, CopiesTheBlock) {
  uint64_t sequence = 0;
  for (const size_t block : {size_t{0}, kSmall, kBlockMax}) {
    post(sequence, block);
    bench.finish_all_dma();
    EXPECT_EQ(bench.take_wire_log(),
              "complete ctx0 cookie=" + std::to_string(100 + sequence) + " OK\n");
    EXPECT_EQ(wrong_byte(sequence, block), -1);
    sequence++;
  }
}

}  // namespace
}  // namespace peal::test
