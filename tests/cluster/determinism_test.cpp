// SPDX-License-Identifier: BSD-2-Clause
// The same seed gives the same run, to the last packet; another seed gives another.
#include <gtest/gtest.h>

#include "emulator/cluster/scenario_random.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

TEST(Determinism, SameSeedSameTrace) {
  RandomLimits limits;
  limits.packets = 10'000;
  for (uint64_t seed = 500; seed < 515; seed++) {
    const Report report = run_twice(random_scenario(seed, limits));
    EXPECT_TRUE(report.ok) << "peal-sim replay --seed " << seed << "\n" << failures(report);
  }
}

TEST(Determinism, AnotherSeedAnotherTrace) {
  Scenario scenario = plan(6, broadcast(2000), 10);
  scenario.faults.loss = 0.1;
  const Report first = run(scenario);
  scenario.seed = 2;
  const Report second = run(scenario);
  EXPECT_NE(first.trace_hash, second.trace_hash);
}

// A scenario is a function of its seed: what soak prints can be replayed.
TEST(Determinism, RandomScenarioIsAFunctionOfItsSeed) {
  for (uint64_t seed = 1; seed < 50; seed++)
    EXPECT_EQ(describe(random_scenario(seed, {})), describe(random_scenario(seed, {})));
  EXPECT_NE(describe(random_scenario(1, {})), describe(random_scenario(2, {})));
}

}  // namespace
}  // namespace peal::sim
