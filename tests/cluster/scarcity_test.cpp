// SPDX-License-Identifier: BSD-2-Clause
// Exhaustion is back-pressure: with hardly any buffers, with a DMA engine of depth one and out of
// order, with slots used again and again, everything still ends, and everything is given back.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

Scenario mixed(uint32_t cards) {
  Scenario scenario = plan(cards, kBarrier, 1);
  scenario.groups[0].operations = {broadcast(5000),
                                   doubling(5000),
                                   kBarrier,
                                   broadcast(64),
                                   doubling(64),
                                   broadcast(20'000),
                                   doubling(20'000),
                                   root_broadcast(100, cards - 1),
                                   root_broadcast(500'000, 2),
                                   alltoall(64),
                                   alltoall(9000, true),
                                   direct(700),
                                   direct(9000, true),
                                   direct_allgather(700),
                                   direct_allgather(9000, true),
                                   ring(700),
                                   ring(9000, true),
                                   allgatherv(9000),
                                   alltoallv(9000, true),
                                   stepped_alltoallv(700),
                                   stepped_alltoallv(9000, true)};
  scenario.groups[0].depth = 4;
  return scenario;
}

TEST(Scarcity, FewPacketBuffers) {
  for (const uint32_t buffers : {24u, 32u, 64u}) {
    Scenario scenario = mixed(9);
    scenario.packets_per_card = buffers;
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << buffers << " buffers\n" << failures(report);
    // Whether more are few depends on the sizes of the card.
    if (buffers > 24) continue;
    EXPECT_GT(counted(report, "no_packet") + report.cluster.dropped_full, 0u);
  }
}

TEST(Scarcity, ADmaEngineOfDepthOne) {
  Scenario scenario = mixed(8);
  const Report ample = run(scenario);
  EXPECT_TRUE(ample.ok) << failures(ample);
  EXPECT_EQ(ample.cluster.dma_refused, 0u);
  scenario.dma_per_card = 1;
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_GT(report.cluster.dma_refused, 0u);
  // And with one at a time there is no order to be lost.
  EXPECT_EQ(report.cluster.dma_overtaken, 0u);
}

TEST(Scarcity, DmaCompletesOutOfOrder) {
  for (uint64_t seed = 1; seed <= 10; seed++) {
    Scenario scenario = mixed(7);
    scenario.seed = seed;
    scenario.costs.dma_jitter_ns = 50 * kMicrosecond;
    scenario.faults.loss = 0.05;
    scenario.faults.until_ns = kSecond;
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << "seed " << seed << "\n" << failures(report);
    EXPECT_GT(report.cluster.dma_overtaken, 0u) << "seed " << seed;
    if (seed > 1) continue;
    scenario.costs.dma_jitter_ns = 0;
    EXPECT_EQ(run(scenario).cluster.dma_overtaken, 0u);
  }
}

TEST(Scarcity, EverythingAtOnce) {
  Scenario scenario = mixed(6);
  scenario.packets_per_card = 32;
  scenario.dma_per_card = 2;
  scenario.costs.dma_jitter_ns = 5 * kMicrosecond;
  scenario.costs.packet_ns = 5 * kMicrosecond;
  scenario.faults.loss = 0.05;
  scenario.faults.corrupt = 0.05;
  scenario.faults.duplicate = 0.1;
  scenario.faults.until_ns = kSecond;
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_GT(report.cluster.dma_refused, 0u);
  EXPECT_GT(report.cluster.dma_overtaken, 0u);
}

// A chain of groups, each in the place of the one before: member slots and channels are used again
// many times.
TEST(Scarcity, SlotsAreUsedAgain) {
  Scenario scenario = mixed(5);
  scenario.faults.loss = 0.1;
  scenario.faults.until_ns = 10 * kSecond;
  const uint32_t times = std::min(3 * device().members_max, 48u);
  for (uint32_t i = 0; i < times; i++) {
    GroupPlan next = scenario.groups[0];
    next.after_group = i;
    next.operations.resize(3);
    scenario.groups.push_back(next);
  }
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_EQ(report.ranks, 5 * (1 + times));
}

// As many groups at once as a card has members, of three processes on each card; each with its own
// pace.
Scenario all_members(uint32_t cards) {
  Scenario scenario = mixed(cards);
  // Long blocks would only cost memory.
  std::erase_if(scenario.groups[0].operations,
                [](const OperationPlan& each) { return each.block_bytes > 20'000; });
  const GroupPlan first = scenario.groups[0];
  for (uint32_t i = 1; i < device().members_max; i++) {
    GroupPlan next = first;
    next.think_ns = i * kMicrosecond;
    for (Place& place : next.places) place.process = i % 3;
    scenario.groups.push_back(next);
  }
  scenario.faults.loss = 0.02;
  scenario.faults.until_ns = kSecond;
  return scenario;
}

TEST(Scarcity, AllMembersOfACardAtOnce) {
  const Report report = run(all_members(4));
  EXPECT_TRUE(report.ok) << failures(report);
}

// In the groups of the process that is killed; or in all, where the card falls silent.
TEST(Scarcity, AllMembersOfACardWhenOneDies) {
  for (const auto kind : {Accident::Kind::kKill, Accident::Kind::kSilence}) {
    Scenario scenario = all_members(4);
    scenario.accidents.push_back({kind, {1, 0}, 2 * kMillisecond});
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << failures(report);
    EXPECT_GE(report.peer_dead, device().members_max / 3);
  }
}

// Chains of groups, made and destroyed one after the other by a quarter of a card's members, beside
// groups that go on.
TEST(Scarcity, GroupsComeAndGoBesideOthers) {
  Scenario scenario = mixed(4);
  const GroupPlan steady = scenario.groups[0];
  scenario.groups.push_back(steady);
  const uint32_t chains = device().members_max / 4;
  GroupPlan brief = steady;
  brief.operations = {broadcast(64), alltoall(64)};
  for (uint32_t i = 0; i < 8 * chains; i++) {
    const auto index = static_cast<uint32_t>(scenario.groups.size());
    brief.after_group = i < chains ? kNoGroup : index - chains;
    for (Place& place : brief.places) place.process = i % 3;
    scenario.groups.push_back(brief);
  }
  scenario.faults.loss = 0.05;
  scenario.faults.until_ns = 10 * kSecond;
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_EQ(report.ranks, 4 * (2 + 8 * chains));
}

}  // namespace
}  // namespace peal::sim
