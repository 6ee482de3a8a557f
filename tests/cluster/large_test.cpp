// SPDX-License-Identifier: BSD-2-Clause
// Large groups: a thousand cards, and sizes around powers of two.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

TEST(Large, ThousandCardsByRecursiveDoubling) {
  const Report report = run(plan(1024, doubling(64), 2));
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_EQ(report.completed, 3u * 1024);
  EXPECT_EQ(report.packets[PEAL_PACKET_NACK], 0u);
}

TEST(Large, ThousandCardsBarrierUnderLoss) {
  Scenario scenario = plan(1024, kBarrier, 5);
  scenario.faults.loss = 0.02;
  scenario.faults.until_ns = kSecond;
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_GT(report.repairs, 0u);
}

TEST(Large, SizesThatAreNoPowerOfTwo) {
  for (const uint32_t ranks : {127u, 129u, 255u, 300u, 1000u, 1023u}) {
    Scenario scenario = plan(ranks, doubling(40), 2);
    scenario.faults.loss = 0.01;
    scenario.faults.until_ns = kSecond;
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << ranks << " ranks\n" << failures(report);
  }
}

// Where everybody talks to everybody masks of ranks have several words; one rank is late.
TEST(Large, ExchangesOfMoreRanksThanAWordHas) {
  const uint32_t most = std::min(device().remembered_addresses, 300u);
  for (const uint32_t ranks : {65u, 129u, 300u}) {
    if (ranks > most) continue;
    const uint32_t several = ranks > 200 ? 700 : 9000;
    for (OperationPlan operation :
         {direct(40), direct(several), direct_allgather(several), ring(several), alltoall(40),
          allgatherv(several), alltoallv(several), stepped_alltoallv(24)}) {
      operation.lengths = ranks;
      Scenario scenario = plan(ranks, operation, 2, 2);
      scenario.groups[0].first_post_ns[ranks / 2] = 20 * kMillisecond;
      scenario.faults.loss = 0.01;
      scenario.faults.until_ns = kSecond;
      scenario.events_max = 100'000'000;
      const Report report = run(scenario);
      EXPECT_TRUE(report.ok) << ranks << " ranks, " << operation_text(operation) << "\n"
                             << failures(report);
      EXPECT_EQ(report.completed, 3u * ranks) << operation_text(operation);
    }
  }
}

TEST(Large, BroadcastOverHundredsUnderLoss) {
  for (const uint32_t ranks : {100u, 257u}) {
    Scenario scenario = plan(ranks, broadcast(256), 1);
    scenario.faults.loss = 0.01;
    scenario.faults.until_ns = kSecond;
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << ranks << " ranks\n" << failures(report);
  }
}

TEST(Large, BroadcastsFromARootUnderLoss) {
  for (const uint32_t ranks : {127u, 300u, 1023u}) {
    Scenario scenario = plan(ranks, root_broadcast(40, ranks - 2), 2);
    scenario.groups[0].operations.push_back(root_broadcast(300'000, ranks / 3));
    scenario.faults.loss = 0.01;
    scenario.faults.until_ns = kSecond;
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << ranks << " ranks\n" << failures(report);
  }
}

TEST(Large, ManyRanksOnFewCards) {
  const peal_device card = device();
  Scenario scenario;
  scenario.cards = 4;
  scenario.events_max = 50'000'000;
  GroupPlan group = make_group(4, std::min(card.members_max, 16u));
  group.operations = {kBarrier,
                      broadcast(700),
                      doubling(700),
                      broadcast(9000),
                      doubling(9000),
                      root_broadcast(9000, 5),
                      alltoall(700),
                      direct(700),
                      direct_allgather(9000),
                      ring(9000),
                      allgatherv(9000),
                      alltoallv(700),
                      stepped_alltoallv(2000)};
  group.depth = 2;
  scenario.groups.push_back(group);
  scenario.faults.loss = 0.03;
  scenario.faults.until_ns = kSecond;
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
}

TEST(Large, LongBlocks) {
  for (const auto& operation :
       {broadcast(1'000'000), doubling(1'000'000), root_broadcast(5'000'000, 2)}) {
    Scenario scenario = plan(3, operation, 2);
    scenario.faults.loss = 0.01;
    scenario.faults.until_ns = kSecond;
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << failures(report);
  }
}

}  // namespace
}  // namespace peal::sim
