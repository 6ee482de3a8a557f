// SPDX-License-Identifier: BSD-2-Clause
// Ranks that disagree about an operation are told, every one of them, and the group goes on.
#include <gtest/gtest.h>

#include <string>

#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

struct Case {
  const char* name;
  OperationPlan agreed;
  OperationPlan other;
};

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

class Mismatch : public testing::TestWithParam<Case> {};

TEST_P(Mismatch, EveryRankIsToldAndTheGroupGoesOn) {
  for (const uint32_t ranks : {2u, 3u, 8u, 11u}) {
    for (uint64_t seed = 1; seed <= 3; seed++) {
      Scenario scenario = plan(ranks, GetParam().agreed, 12, 1 + static_cast<uint32_t>(seed));
      scenario.seed = seed;
      scenario.groups[0].disagreements.push_back({ranks / 2, 5, GetParam().other});
      if (seed > 1) scenario.faults.loss = 0.1;
      scenario.faults.until_ns = kSecond;
      if (seed == 3) scenario.groups[0].first_post_ns[ranks - 1] = 5 * kMillisecond;
      const Report report = run(scenario);
      EXPECT_TRUE(report.ok) << ranks << " ranks, seed " << seed << "\n" << failures(report);
      EXPECT_EQ(report.mismatched, ranks);
      EXPECT_EQ(report.completed, uint64_t{ranks} * 12);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, Mismatch,
    testing::Values(Case{"operation", kBarrier, broadcast(100)},
                    Case{"operation_the_other_way", doubling(100), kBarrier},
                    Case{"algorithm", broadcast(1000), doubling(1000)},
                    Case{"length", broadcast(1000), broadcast(1001)},
                    Case{"length_in_pieces", broadcast(50'000), broadcast(500)},
                    Case{"doubling_length", doubling(50'000), doubling(60'000)},
                    Case{"empty", broadcast(0), broadcast(1)}),
    name_of);

}  // namespace
}  // namespace peal::sim
