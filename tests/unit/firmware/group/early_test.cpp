// SPDX-License-Identifier: BSD-2-Clause
// What comes before there is room for it in the user's memory waits on the card: how much of it,
// where the rest goes, and that the packets are given back whatever becomes of the operation.
#include "firmware/group/early.h"

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kRoom = 2;                   // packets that may wait
constexpr size_t kUnstaged = CONFIG_MTU_BYTES;  // too large for staging

// Rank 1 of four.
class Early : public GroupTest {
 protected:
  Early() : GroupTest(4, 1, {.packet_buffers = 8 * kRoom, .keeps_early = true}) {}

  void deliver_early(uint64_t sequence, std::initializer_list<uint32_t> origins) {
    for (const uint32_t origin : origins) bench.deliver(block_of(origin, sequence, kUnstaged));
  }
  void expect_result(uint64_t sequence) {
    const auto done = bench.port.take_completions();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(status_text(done[0].second.status), "OK");
    EXPECT_EQ(wrong_byte(sequence, kUnstaged), -1);
  }
};

TEST_F(Early, WhatComesBeforeThePostStaysInItsPackets) {
  deliver_early(0, {0, 2});
  EXPECT_EQ(bench.port.dma_count(), 0u);
  EXPECT_EQ(bench.port.packets_unsent(), kRoom);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 2u);
  post_broadcast(0, kUnstaged);
  bench.take_log();
  bench.finish_all_dma();
  deliver_early(0, {3});
  bench.finish_all_dma();
  expect_result(0);
  EXPECT_EQ(bench.port.packets_unsent(), 0u);
}

// The channel takes what the card has no room for; both ways end in the same memory.
TEST_F(Early, WhatFindsNoRoomGoesToTheChannel) {
  deliver_early(0, {3, 0, 2});
  EXPECT_EQ(bench.port.dma_count(), 1u);
  bench.finish_all_dma();
  EXPECT_EQ(bench.port.packets_unsent(), kRoom);
  post_broadcast(0, kUnstaged);
  bench.finish_all_dma();
  expect_result(0);
}

// A packet that waits for its host is no packet that nobody has: what the host took away makes room
// for the next operation's.
TEST_F(Early, RoomIsGivenBack) {
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) {
    deliver_early(sequence, {0, 2});
    EXPECT_EQ(bench.port.dma_count(), 0u) << sequence;
    post_broadcast(sequence, kUnstaged);
    deliver_early(sequence, {3});
    bench.finish_all_dma();
    expect_result(sequence);
    bench.port.take_sent();
  }
}

// Nobody will post: the packets are given back.
TEST_F(Early, WhoLeavesGivesThemBack) {
  deliver_early(0, {0, 2});
  EXPECT_EQ(card_abandon_group(bench.card(), bench.context(), member.handle(), bench.now),
            PEAL_STATUS_OK);
  bench.finish_all_dma();
  EXPECT_EQ(bench.port.packets_unsent(), 0u);
}

// Somebody sends for a sequence behind the group's last word.
TEST_F(Early, WhatComesBehindTheDestroyIsGivenBack) {
  deliver_early(1, {0, 2});
  bench.submit(destroy_entry(member, 0, 1));
  for (uint32_t round = 0; round < 2; round++)
    bench.deliver(wire.signal(behind(round), kDestroyShape, 0, round));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  bench.finish_all_dma();
  EXPECT_EQ(bench.port.packets_unsent(), 0u);
}

// Others disagree, or one is dead: the operation can only fail, and its packets are free for others
// long before the host says anything.
TEST_F(Early, ARefusalGivesThemBackAtOnce) {
  deliver_early(0, {0, 2});
  bench.deliver(block_of(3, 0, kUnstaged - 8));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DROP_SIGNATURE), 1u);
  EXPECT_EQ(bench.port.packets_unsent(), 0u);
  deliver_early(1, {0, 2});
  EXPECT_EQ(bench.port.dma_count(), 0u) << "there is room";
  bench.deliver(block_of(3, 1, kUnstaged - 8));
}

TEST_F(Early, ADeathGivesThemBackAtOnce) {
  deliver_early(0, {0, 2});
  bench.deliver(wire.death(2, 3));
  EXPECT_EQ(bench.port.packets_unsent(), 0u);
}

// The host posts something else: the operation ends at once, and with it what waited.
TEST_F(Early, ADisagreementGivesThemBack) {
  deliver_early(0, {0, 2});
  post_barrier(0);
  bench.finish_all_dma();
  EXPECT_EQ(bench.port.packets_unsent(), 0u);
}

}  // namespace
}  // namespace peal::test
