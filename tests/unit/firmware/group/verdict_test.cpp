// SPDX-License-Identifier: BSD-2-Clause
// Bad news: deaths poison the group and are flooded once; disagreements end one sequence on every
// rank and the group goes on.
#include "firmware/group/verdict.h"

#include <cstring>

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr size_t kBlock = 64;

class Verdict : public GroupTest {
 protected:
  static Frame with_verdict(Frame frame, uint32_t rank, uint32_t status) {
    const peal_verdict verdict{rank, status};
    std::memcpy(frame.payload.data(), &verdict, sizeof(verdict));
    seal(frame);
    return frame;
  }
  std::string change(const Frame& frame) {
    const auto before = bench.counters();
    bench.deliver(frame);
    return bench.counter_changes(before);
  }
  static constexpr const char* kFlood =
      "send 1>2 DEATH rank=3\n"
      "send 1>0 DEATH rank=3\n"
      "send 1>3 DEATH rank=3\n";
};

// --- death ---

TEST_F(Verdict, DeathIsFloodedAndEndsEverythingByName) {
  post_barrier(0);
  post_broadcast(1, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(wire.death(0, 3));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), std::string(kFlood) +
                                       "complete ctx0 cookie=100 PEER_DEAD rank=3\n"
                                       "complete ctx0 cookie=101 PEER_DEAD rank=3\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_GROUPS_POISONED), 1u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);  // suspected by another
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

TEST_F(Verdict, DeathTwiceIsFloodedOnce) {
  bench.deliver(wire.death(0, 3));
  EXPECT_EQ(bench.take_log(), kFlood);
  EXPECT_EQ(change(wire.death(2, 3)), "+1 drop_closed");
  EXPECT_EQ(change(wire.death(2, 0)), "+1 drop_closed");  // the first verdict stands
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Verdict, ParkedOperationsEndToo) {
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS + 2; sequence++) post_barrier(sequence);
  bench.deliver(wire.death(0, 3));
  const auto done = bench.port.take_completions();
  ASSERT_EQ(done.size(), CONFIG_CHANNELS + 2u);
  for (const auto& [context, entry] : done) {
    EXPECT_EQ(status_text(entry.status), "PEER_DEAD");
    EXPECT_EQ(entry.failed_rank, 3u);
  }
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 0u);
}

