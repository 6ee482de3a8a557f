// SPDX-License-Identifier: BSD-2-Clause
// Hundreds of seeds: random clusters with random faults, every check on. What soak does for
// minutes, this does briefly in every test; a failure prints the command that shows it again.
#include <gtest/gtest.h>

#include "emulator/cluster/scenario_random.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

constexpr uint64_t kSeedsPerTest = 25;

class Seeds : public testing::TestWithParam<uint64_t> {};

TEST_P(Seeds, RandomScenariosPass) {
  RandomLimits limits;
  limits.packets = 20'000;
  for (uint64_t seed = GetParam(); seed < GetParam() + kSeedsPerTest; seed++) {
    const Scenario scenario = random_scenario(seed, limits);
    ASSERT_EQ(scenario.problem(), "") << seed;
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << "seed " << seed << ": " << describe(scenario) << "\n"
                           << failures(report) << "again: peal-sim replay --seed " << seed
                           << " --packets " << limits.packets;
  }
}

// (The first hundreds are those of the tests random_*.)
INSTANTIATE_TEST_SUITE_P(From, Seeds,
                         testing::Range(uint64_t{1001}, uint64_t{1001} + 8 * kSeedsPerTest,
                                        kSeedsPerTest),
                         testing::PrintToStringParamName());

// The same workload at every size from 1 to 20, under every kind of fault at once.
TEST(EverySize, AllFaultsAtOnce) {
  for (uint32_t cards = 1; cards <= 20; cards++) {
    Scenario scenario = plan(cards, kBarrier, 1);
    scenario.seed = cards;
    for (const uint32_t bytes : {0u, 1u, 63u, 1000u, 9999u})
      for (const bool in_place : {false, true}) {
        scenario.groups[0].operations.push_back(broadcast(bytes, in_place));
        scenario.groups[0].operations.push_back(doubling(bytes, in_place));
        scenario.groups[0].operations.push_back(alltoall(bytes, in_place));
        scenario.groups[0].operations.push_back(direct(bytes, in_place));
        scenario.groups[0].operations.push_back(direct_allgather(bytes, in_place));
        scenario.groups[0].operations.push_back(ring(bytes, in_place));
        scenario.groups[0].operations.push_back(allgatherv(bytes, in_place));
        scenario.groups[0].operations.push_back(alltoallv(bytes, in_place));
        scenario.groups[0].operations.push_back(stepped_alltoallv(bytes, in_place));
      }
    for (const uint32_t bytes : {0u, 1u, 9999u, 300'000u})
      scenario.groups[0].operations.push_back(root_broadcast(bytes, bytes % cards));
    scenario.groups[0].depth = 3;
    scenario.faults.loss = 0.05;
    scenario.faults.duplicate = 0.05;
    scenario.faults.reorder = 0.1;
    scenario.faults.delay = 0.02;
    scenario.faults.corrupt = 0.03;
    scenario.faults.until_ns = kSecond;
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << cards << " cards\n" << failures(report);
  }
}

}  // namespace
}  // namespace peal::sim
