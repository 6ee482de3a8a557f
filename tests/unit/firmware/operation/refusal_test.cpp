// SPDX-License-Identifier: BSD-2-Clause
// Disagreements end one sequence on every rank, and the group goes on.
#include "firmware/operation/refusal.h"

#include "tests/unit/verdict_fixture.h"

namespace peal::test {
namespace {

class Refusal : public Verdict {
 protected:
  // That rank 0 disagrees, all are told.
  static constexpr const char* kToldOfRank0 =
      "send 1>2 REFUSE seq=0 rank=0\n"
      "send 1>0 REFUSE seq=0 rank=0\n"
      "send 1>3 REFUSE seq=0 rank=0\n"
      "complete ctx0 cookie=100 MISMATCH rank=0\n";
  // Rank 3 will not, as rank 2 says; of ours nothing goes out any more.
  void expect_nothing_but_the_end(const OperationShape& shape) {
    bench.deliver(with_verdict(wire.refuse(2, shape, 0, 3), 3, PEAL_STATUS_MISMATCH));
    bench.take_log();
    bench.finish_all_dma();
    EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 MISMATCH rank=3\n");
  }
};

TEST_F(Refusal, AnotherLengthIsRefusedOnBothSides) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  EXPECT_EQ(change(block_of(0, 0, 72)), "+3 sent_verdict, +1 operations_failed, +1 drop_signature");
  EXPECT_EQ(bench.take_wire_log(), kToldOfRank0);
}

// One that is lost shows at the next packet of its edge.
TEST_F(Refusal, ARefusalIsNumbered) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.port.take_sent();
  bench.deliver(block_of(0, 0, 72));
  std::string told;
  for (const Frame& frame : bench.port.take_sent()) {
    told += std::to_string(frame.header.destination[5]) + ": type " +
            std::to_string(frame.header.type) + " number " + std::to_string(frame.header.edge) +
            "\n";
  }
  EXPECT_EQ(told, "2: type 5 number 2\n0: type 5 number 1\n3: type 5 number 2\n");
}

TEST_F(Refusal, DisagreementFoundAtThePost) {
  bench.deliver(block_of(0, 0, 72));
  bench.finish_all_dma();
  bench.take_log();
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), kToldOfRank0);
}

TEST_F(Refusal, ARefusalHeardIsPassedOnOnceAndEndsThePost) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  const Frame refusal =
      with_verdict(wire.refuse(2, broadcast_shape(72), 0, 3), 3, PEAL_STATUS_MISMATCH);
  bench.deliver(refusal);
  const std::string log = bench.take_wire_log();
  EXPECT_EQ(log,
            "send 1>2 REFUSE seq=0 rank=3\n"
            "send 1>0 REFUSE seq=0 rank=3\n"
            "send 1>3 REFUSE seq=0 rank=3\n"
            "complete ctx0 cookie=100 MISMATCH rank=3\n");
  bench.deliver(refusal);
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Refusal, ARefusalBeforeThePostIsKept) {
  bench.deliver(with_verdict(wire.refuse(2, broadcast_shape(72), 0, 3), 3, PEAL_STATUS_MISMATCH));
  bench.take_log();
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 MISMATCH rank=3\n");
}

TEST_F(Refusal, TheGroupGoesOnWithTheNextSequence) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.deliver(block_of(0, 0, 72));
  bench.finish_all_dma();
  bench.take_log();
  const uint64_t last = 2 * CONFIG_CHANNELS - 1;
  for (uint64_t sequence = 1; sequence < last; sequence++) run_barrier(sequence);
  bench.take_log();
  run_barrier(last);
  const std::string number = std::to_string(last);
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL barrier seq=" + number +
                                  " round=0\nsend 1>3 SIGNAL barrier seq=" + number +
                                  " round=1\ncomplete ctx0 cookie=" + std::to_string(100 + last) +
                                  " OK\nsend 1>3 SIGNAL recycle epoch=3 all root=0 hop=1\n");
}

TEST_F(Refusal, WhoeverStillAsksIsToldAgain) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.deliver(block_of(0, 0, 72));
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(wire.nack(2, broadcast_shape(kBlock), 0, 0, 1, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 REFUSE seq=0 rank=0\n");
}

TEST_F(Refusal, RefusalsThatMakeNoSense) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  const Frame good = wire.refuse(2, broadcast_shape(72), 0, 3);
  EXPECT_EQ(change(with_verdict(good, 4, PEAL_STATUS_MISMATCH)), "+1 drop_origin");
  EXPECT_EQ(change(with_verdict(good, 3, PEAL_STATUS_OK)), "+1 drop_type");
  EXPECT_EQ(change(with_verdict(good, 3, 0xffffffff)), "+1 drop_type");
  EXPECT_EQ(bench.take_log(), "");
  deliver_others(0, kBlock);
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(Refusal, ACompletedOperationKeepsItsResult) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  deliver_others(0, kBlock);
  bench.port.take_completions();
  bench.deliver(
      with_verdict(wire.refuse(2, broadcast_shape(kBlock), 0, 3), 3, PEAL_STATUS_MISMATCH));
  EXPECT_TRUE(bench.port.take_completions().empty());
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

// Who has not posted passes the verdict on all the same: its peers may hear it from nobody else.
TEST_F(Refusal, ARefusalBeforeThePostIsPassedOn) {
  bench.deliver(
      with_verdict(wire.refuse(2, broadcast_shape(kBlock), 0, 3), 3, PEAL_STATUS_MISMATCH));
  EXPECT_EQ(bench.take_log(),
            "send 1>2 REFUSE seq=0 rank=3\n"
            "send 1>0 REFUSE seq=0 rank=3\n"
            "send 1>3 REFUSE seq=0 rank=3\n");
}

// What was being read when the verdict came is not sent any more.
TEST_F(Refusal, ARefusedOperationSendsNoOwnBlock) {
  post_broadcast(0, kBlock);
  ASSERT_EQ(bench.port.dma_count(), 1u);
  expect_nothing_but_the_end(broadcast_shape(kBlock));
}

TEST_F(Refusal, ARefusedOperationSendsNoStep) {
  constexpr size_t kUnstaged = 4 * CONFIG_MTU_BYTES;
  post_doubling(0, kUnstaged);
  while (bench.port.dma(0).host.region != member.channels) bench.finish_dma();  // the own blocks
  while (bench.port.dma(0).write) bench.finish_dma();                           // into the image
  ASSERT_GT(bench.port.dma_count(), 0u);  // and now out of it, into the first step's packets
  expect_nothing_but_the_end(doubling_shape(kUnstaged));
}

// What an operation gathers on the card goes back when it fails, as when it succeeds.
TEST_F(Refusal, RefusedOperationsKeepNoStaging) {
  constexpr uint64_t kMany = 32;
  for (uint64_t sequence = 0; sequence < kMany; sequence++) {
    post_broadcast(sequence, kBlock);
    bench.deliver(wire.refuse(2, broadcast_shape(kBlock), static_cast<uint32_t>(sequence), 3));
    bench.finish_all_dma();
    bench.port.take_sent();
    if ((sequence + 1) % kEpoch == 0) deliver_recycling(sequence / kEpoch);
  }
  ASSERT_EQ(bench.port.take_completions().size(), kMany);
  post_broadcast(kMany, kBlock);
  bench.finish_all_dma();
  const uint64_t staged = bench.counter(PEAL_COUNTER_STAGED);
  deliver_others(kMany, kBlock);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_STAGED), staged + 3);
}

}  // namespace
}  // namespace peal::test