TEST_F(Verdict, LaterOperationsEndAtOnceAndAskersAreTold) {
  bench.deliver(wire.death(0, 3));
  bench.take_log();
  post_barrier(0);
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 PEER_DEAD rank=3\n");
  bench.deliver(wire.nack(2, kBarrierShape, 0, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 DEATH rank=3\n");
  bench.deliver(wire.probe(2));
  EXPECT_EQ(bench.take_log(), "send 1>2 DEATH rank=3\n");
}

TEST_F(Verdict, APoisonedGroupCanBeLeft) {
  bench.deliver(wire.death(0, 3));
  bench.take_log();
  bench.submit(destroy_entry(member, 0, 9));
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=9 PEER_DEAD rank=3\n");
  RegionId channels = 0;
  EXPECT_TRUE(card_channel_released(bench.card(), &channels));
  EXPECT_EQ(channels, member.channels);
  bench.deliver(wire.nack(2, kBarrierShape, 0, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 DEATH rank=3\n");  // the tombstone names the dead
}

TEST_F(Verdict, CompletionWaitsForDmaUnderWay) {
  post_broadcast(0, kBlock);
  ASSERT_GT(bench.port.dma_count(), 0u);
  bench.deliver(wire.death(0, 3));
  EXPECT_EQ(bench.take_log().find("complete"), std::string::npos);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 PEER_DEAD rank=3\n");
}

// The destroy is the group's last word: it comes after what still waits for DMA.
TEST_F(Verdict, ThePoisonedGroupIsLeftAfterWhatStillRuns) {
  post_broadcast(0, kBlock);
  ASSERT_GT(bench.port.dma_count(), 0u);
  bench.deliver(wire.death(0, 3));
  bench.take_log();
  bench.submit(destroy_entry(member, 1, 9));
  EXPECT_EQ(bench.take_log(), "");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "complete ctx0 cookie=100 PEER_DEAD rank=3\n"
            "complete ctx0 cookie=9 PEER_DEAD rank=3\n");
}

// The same when the destroy was waiting already as the death came.
TEST_F(Verdict, AParkedDestroyEndsAfterWhatStillRuns) {
  post_broadcast(0, kBlock);
  bench.submit(destroy_entry(member, 1, 9));
  ASSERT_GT(bench.port.dma_count(), 0u);
  bench.deliver(wire.death(0, 3));
  EXPECT_EQ(bench.port.take_completions().size(), 0u);
  bench.take_log();
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "complete ctx0 cookie=100 PEER_DEAD rank=3\n"
            "complete ctx0 cookie=9 PEER_DEAD rank=3\n");
}

TEST_F(Verdict, OtherGroupsOfTheCardLive) {
  const Membership other = bench.join(2, 0, 77);
  bench.submit(barrier_entry(other, 0, 7));
  bench.deliver(wire.death(0, 3));
  bench.take_log();
  bench.deliver(WireMaker(other).signal(1, kBarrierShape, 0, 0));
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=7 OK\n");
}

TEST_F(Verdict, DeathsThatMakeNoSense) {
  EXPECT_EQ(change(wire.death(0, 4)), "+1 drop_origin");
  EXPECT_EQ(change(wire.death(0, PEAL_NO_RANK)), "+1 drop_origin");
  EXPECT_EQ(change(with_verdict(wire.death(0, 3), 3, PEAL_STATUS_OK)), "+1 drop_origin");
  Frame other = wire.death(0, 3);
  other.header.identity += 0x9e3779b1u;
  seal(other);
  EXPECT_EQ(change(other), "+1 drop_stranger");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Verdict, AClosedContextIsADeath) {
  post_barrier(0);
  bench.take_log();
  card_close_context(bench.card(), bench.context(), bench.now);
  EXPECT_EQ(bench.take_log(),
            "send 1>2 DEATH rank=1\n"
            "send 1>0 DEATH rank=1\n"
            "send 1>3 DEATH rank=1\n");
  EXPECT_TRUE(card_context_quiet(bench.card(), bench.context()));
}

// --- disagreement ---

TEST_F(Verdict, AnotherLengthIsRefusedOnBothSides) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  EXPECT_NE(change(block_of(0, 0, 72)).find("+1 drop_signature"), std::string::npos);
  const std::string log = bench.take_wire_log();
  EXPECT_NE(log.find("send 1>0 REFUSE seq=0 rank=0\n"), std::string::npos) << log;
  EXPECT_NE(log.find("send 1>2 REFUSE seq=0 rank=0\n"), std::string::npos) << log;
  EXPECT_NE(log.find("complete ctx0 cookie=100 MISMATCH rank=0\n"), std::string::npos) << log;
}

TEST_F(Verdict, DisagreementFoundAtThePost) {
  bench.deliver(block_of(0, 0, 72));
  bench.finish_all_dma();
  bench.take_log();
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  const std::string log = bench.take_wire_log();
  EXPECT_NE(log.find("REFUSE seq=0 rank=0\n"), std::string::npos) << log;
  EXPECT_NE(log.find("complete ctx0 cookie=100 MISMATCH rank=0\n"), std::string::npos) << log;
}

TEST_F(Verdict, ARefusalHeardIsPassedOnOnceAndEndsThePost) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  const Frame refusal =
      with_verdict(wire.refuse(2, broadcast_shape(72), 0, 3), 3, PEAL_STATUS_MISMATCH);
  bench.deliver(refusal);
  const std::string log = bench.take_wire_log();
  EXPECT_NE(log.find("send 1>3 REFUSE seq=0 rank=3\n"), std::string::npos) << log;
  EXPECT_NE(log.find("complete ctx0 cookie=100 MISMATCH rank=3\n"), std::string::npos) << log;
  bench.deliver(refusal);
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Verdict, ARefusalBeforeThePostIsKept) {
  bench.deliver(with_verdict(wire.refuse(2, broadcast_shape(72), 0, 3), 3, PEAL_STATUS_MISMATCH));
  bench.take_log();
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 MISMATCH rank=3\n");
}

