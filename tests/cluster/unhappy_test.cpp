// SPDX-License-Identifier: BSD-2-Clause
// The unhappy path, as an adversary found it: verdicts and repairs that the wire eats, cards that
// cannot keep up, members that leave while others ask.
#include <gtest/gtest.h>

#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

// Whatever the seed.
void expect_nobody_dead(Scenario& scenario, uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    scenario.seed = seed;
    const Report report = run(scenario);
    ASSERT_TRUE(report.ok) << "seed " << seed << "\n" << failures(report);
    ASSERT_EQ(report.peer_dead, 0u) << "seed " << seed;
  }
}

// An origin refuses, its flood to one rank is lost, and everybody on that rank's way has finished:
// the verdict must find its way all the same.
TEST(Unhappy, ARefusalReachesARankWhoseParentsHaveFinished) {
  Scenario scenario = plan(8, broadcast(1000), 6, 3);
  scenario.groups[0].think_ns = 20 * kMicrosecond;
  scenario.accidents.push_back({Accident::Kind::kUnmap, {1, 0}, 40 * kMicrosecond, 0});
  for (const double loss : {0.1, 0.01}) {
    scenario.faults.loss = loss;
    scenario.faults.until_ns = kSecond;
    for (uint64_t seed = 1; seed <= 500; seed++) {
      scenario.seed = seed;
      const Report report = run(scenario);
      ASSERT_TRUE(report.ok) << "loss " << loss << " seed " << seed << "\n" << failures(report);
    }
  }
}

// The rank below refuses and is done with it; what it said is lost. A parent that waits for its
// credits must hear of it all the same.
TEST(Unhappy, ARefusalReachesAParentThatWaitsForCredits) {
  for (const uint32_t ranks : {2u, 7u}) {
    Scenario scenario = plan(ranks, root_broadcast(1'000'000, 1), 2);
    scenario.accidents.push_back({Accident::Kind::kUnmap, {0, 0}, kMicrosecond, 0});
    for (uint32_t card = 1; card < ranks; card++)
      scenario.cuts.push_back({0, card, 0, 300 * kMicrosecond});
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << ranks << " ranks\n" << failures(report);
    EXPECT_GT(report.dma_faults, 0u);
  }
}

// Of 8 ranks 0 and 3 are no peers. Nothing ever needs to go straight from one to the other, least
// of all a repair. (But in an exchange that is direct: there such a cut is a death.)
TEST(Unhappy, RepairsNeedNoWireBetweenRanksThatAreNoPeers) {
  for (const auto& operation :
       {kBarrier, broadcast(1000), broadcast(20'000), doubling(1000), root_broadcast(1000, 3),
        root_broadcast(300'000, 0), alltoall(1000)}) {
    Scenario scenario = plan(8, operation, operation.block_bytes > 100'000 ? 3 : 20, 2);
    scenario.faults.loss = 0.1;
    scenario.faults.until_ns = kSecond;
    for (const uint32_t a : {0u, 1u, 2u, 5u}) {
      scenario.cuts.push_back({a, (a + 3) % 8, 0, kNever});
      scenario.cuts.push_back({(a + 3) % 8, a, 0, kNever});
    }
    expect_nobody_dead(scenario, 40);
  }
}

// A card that cannot keep up, and nothing is lost: what the cards ask and repair meanwhile must not
// be what they cannot keep up with. (In the configuration wide this is two groups of 24 ranks at
// 9,000 bytes, 32 deep: it never ended.)
TEST(Unhappy, ASlowCardIsNotAskedToDeath) {
  Scenario scenario;
  scenario.cards = 8;
  scenario.costs.packet_ns = 5 * kMicrosecond;
  scenario.events_max = 50'000'000;
  for (uint32_t i = 0; i < 4; i++) {
    GroupPlan group = make_group(8, 4);
    for (Place& place : group.places) place.process += 4 * i;
    group.operations.assign(20, broadcast(9000));
    group.depth = device().parked_max;
    scenario.groups.push_back(group);
  }
  // It was 3.05, and is 1.54 since questions have a price (docs/decisions/0007).
  constexpr double kEffortMax = 1.7;
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_LE(report.effort(), kEffortMax);
}

// A member that is destroyed, with repairs under way, may close: that is no death.
TEST(Unhappy, ClosingAfterDestroyIsNoDeath) {
  for (const auto& operation : {broadcast(20'000), doubling(20'000), root_broadcast(100'000, 2),
                                alltoall(9000), direct(9000), direct_allgather(9000), ring(9000),
                                allgatherv(9000), alltoallv(9000), stepped_alltoallv(9000)}) {
    Scenario scenario = plan(6, operation, 1, 2);
    scenario.faults.loss = 0.2;
    scenario.faults.duplicate = 0.2;
    scenario.faults.delay = 0.3;
    scenario.faults.until_ns = 10 * kSecond;
    scenario.timeouts.nack_ns = 20 * kMicrosecond;
    scenario.costs.dma_latency_ns = 20 * kMicrosecond;
    for (const Place& place : scenario.groups[0].places)
      scenario.early_closes.push_back({place, 0});
    expect_nobody_dead(scenario, 100);
  }
}

// Rank 1 hears nothing for a second; meanwhile the others make and destroy more groups on the same
// cards than these keep graves for.
TEST(Unhappy, GravesOutliveAnOutage) {
  const uint32_t graves = 3 * device().members_max;
  Scenario scenario = plan(4, kBarrier, 2);
  for (const uint32_t other : {0u, 2u, 3u}) {
    scenario.cuts.push_back({other, 1, 5 * kMicrosecond, kSecond});
    scenario.cuts.push_back({1, other, 8 * kMicrosecond, kSecond});
  }
  GroupPlan busy = make_group(4, 1);
  busy.places.erase(busy.places.begin() + 1);
  for (Place& place : busy.places) place.process = 1;
  busy.connect_ns.assign(3, 0);
  busy.first_post_ns.assign(3, 0);
  busy.operations = {kBarrier};
  for (uint32_t i = 0; i < graves; i++) {
    busy.made_ns = 20 * kMicrosecond;
    busy.after_group = i == 0 ? kNoGroup : i;
    scenario.groups.push_back(busy);
  }
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_EQ(report.peer_dead, 0u);
}

}  // namespace
}  // namespace peal::sim
