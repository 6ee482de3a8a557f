// SPDX-License-Identifier: BSD-2-Clause
// Groups that only broadcast, whose epochs end by signals along the tree of a root: roots that
// change, ranks that mean other ones than the others, memory that fails, ranks that are late, and
// losses. However trees differ, all goes on, and nothing is reused too soon.
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <random>

#include "peal_config.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

constexpr uint32_t kEpoch = CONFIG_CHANNELS / 2;

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  uint32_t below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  bool one_of(uint32_t count) { return below(count) == 0; }

 private:
  std::mt19937_64 random_;
};

// Root of an operation: one, another in the second half, any, by epochs, or each in turn.
uint32_t root_of(Draw& draw, uint32_t style, uint32_t ranks, uint32_t first, uint32_t index) {
  const uint32_t next = (first + 1) % ranks;
  switch (style) {
    case 0:
      return first;
    case 1:
      return index % kEpoch == kEpoch - 1 ? next : first;
    case 2:
      return draw.below(ranks);
    case 3:
      return index / kEpoch % 2 == 0 ? first : next;
    default:
      return (first + index) % ranks;
  }
}

Scenario draw_scenario(uint64_t seed) {
  Draw draw(seed);
  const uint32_t ranks = 2 + draw.below(16);
  const uint32_t count = kEpoch + draw.below(6 * kEpoch);
  Scenario scenario = plan(ranks, kBarrier, count, 1 + draw.below(CONFIG_CHANNELS));
  scenario.seed = seed;
  GroupPlan& group = scenario.groups[0];
  const uint32_t style = draw.below(5);
  const uint32_t first = draw.below(ranks);
  const uint32_t bytes = draw.one_of(4) ? 20'000 : 64;
  for (uint32_t i = 0; i < count; i++) {
    group.operations[i] = root_broadcast(bytes, root_of(draw, style, ranks, first, i));
  }
  // Most likely of the last operation of an epoch, which says whose tree it has.
  uint32_t index = draw.below(count);
  if (!draw.one_of(3)) index = std::min(index / kEpoch * kEpoch + kEpoch - 1, count - 1);
  if (!draw.one_of(3)) {
    const uint32_t meant = (group.operations[index].root + 1 + draw.below(ranks - 1)) % ranks;
    group.disagreements.push_back({draw.below(ranks), index, root_broadcast(bytes, meant)});
  }
  if (draw.one_of(2)) {
    const TimeNs at_ns = draw.below(400) * kMicrosecond;
    scenario.accidents.push_back({Accident::Kind::kUnmap, {draw.below(ranks), 0}, at_ns, 0});
  }
  group.first_post_ns.assign(ranks, 0);
  if (draw.one_of(2)) group.first_post_ns[draw.below(ranks)] = draw.below(20'000) * kMicrosecond;
  if (draw.one_of(4)) group.think_ns = draw.below(300) * kMicrosecond;
  if (draw.one_of(2)) scenario.faults.loss = 0.01 * draw.below(20);
  if (draw.one_of(4)) scenario.faults.duplicate = 0.1;
  scenario.faults.until_ns = 100 * kMillisecond;
  return scenario;
}

TEST(Roots, WhateverTreesRanksTakeAllGoesOn) {
  uint64_t runs = 0;
  TimeNs longest_ns = 0;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    const Scenario scenario = draw_scenario(seed);
    ASSERT_EQ(scenario.problem(), "") << seed;
    const Report report = run(scenario);
    ASSERT_TRUE(report.ok) << "seed " << seed << ": " << failures(report);
    const bool perfect = scenario.faults.loss == 0 && scenario.faults.duplicate == 0;
    if (perfect) longest_ns = std::max(longest_ns, report.finished_ns);
    ++runs;
  }
  std::printf("%" PRIu64 " runs; without faults of the wire the longest took %.1f ms\n", runs,
              static_cast<double>(longest_ns) / kMillisecond);
}

}  // namespace
}  // namespace peal::sim