TEST_F(Verdict, TheGroupGoesOnWithTheNextSequence) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.deliver(block_of(0, 0, 72));
  bench.finish_all_dma();
  bench.take_log();
  for (uint64_t sequence = 1; sequence < 2 * CONFIG_CHANNELS; sequence++) run_barrier(sequence);
  const std::string last =
      "complete ctx0 cookie=" + std::to_string(99 + 2 * CONFIG_CHANNELS) + " OK\n";
  EXPECT_NE(bench.take_log().find(last), std::string::npos);
}

TEST_F(Verdict, WhoeverStillAsksIsToldAgain) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.deliver(block_of(0, 0, 72));
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(wire.nack(2, broadcast_shape(kBlock), 0, 0, 1, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 REFUSE seq=0 rank=0\n");
}

TEST_F(Verdict, RefusalsThatMakeNoSense) {
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

TEST_F(Verdict, ACompletedOperationKeepsItsResult) {
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
TEST_F(Verdict, ARefusalBeforeThePostIsPassedOn) {
  bench.deliver(
      with_verdict(wire.refuse(2, broadcast_shape(kBlock), 0, 3), 3, PEAL_STATUS_MISMATCH));
  EXPECT_EQ(bench.take_log(),
            "send 1>2 REFUSE seq=0 rank=3\n"
            "send 1>0 REFUSE seq=0 rank=3\n"
            "send 1>3 REFUSE seq=0 rank=3\n");
}

// What was being read when the verdict came is not sent any more.
TEST_F(Verdict, ARefusedOperationSendsNoOwnBlock) {
  post_broadcast(0, kBlock);
  ASSERT_EQ(bench.port.dma_count(), 1u);
  bench.deliver(
      with_verdict(wire.refuse(2, broadcast_shape(kBlock), 0, 3), 3, PEAL_STATUS_MISMATCH));
  bench.take_log();
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 MISMATCH rank=3\n");
}

TEST_F(Verdict, ARefusedOperationSendsNoStep) {
  constexpr size_t kUnstaged = 4 * CONFIG_MTU_BYTES;
  post_doubling(0, kUnstaged);
  while (bench.port.dma(0).host.region != member.channels) bench.finish_dma();  // the own blocks
  while (bench.port.dma(0).write) bench.finish_dma();                           // into the image
  ASSERT_GT(bench.port.dma_count(), 0u);  // and now out of it, into the first step's packets
  bench.deliver(
      with_verdict(wire.refuse(2, doubling_shape(kUnstaged), 0, 3), 3, PEAL_STATUS_MISMATCH));
  bench.take_log();
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 MISMATCH rank=3\n");
}

// Groups that are no power of two: nobody is told twice, and nobody is left out.
class VerdictOf7 : public GroupTest {
 protected:
  VerdictOf7() : GroupTest(7, 0) {}
};

TEST_F(VerdictOf7, EveryPeerIsToldOnce) {
  bench.deliver(wire.death(1, 5));
  EXPECT_EQ(bench.take_log(),
            "send 0>1 DEATH rank=5\n"
            "send 0>6 DEATH rank=5\n"
            "send 0>2 DEATH rank=5\n"
            "send 0>5 DEATH rank=5\n"
            "send 0>4 DEATH rank=5\n"
            "send 0>3 DEATH rank=5\n");
}

// What an operation gathers on the card goes back when it fails, as when it succeeds.
TEST_F(Verdict, RefusedOperationsKeepNoStaging) {
  constexpr uint64_t kMany = 32;
  for (uint64_t sequence = 0; sequence < kMany; sequence++) {
    post_broadcast(sequence, kBlock);
    bench.deliver(wire.refuse(2, broadcast_shape(kBlock), static_cast<uint32_t>(sequence), 3));
    bench.finish_all_dma();
    bench.port.take_sent();
    if ((sequence + 1) % kEpoch != 0) continue;
    for (uint32_t round = 0; round < 2; round++) {
      bench.deliver(wire.recycle(behind(round), static_cast<uint32_t>(sequence / kEpoch), round));
    }
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
