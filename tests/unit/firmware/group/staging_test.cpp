// SPDX-License-Identifier: BSD-2-Clause
// Staging buffers: members take turns with them, who finds none goes without, and whatever ends a
// member gives its own back.
#include "firmware/group/staging.h"

#include "tests/support/log_lines.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kRanks = 4;
constexpr uint32_t kRank = 1;
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

// Of an exchange in steps all that was sent may be asked for as long as its record stays.
class Held : public Staging {
 protected:
  // Allgather `sequence` of the group by recursive doubling, from its post to its end.
  void exchange(Group& group, uint64_t sequence, size_t block = kBlock) {
    post_exchange(group, sequence, block);
    deliver_step(group, sequence, 0, {0}, block);
    deliver_step(group, sequence, 1, {2, 3}, block);
    bench.finish_all_dma();
  }
  void post_exchange(Group& group, uint64_t sequence, size_t block) {
    const auto own = pattern_block(sequence, kRank, 0, block);
    std::copy(own.begin(), own.end(), bench.port.bytes(group.send.region).begin());
    bench.submit(allgather_entry(group.member, sequence, sequence,
                                 PEAL_ALGORITHM_RECURSIVE_DOUBLING, block, group.send.key,
                                 group.receive.key));
    bench.finish_all_dma();
  }
  void deliver_step(const Group& group, uint64_t sequence, uint32_t step,
                    const std::vector<uint32_t>& origins, size_t block) {
    std::vector<uint8_t> payload;
    for (const uint32_t origin : origins) {
      const auto one = pattern_block(sequence, origin, 0, block);
      payload.insert(payload.end(), one.begin(), one.end());
    }
    bench.deliver(
        WireMaker(group.member)
            .doubling(doubling_shape(block), static_cast<uint32_t>(sequence), 0, step, 0, payload));
    bench.finish_all_dma();
  }
  // Does what it received stay on the card, instead of going to the channel?
  bool is_held(Group& group, uint64_t sequence) {
    bench.take_log();
    exchange(group, sequence);
    EXPECT_TRUE(is_right(group, sequence));
    return lines_that_begin(bench.take_log(), "dma_write channel").empty();
  }
  // What rank 3, who was sent two blocks, gets when it asks again.
  std::string ask(const Group& group, uint64_t sequence) {
    bench.take_log();
    bench.port.take_sent();
    bench.deliver(
        WireMaker(group.member)
            .nack(3, doubling_shape(kBlock), static_cast<uint32_t>(sequence), 0, kRank, 1));
    bench.finish_all_dma();
    const auto sent = bench.port.take_sent();
    if (sent.size() != 1) return "no answer";
    const auto whole = pattern_result(sequence, kRanks, kBlock);
    const bool right = sent[0].payload ==
                       std::vector<uint8_t>(whole.begin(), whole.begin() + 2 * ptrdiff_t{kBlock});
    return (right ? "right" : "wrong") + std::string(" from ") +
           (lines_that_begin(bench.take_log(), "dma_read channel").empty() ? "card" : "channel");
  }
};

TEST_F(Held, ASmallResultAnswersAsLongAsItsRecordStays) {
  EXPECT_TRUE(is_held(groups[0], 0));
  EXPECT_EQ(ask(groups[0], 0), "right from card");
  for (uint64_t sequence = 1; sequence < CONFIG_CHANNELS / 2; sequence++) {
    EXPECT_TRUE(is_held(groups[0], sequence));
    EXPECT_EQ(ask(groups[0], 0), "right from card");
    EXPECT_EQ(ask(groups[0], sequence), "right from card");
  }
}

TEST_F(Held, RoomComesBackWithItsRecord) {
  for (uint64_t sequence = 0; sequence < 4 * CONFIG_CHANNELS; sequence++) {
    EXPECT_TRUE(is_held(groups[0], sequence)) << sequence;
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_STAGING), 0u);
}

// Also where the record serves nothing else yet.
TEST_F(Held, NothingIsHeldForWhatIsRecycled) {
  constexpr uint32_t kHalf = CONFIG_STAGING_BUFFERS / 2;
  for (uint32_t i = 0; i < kHalf; i++) EXPECT_TRUE(is_held(groups[i], 0));
  for (uint64_t sequence = 1; sequence < CONFIG_CHANNELS; sequence++) run(groups[0], sequence);
  EXPECT_TRUE(is_held(groups[kHalf], 0));
}

