// SPDX-License-Identifier: BSD-2-Clause
// Staging buffers: members take turns with them, who finds none goes without, and whatever ends a
// member gives its own back.
#include "firmware/group/staging.h"

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kRanks = 4;
constexpr uint32_t kRank = 1;
constexpr size_t kBlock = 64;
static_assert(CONFIG_STAGING_BUFFERS < CONFIG_CARD_MEMBERS, "so that a group goes without");

// One rank of several groups, more than there are buffers.
class Staging : public CardTest {
 protected:
  struct Group {
    Memory send;
    Memory receive;
    Membership member;
  };

  Staging() : CardTest(BenchOptions{.index = kRank}) {
    for (uint32_t i = 0; i <= CONFIG_STAGING_BUFFERS; i++) {
      groups.push_back({bench.add_memory("send", kBlock, PEAL_ACCESS_READ),
                        bench.add_memory("receive", kBlock * kRanks),
                        bench.join(kRanks, kRank, kGroupId + i)});
    }
  }
  // Operation `sequence` of the group: posted here, or what one other rank sends.
  void post(Group& group, uint64_t sequence) {
    const auto own = pattern_block(sequence, kRank, 0, kBlock);
    std::copy(own.begin(), own.end(), bench.port.bytes(group.send.region).begin());
    bench.submit(allgather_entry(group.member, sequence, sequence,
                                 PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, kBlock, group.send.key,
                                 group.receive.key));
    bench.finish_all_dma();
  }
  void deliver(const Group& group, uint64_t sequence, uint32_t origin) {
    const WireMaker wire(group.member);
    bench.deliver(wire.hopping(broadcast_shape(kBlock), static_cast<uint32_t>(sequence), 0, origin,
                               pattern_block(sequence, origin, 0, kBlock)));
    bench.finish_all_dma();
  }
  void run(Group& group, uint64_t sequence) {
    post(group, sequence);
    for (const uint32_t origin : {0u, 2u, 3u}) deliver(group, sequence, origin);
  }
  bool is_right(const Group& group, uint64_t sequence) {
    return bench.port.bytes(group.receive.region) == pattern_result(sequence, kRanks, kBlock);
  }
  // Whether what one more operation of the group receives gathers; it comes to its end.
  bool is_staged(Group& group, uint64_t sequence) {
    const uint64_t before = bench.counter(PEAL_COUNTER_STAGED);
    run(group, sequence);
    EXPECT_TRUE(is_right(group, sequence));
    return bench.counter(PEAL_COUNTER_STAGED) == before + 3;
  }

  std::vector<Group> groups;
};

TEST_F(Staging, OneGroupAfterTheOther) {
  for (Group& group : groups) EXPECT_TRUE(is_staged(group, 0));
  for (Group& group : groups) EXPECT_TRUE(is_staged(group, 1));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_STAGING), 0u);
}

TEST_F(Staging, OperationsOfOneGroupShareABuffer) {
  // As many as its recycling lets run, by turns with another group's.
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS / 2; sequence++) post(groups[0], sequence);
  EXPECT_TRUE(is_staged(groups[1], 0));
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS / 2; sequence++) {
    for (const uint32_t origin : {0u, 2u, 3u}) deliver(groups[0], sequence, origin);
    EXPECT_TRUE(is_right(groups[0], sequence));
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_STAGING), 0u);
}

TEST_F(Staging, WhoFindsNoneGoesWithoutUntilOneIsGivenBack) {
  for (uint32_t i = 0; i < CONFIG_STAGING_BUFFERS; i++) post(groups[i], 0);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_STAGING), 0u);
  Group& last = groups[CONFIG_STAGING_BUFFERS];
  EXPECT_FALSE(is_staged(last, 0));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_STAGING), 1u);
  for (const uint32_t origin : {0u, 2u, 3u}) deliver(groups[0], 0, origin);
  EXPECT_TRUE(is_right(groups[0], 0));
  EXPECT_TRUE(is_staged(last, 1));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_STAGING), 1u);
}

// What only answers late questions gives way: to the group's own operations, the oldest first, and
// to other groups.
TEST_F(Staging, WhatIsKeptGivesWay) {
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS / 2; sequence++) run(groups[0], sequence);
  EXPECT_NE(bench.card().members[0].staging, nullptr);
  for (uint32_t i = 1; i <= CONFIG_STAGING_BUFFERS; i++) EXPECT_TRUE(is_staged(groups[i], 0));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_STAGING), 0u);
}

// An operation that is under way keeps its room whatever else its group has kept.
TEST_F(Staging, WhatIsUnderWayDoesNotGiveWay) {
  for (uint32_t i = 0; i < CONFIG_STAGING_BUFFERS; i++) {
    run(groups[i], 0);
    post(groups[i], 1);
  }
  EXPECT_FALSE(is_staged(groups[CONFIG_STAGING_BUFFERS], 0));
  for (const uint32_t origin : {0u, 2u, 3u}) deliver(groups[0], 1, origin);
  EXPECT_TRUE(is_right(groups[0], 1));
}

TEST_F(Staging, AMemberThatEndsGivesItsOwnBack) {
  // Of operations that are posted, and of one that another rank began.
  for (uint32_t i = 0; i + 1 < CONFIG_STAGING_BUFFERS; i++) post(groups[i], 0);
  deliver(groups[CONFIG_STAGING_BUFFERS - 1], 0, 0);
  for (uint32_t i = 0; i < CONFIG_STAGING_BUFFERS; i++) {
    EXPECT_EQ(
        card_abandon_group(bench.card(), bench.context(), groups[i].member.handle(), bench.now),
        PEAL_STATUS_OK);
  }
  bench.finish_all_dma();
  EXPECT_TRUE(is_staged(groups[CONFIG_STAGING_BUFFERS], 0));
  for (uint32_t i = 0; i < CONFIG_STAGING_BUFFERS; i++) {
    groups[i].member = bench.join(kRanks, kRank, kGroupId + 100 + i);
    post(groups[i], 0);
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_STAGING), 0u);
}

}  // namespace
}  // namespace peal::test
