// SPDX-License-Identifier: BSD-2-Clause
// A death poisons the group and is flooded once.
#include "firmware/group/death.h"

#include "tests/unit/verdict_fixture.h"

namespace peal::test {
namespace {

using GroupDeath = Verdict;

TEST_F(GroupDeath, DeathIsFloodedAndEndsEverythingByName) {
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

TEST_F(GroupDeath, DeathTwiceIsFloodedOnce) {
  bench.deliver(wire.death(0, 3));
  EXPECT_EQ(bench.take_log(), kFlood);
  EXPECT_EQ(change(wire.death(2, 3)), "+1 drop_closed");
  EXPECT_EQ(change(wire.death(2, 0)), "+1 drop_closed");  // the first verdict stands
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(GroupDeath, ParkedOperationsEndToo) {
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

TEST_F(GroupDeath, LaterOperationsEndAtOnceAndAskersAreTold) {
  bench.deliver(wire.death(0, 3));
  bench.take_log();
  post_barrier(0);
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 PEER_DEAD rank=3\n");
  bench.deliver(wire.nack(2, kBarrierShape, 0, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 DEATH rank=3\n");
  bench.deliver(wire.probe(2));
  EXPECT_EQ(bench.take_log(), "send 1>2 DEATH rank=3\n");
}

TEST_F(GroupDeath, APoisonedGroupCanBeLeft) {
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

TEST_F(GroupDeath, CompletionWaitsForDmaUnderWay) {
  post_broadcast(0, kBlock);
  ASSERT_GT(bench.port.dma_count(), 0u);
  bench.deliver(wire.death(0, 3));
  EXPECT_EQ(bench.take_log(),
            "dma_read send+0 64\n"
            "send 1>2 DEATH rank=3\n"
            "send 1>0 DEATH rank=3\n"
            "send 1>3 DEATH rank=3\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 PEER_DEAD rank=3\n");
}

// The destroy is the group's last word: it comes after what still waits for DMA.
TEST_F(GroupDeath, ThePoisonedGroupIsLeftAfterWhatStillRuns) {
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
TEST_F(GroupDeath, AParkedDestroyEndsAfterWhatStillRuns) {
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

TEST_F(GroupDeath, OtherGroupsOfTheCardLive) {
  const Membership other = bench.join(2, 0, 77);
  bench.submit(barrier_entry(other, 0, 7));
  bench.deliver(wire.death(0, 3));
  bench.take_log();
  bench.deliver(WireMaker(other).signal(1, kBarrierShape, 0, 0));
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=7 OK\n");
}

TEST_F(GroupDeath, DeathsThatMakeNoSense) {
  EXPECT_EQ(change(wire.death(0, 4)), "+1 drop_origin");
  EXPECT_EQ(change(wire.death(0, PEAL_NO_RANK)), "+1 drop_origin");
  EXPECT_EQ(change(with_verdict(wire.death(0, 3), 3, PEAL_STATUS_OK)), "+1 drop_origin");
  Frame other = wire.death(0, 3);
  other.header.identity += 0x9e3779b1u;
  seal(other);
  EXPECT_EQ(change(other), "+1 drop_stranger");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(GroupDeath, AClosedContextIsADeath) {
  post_barrier(0);
  bench.take_log();
  card_close_context(bench.card(), bench.context(), bench.now);
  EXPECT_EQ(bench.take_log(),
            "send 1>2 DEATH rank=1\n"
            "send 1>0 DEATH rank=1\n"
            "send 1>3 DEATH rank=1\n");
  EXPECT_TRUE(card_context_quiet(bench.card(), bench.context()));
}

// Groups that are no power of two: nobody is told twice, and nobody is left out.
class DeathOf7 : public GroupTest {
 protected:
  DeathOf7() : GroupTest(7, 0) {}
};

TEST_F(DeathOf7, EveryPeerIsToldOnce) {
  bench.deliver(wire.death(1, 5));
  EXPECT_EQ(bench.take_log(),
            "send 0>1 DEATH rank=5\n"
            "send 0>6 DEATH rank=5\n"
            "send 0>2 DEATH rank=5\n"
            "send 0>5 DEATH rank=5\n"
            "send 0>4 DEATH rank=5\n"
            "send 0>3 DEATH rank=5\n");
}

}  // namespace
}  // namespace peal::test
