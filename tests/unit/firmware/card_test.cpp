// SPDX-License-Identifier: BSD-2-Clause
// The card as a whole: what it says of itself, that the clock's size does not matter, and that the
// same inputs give the same effects.
#include "firmware/card.h"

#include <cstring>

#include "firmware/card_types.h"
#include "firmware/channels.h"
#include "tests/support/cluster.h"
#include "tests/support/log_lines.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

TEST_F(CardTest, DescribesItself) {
  peal_device device;
  std::memset(&device, 0xee, sizeof(device));
  card_describe(bench.card(), &device);
  EXPECT_EQ(device.incarnation, bench.incarnation());
  EXPECT_EQ(device.ranks_max, static_cast<uint32_t>(CONFIG_GROUP_RANKS_MAX));
  EXPECT_EQ(device.remembered_addresses, static_cast<uint32_t>(CONFIG_REMEMBERED_ADDRESSES));
  EXPECT_EQ(device.members_max, static_cast<uint32_t>(CONFIG_CARD_MEMBERS));
  EXPECT_EQ(device.channels, static_cast<uint32_t>(CONFIG_CHANNELS));
  EXPECT_EQ(device.parked_max, static_cast<uint32_t>(CONFIG_PARKED_OPERATIONS));
  EXPECT_EQ(device.piece_window, static_cast<uint32_t>(CONFIG_PIECE_WINDOW));
  EXPECT_EQ(device.mtu_bytes, static_cast<uint32_t>(CONFIG_MTU_BYTES));
  EXPECT_EQ(device.channel_bytes * uint64_t{device.channels}, kChannelsBytes);
  EXPECT_EQ(device.dead_timeout_us, static_cast<uint32_t>(CONFIG_DEAD_TIMEOUT_US));
  EXPECT_EQ(device.geometry, card_geometry());
}

// Cards that cut the logs of exchanges in steps otherwise drop each other's packets for ever.
TEST_F(CardTest, WhatCutsLogsOtherwiseIsAnotherGeometry) {
  EXPECT_NE(geometry_hash(kPairRounds + 1), card_geometry());
}

TEST_F(CardTest, CountersHaveTheirNames) {
  EXPECT_STREQ(card_counter_name(PEAL_COUNTER_SENT_DATA), "sent_data");
  EXPECT_STREQ(card_counter_name(PEAL_COUNTER_DMA_FAULT), "dma_fault");
  EXPECT_NE(card_counter_name(PEAL_COUNTER_COUNT), nullptr);
  for (const uint64_t value : bench.counters()) EXPECT_EQ(value, 0u);
}

TEST_F(CardTest, AFreshCardHoldsNothingAndWantsNothing) {
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
  const CardHolds holds = card_holds(bench.card());
  EXPECT_EQ(holds.packets + holds.dma_records + holds.operations, 0u);
  card_on_timer(bench.card(), bench.now);
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(CardTest, SubmissionsOfNobodyAreIgnored) {
  const peal_submission entry{};
  for (const ContextId context :
       {ContextId{CONFIG_CONTEXTS - 1}, ContextId{CONFIG_CONTEXTS}, ~0u}) {
    bench.submit_in(context, entry);
  }
  EXPECT_EQ(bench.take_log(), "");
}

class Timed : public GroupTest {};

TEST_F(Timed, CompletionSaysHowLongTheCardTook) {
  post_barrier(0);
  bench.advance(12'345);
  bench.deliver(wire.signal(0, kBarrierShape, 0, 0));
  bench.deliver(wire.signal(3, kBarrierShape, 0, 1));
  const auto done = bench.port.take_completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].second.card_ns, 12'345u);
  EXPECT_EQ(done[0].second.sequence, 0u);
  EXPECT_EQ(done[0].second.member, member.handle());
  EXPECT_EQ(done[0].second.operation, PEAL_OPERATION_BARRIER);
  EXPECT_EQ(done[0].second.failed_rank, PEAL_NO_RANK);
}

TEST_F(Timed, AClockThatStartsAtZeroOrNearTheEndOfTimeIsFine) {
  for (const TimeNs start : {TimeNs{0}, TimeNs{1} << 62}) {
    CardBench late(BenchOptions{.index = 1});
    late.now = start;
    const Membership theirs = late.join(4, 1);
    late.submit(barrier_entry(theirs, 0, 1));
    late.take_log();
    late.advance(default_timeouts().nack_ns);
    EXPECT_EQ(late.take_log(), "send 1>0 NACK barrier seq=0 round=0\n");
    const TimeNs until =
        late.now + default_timeouts().dead_ns + 3 * default_timeouts().probe_interval_ns;
    while (late.now < until && late.advance_to_deadline()) late.port.take_sent();
    EXPECT_EQ(distinct_lines(late.take_log()),
              "send 1>0 NACK barrier seq=0 round=0\n"
              "send 1>0 PROBE\n"
              "send 1>2 DEATH rank=0\n"
              "send 1>0 DEATH rank=0\n"
              "send 1>3 DEATH rank=0\n"
              "complete ctx0 cookie=1 PEER_DEAD rank=0\n");
    late.port.take_sent();
  }
}

// Invariant 7: nothing but the inputs decides. The same lossy run twice, on cards at other
// addresses in memory.
TEST(Determinism, TheSameRunTwiceSendsTheSamePacketsAtTheSameTimes) {
  const auto run = [](Cluster& cluster) {
    uint64_t state = 42;
    cluster.fate = [&](const Frame&) -> uint32_t {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return (state >> 60) == 0 ? 0 : (state >> 60) == 1 ? 2 : 1;
    };
    for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS; sequence++) {
      for (uint32_t rank = 0; rank < 7; rank++) {
        cluster.allgather(
            rank, sequence,
            sequence % 2 ? PEAL_ALGORITHM_RECURSIVE_DOUBLING : PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST,
            777 * (sequence + 1));
      }
    }
    EXPECT_TRUE(cluster.run_until_completions(CONFIG_CHANNELS));
    std::string text;
    for (size_t i = 0; i < cluster.trace().size(); i++) {
      text += std::to_string(cluster.sent_at(i)) + " " + frame_text(cluster.trace()[i]) + "\n";
    }
    return text;
  };
  Cluster one(7);
  Cluster other(7);
  const std::string first = run(one);
  const std::string second = run(other);
  EXPECT_EQ(first, second);
  EXPECT_GT(one.total(PEAL_COUNTER_SENT_REPAIR), 0u) << "nothing was lost, so nothing was tested";
}

}  // namespace
}  // namespace peal::test
