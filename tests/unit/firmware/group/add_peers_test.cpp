// SPDX-License-Identifier: BSD-2-Clause
// Groups whose peers do not fit one command: what is checked of those that come before, that a
// barrier reaches all of them, and which operations so large a group is refused. With the sizes of
// configs/many.
#include <gtest/gtest.h>

#include "firmware/card_types.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kRanks = CONFIG_GROUP_RANKS_MAX;
constexpr uint32_t kRank = 40'000;
constexpr uint32_t kNamed = PEAL_PEERS_PER_COMMAND;

BenchOptions on_own_card() {
  BenchOptions options;
  options.index = kRank;
  return options;
}

peal_peer_address peer(uint32_t entry) {
  const uint32_t distance = 1u << entry / 2;
  return CardBench::played_address((kRank + (entry % 2 == 0 ? distance : kRanks - distance)) %
                                   kRanks);
}

peal_add_peers added(uint32_t handle) {
  peal_add_peers request{};
  request.member = handle;
  for (uint32_t entry = kNamed; entry < 2 * ceil_log2(kRanks); entry++)
    request.peers[request.peer_count++] = peer(entry);
  return request;
}

peal_connect_group named(uint32_t handle) {
  peal_connect_group request{};
  request.member = handle;
  request.group = kGroupId;
  request.peer_count = 2 * ceil_log2(kRanks);
  for (uint32_t entry = 0; entry < kNamed; entry++) request.peers[entry] = peer(entry);
  return request;
}

class AddPeers : public CardTest {
 protected:
  AddPeers() : CardTest(on_own_card()), handle(bench.reserve(kRanks, kRank).handle()) {}

  peal_status add(const peal_add_peers& request) {
    return card_add_peers(bench.card(), bench.context(), request);
  }
  peal_status connect(const peal_connect_group& request) {
    return card_connect_group(bench.card(), bench.context(), request, bench.now);
  }

  uint32_t handle;
};

TEST_F(AddPeers, ThenConnect) {
  EXPECT_EQ(add(added(handle)), PEAL_STATUS_OK);
  EXPECT_EQ(add(added(handle)), PEAL_STATUS_OK);  // once more
  EXPECT_EQ(connect(named(handle)), PEAL_STATUS_OK);
  EXPECT_EQ(add(added(handle)), PEAL_STATUS_BUSY);
}

TEST_F(AddPeers, AMemberWithoutThemIsNotConnected) {
  EXPECT_EQ(connect(named(handle)), PEAL_STATUS_BAD_RANK);
  peal_connect_group few = named(handle);
  few.peer_count = kNamed;
  EXPECT_EQ(connect(few), PEAL_STATUS_BAD_RANK);
  EXPECT_EQ(add(added(handle)), PEAL_STATUS_OK);
  EXPECT_EQ(connect(few), PEAL_STATUS_BAD_RANK);
  EXPECT_EQ(connect(named(handle)), PEAL_STATUS_OK);
}

TEST_F(AddPeers, AreChecked) {
  peal_add_peers bad = added(handle ^ 0x10000);
  EXPECT_EQ(add(bad), PEAL_STATUS_BAD_GROUP);
  const uint32_t right = added(handle).peer_count;
  for (const uint32_t count : {0u, right - 1, right + 1, 2 * ceil_log2(kRanks), 0xffffffffu}) {
    bad = added(handle);
    bad.peer_count = count;
    EXPECT_EQ(add(bad), PEAL_STATUS_BAD_RANK) << count;
  }
  for (uint32_t i = 0; i < right; i++) {
    bad = added(handle);
    bad.peers[i].rank ^= 1;
    EXPECT_EQ(add(bad), PEAL_STATUS_BAD_RANK) << i;
    bad = added(handle);
    bad.peers[i].geometry ^= 1;
    EXPECT_EQ(add(bad), PEAL_STATUS_MISMATCH) << i;
  }
  EXPECT_EQ(connect(named(handle)), PEAL_STATUS_BAD_RANK);
}

TEST_F(AddPeers, OfAnotherContextOrWhereAllFitAreRefused) {
  const ContextId other = bench.open_context();
  EXPECT_EQ(card_add_peers(bench.card(), other, added(handle)), PEAL_STATUS_BAD_GROUP);
  const uint32_t small = bench.reserve(1024, 5).handle();
  for (const uint32_t count : {0u, 1u, 12u}) {
    peal_add_peers none = added(small);
    none.peer_count = count;
    EXPECT_EQ(add(none), PEAL_STATUS_BAD_RANK) << count;
  }
}

class ManyRanks : public CardTest {
 protected:
  ManyRanks() : CardTest(on_own_card()), member(bench.join(kRanks, kRank)), wire(member) {
    bench.take_log();
  }
  [[nodiscard]] static uint32_t behind(uint32_t round) {
    return (kRank + kRanks - (1u << round)) % kRanks;
  }

  Membership member;
  WireMaker wire;
};

TEST_F(ManyRanks, ABarrierReachesAllPeers) {
  bench.submit(barrier_entry(member, 0, 100));
  for (uint32_t round = 0; round < ceil_log2(kRanks); round++) {
    const std::string to = std::to_string((kRank + (1u << round)) % kRanks);
    EXPECT_EQ(bench.take_log(),
              "send 40000>" + to + " SIGNAL barrier seq=0 round=" + std::to_string(round) + "\n");
    bench.deliver(wire.signal(behind(round), kBarrierShape, 0, round));
  }
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
}

TEST_F(ManyRanks, WhatHasABitOrABlockOfEachIsRefused) {
  const Memory memory = bench.add_memory("memory", 4096);
  uint64_t sequence = 0;
  for (const peal_algorithm algorithm :
       {PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, PEAL_ALGORITHM_RECURSIVE_DOUBLING,
        PEAL_ALGORITHM_DIRECT}) {
    bench.submit(allgather_entry(member, sequence, 7, algorithm, 8, memory.key, memory.key));
    EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=7 BAD_ALGORITHM\n") << algorithm;
  }
}

// And no packet makes the record of one.
TEST_F(ManyRanks, APacketOfSuchAnOperationIsDropped) {
  const std::vector<uint8_t> block(8, 1);
  EXPECT_EQ(change(wire.doubling(doubling_shape(8), 0, 0, 0, 0, block)), "+1 drop_type");
  EXPECT_EQ(change(wire.hopping(broadcast_shape(8), 0, 0, behind(0), block)), "+1 drop_type");
}

}  // namespace
}  // namespace peal::test
