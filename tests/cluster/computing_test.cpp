// SPDX-License-Identifier: BSD-2-Clause
// Ranks that were fast begin to compute, as in tools/examples/matmul: what a repair costs in
// questions where patience has learned that everybody is quick. Each row prints what there is.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>

#include "emulator/common/random.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

// Ten barriers, a broadcast, an all-to-all and an allgather, one after the other; then eight
// allgathers, before each of which every rank computes.
Scenario product(uint32_t bytes, TimeNs think_ns, uint64_t seed) {
  Scenario scenario = plan(8, kBarrier, 10, 8);
  scenario.seed = seed;
  scenario.faults.loss = 0.01;
  GroupPlan& group = scenario.groups[0];
  group.operations.push_back(root_broadcast(32, 0));
  group.operations.push_back(direct(32'768));
  group.operations.push_back(direct_allgather(262'144, true));
  group.prompt = static_cast<uint32_t>(group.operations.size());
  group.operations.insert(group.operations.end(), 8, broadcast(bytes));
  group.think_ns = think_ns;
  emulator::Random random(seed);
  for (TimeNs& first_ns : group.first_post_ns) first_ns = random.below(kMillisecond);
  return scenario;
}

struct Case {
  const char* name;
  uint32_t bytes;
  TimeNs think_ns;
  double most;  // NACKs for a repair
};

class Computing : public testing::TestWithParam<Case> {};

std::string name_of(const testing::TestParamInfo<Case>& each) { return each.param.name; }

TEST_P(Computing, ARepairTakesFewQuestions) {
  const Case& each = GetParam();
  uint64_t nacks = 0;
  uint64_t repairs = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    const Report report = run(product(each.bytes, each.think_ns, seed));
    ASSERT_TRUE(report.ok) << failures(report);
    nacks += report.packets[PEAL_PACKET_NACK];
    repairs += report.repairs;
  }
  const double questions = static_cast<double>(nacks) / static_cast<double>(repairs);
  std::printf("%u bytes, up to %" PRIu64 " ms late: %.2f NACKs for a repair\n", each.bytes,
              each.think_ns / kMillisecond, questions);
  EXPECT_LE(questions, each.most);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Computing,
                         testing::Values(Case{"32k_3_ms", 32'768, 3 * kMillisecond, 2.6},
                                         Case{"128k_3_ms", 131'072, 3 * kMillisecond, 1.3},
                                         Case{"32k_12_ms", 32'768, 12 * kMillisecond, 2.7},
                                         Case{"128k_12_ms", 131'072, 12 * kMillisecond, 1.3}),
                         name_of);

}  // namespace
}  // namespace peal::sim