// Others find room whatever groups that do nothing hold.
TEST_F(Held, HalfOfTheBuffersAtMost) {
  uint32_t held = 0;
  for (Group& group : groups) held += is_held(group, 0) ? 1 : 0;
  EXPECT_EQ(held, CONFIG_STAGING_BUFFERS / 2);
  for (Group& group : groups) {
    EXPECT_EQ(ask(group, 0), held > 0 ? "right from card" : "right from channel");
    held -= held > 0 ? 1 : 0;
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_STAGING), 0u);
}

TEST_F(Held, AMemberThatEndsHoldsNothing) {
  constexpr uint32_t kHalf = CONFIG_STAGING_BUFFERS / 2;
  for (uint32_t i = 0; i < kHalf; i++) EXPECT_TRUE(is_held(groups[i], 0));
  EXPECT_EQ(card_abandon_group(bench.card(), bench.context(), groups[0].member.handle(), bench.now),
            PEAL_STATUS_OK);
  bench.finish_all_dma();
  EXPECT_TRUE(is_held(groups[kHalf], 0));
  EXPECT_FALSE(is_held(groups[kHalf + 1], 0));
}

// Its result could not be written to the user's memory.
TEST_F(Held, NorDoesWhatFailed) {
  bench.port.fault_dmas = {1, 1};  // behind the read of the own block
  exchange(groups[0], 0);
  for (uint32_t i = 1; i <= CONFIG_STAGING_BUFFERS / 2; i++) EXPECT_TRUE(is_held(groups[i], 0));
}

// What is large finds room beside what is held, in one piece.
TEST_F(Held, TheRestOfTheBufferIsWhole) {
  constexpr size_t kMost = CONFIG_STAGING_BYTES / 4 * 3 / kRanks;
  constexpr size_t kLarge = kMost < CONFIG_MTU_BYTES / 2 ? kMost : CONFIG_MTU_BYTES / 2;
  Group& group = groups[0];
  group.send = bench.add_memory("large_send", kLarge, PEAL_ACCESS_READ);
  const Memory small = group.receive;
  const Memory large = bench.add_memory("large_receive", kLarge * kRanks);
  for (uint64_t sequence = 0; sequence < 4 * CONFIG_CHANNELS; sequence++) {
    const bool is_large = sequence % CONFIG_CHANNELS == CONFIG_CHANNELS - 1;
    group.receive = is_large ? large : small;
    const uint64_t before = bench.counter(PEAL_COUNTER_STAGED);
    exchange(group, sequence, is_large ? kLarge : kBlock);
    EXPECT_EQ(bench.counter(PEAL_COUNTER_STAGED), before + 2) << sequence;
  }
}

// What finds room only behind what is large does not stay there.
TEST_F(Held, NorDoesWhatLiesBehind) {
  constexpr size_t kLarge = CONFIG_MTU_BYTES / 2;
  static_assert(kLarge * kRanks >= CONFIG_STAGING_BYTES / 4);
  const Group small = groups[0];
  groups[0].send = bench.add_memory("large_send", kLarge, PEAL_ACCESS_READ);
  groups[0].receive = bench.add_memory("large_receive", kLarge * kRanks);
  post_exchange(groups[0], 0, kLarge);
  groups[0] = small;
  EXPECT_FALSE(is_held(groups[0], 1));
}

// More than a record's share of the buffer goes to the channel.
TEST_F(Held, WhatIsLargeIsNot) {
  constexpr size_t kLarge = CONFIG_MTU_BYTES / 2;
  static_assert(kLarge * kRanks > CONFIG_STAGING_BYTES / 8);
  groups[0].send = bench.add_memory("large_send", kLarge, PEAL_ACCESS_READ);
  groups[0].receive = bench.add_memory("large_receive", kLarge * kRanks);
  bench.take_log();
  exchange(groups[0], 0, kLarge);
  EXPECT_NE(lines_that_begin(bench.take_log(), "dma_write channel"), "");
  EXPECT_EQ(bench.port.bytes(groups[0].receive.region), pattern_result(0, kRanks, kLarge));
}

}  // namespace
}  // namespace peal::test
