// SPDX-License-Identifier: BSD-2-Clause
// What hosts with processors of their own can compute while an operation runs: nearly all of its
// time, for nobody but the cards works at it. A row says how much, at least.
#include "emulator/cluster/overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/cluster/chosen.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

struct Case {
  const char* name;
  OperationPlan operation;
  double late;      // in times of the operation
  double least[3];  // percent, over 8, 32, 64 cards; 0: not over so many
};

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

class OverlapOf : public testing::TestWithParam<Case> {};

void hold(const OverlapPlan& plan, double least) {
  Scenario scenario;
  scenario.check = plan.cards == 8;  // large ones cost seconds
  const Overlap overlap = measure_overlap(scenario, plan);
  EXPECT_TRUE(overlap.comm.ok && overlap.both.ok)
      << failures(overlap.comm) << failures(overlap.both);
  EXPECT_EQ(overlap.both.latencies_ns.size(), plan.operations);
  std::printf("%s, %u cards, late by up to %.1f: %.2f %%\n", operation_text(plan.operation).c_str(),
              plan.cards, plan.late, 100 * overlap.share);
  EXPECT_GE(100 * overlap.share, least) << plan.cards << " cards, late by up to " << plan.late;
}

TEST_P(OverlapOf, IsAtLeast) {
  const double* least = GetParam().least;
  for (const uint32_t cards : {8u, 32u, 64u}) {
    OverlapPlan plan;
    plan.operation = GetParam().operation;
    plan.cards = cards;
    plan.late = GetParam().late;
    // How late ranks are is drawn anew each time.
    const uint32_t late_of_64 = plan.operation.block_bytes < 65'536 ? 6 : 3;
    plan.operations = cards == 8 ? 20 : cards == 32 ? 5 : plan.late > 0 ? late_of_64 : 2;
    if (*least > 0) hold(plan, *least);
    least++;
  }
}

// What libpeal chooses when nobody names an algorithm, and what is wanted of it.
struct Wanted {
  const char* name;
  peal_operation operation;
  uint32_t bytes;
  double least;
  uint32_t cards_most = 64;  // more cost seconds
};

class OverlapOfChosen : public testing::TestWithParam<Wanted> {};

std::string name_of_wanted(const testing::TestParamInfo<Wanted>& info) { return info.param.name; }

TEST_P(OverlapOfChosen, IsAtLeast) {
  const Wanted& wanted = GetParam();
  for (const uint32_t cards : {8u, 32u, 64u}) {
    if (cards > wanted.cards_most) continue;
    for (const double late : {0.0, 0.5, 2.0}) {
      OverlapPlan plan;
      plan.operation = chosen(wanted.operation, cards, wanted.bytes);
      plan.cards = cards;
      plan.late = late;
      // Where nobody is late, one is like another.
      const uint32_t of_eight = wanted.bytes < 1'000'000 ? 20 : 5;
      plan.operations = cards == 8 ? of_eight : late == 0 ? 1 : cards == 32 ? 4 : 2;
      hold(plan, wanted.least);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, OverlapOfChosen,
    testing::Values(Wanted{"allgather_8k", PEAL_OPERATION_ALLGATHER, 8192, 95},
                    Wanted{"allgather_64k", PEAL_OPERATION_ALLGATHER, 65'536, 99},
                    Wanted{"allgather_20k", PEAL_OPERATION_ALLGATHER, 20'000, 95, 8},
                    Wanted{"allgather_256k", PEAL_OPERATION_ALLGATHER, 262'144, 99, 8},
                    Wanted{"allgather_1m", PEAL_OPERATION_ALLGATHER, 1'048'576, 99, 8},
                    Wanted{"alltoall_8k", PEAL_OPERATION_ALLTOALL, 8192, 95},
                    Wanted{"alltoall_64k", PEAL_OPERATION_ALLTOALL, 65'536, 99},
                    Wanted{"alltoall_20k", PEAL_OPERATION_ALLTOALL, 20'000, 95, 8},
                    Wanted{"alltoall_256k", PEAL_OPERATION_ALLTOALL, 262'144, 99, 8},
                    Wanted{"alltoall_1m", PEAL_OPERATION_ALLTOALL, 1'048'576, 99, 8}),
    name_of_wanted);

// What it does not choose there, and the forms with parts.
INSTANTIATE_TEST_SUITE_P(
    InTime, OverlapOf,
    testing::Values(Case{"broadcast_64k", broadcast(65'536), 0, {99, 0, 0}},
                    Case{"doubling_8k", doubling(8192), 0, {95, 95, 95}},
                    Case{"doubling_64k", doubling(65'536), 0, {99, 99, 99}},
                    Case{"alltoall_8k", alltoall(8192), 0, {95, 95, 95}},
                    Case{"alltoall_64k", alltoall(65'536), 0, {99, 99, 0}},
                    Case{"direct_allgather_8k", direct_allgather(8192), 0, {95, 95, 95}},
                    Case{"direct_allgather_64k", direct_allgather(65'536), 0, {0, 99, 0}},
                    Case{"ring_8k", ring(8192), 0, {95, 95, 95}},
                    Case{"ring_64k", ring(65'536), 0, {99, 99, 99}},
                    Case{"allgatherv_64k", allgatherv(65'536), 0, {99, 99, 99}},
                    Case{"alltoallv_64k", alltoallv(65'536), 0, {99, 99, 99}}),
    name_of);

// What came early waits in its packets for a late host, or crosses the bus twice more: recursive
// doubling and Bruck's order work on images in the channel (95 and 99 are wanted, as above).
INSTANTIATE_TEST_SUITE_P(
    Late, OverlapOf,
    testing::Values(Case{"broadcast_64k_half", broadcast(65'536), 0.5, {99, 0, 0}},
                    Case{"broadcast_64k_twice", broadcast(65'536), 2, {99, 0, 0}},
                    Case{"doubling_8k_half", doubling(8192), 0.5, {95, 95, 95}},
                    Case{"doubling_8k_twice", doubling(8192), 2, {95, 95, 95}},
                    Case{"doubling_64k_half", doubling(65'536), 0.5, {98.5, 99, 99}},
                    Case{"doubling_64k_twice", doubling(65'536), 2, {98.5, 99, 99}},
                    Case{"alltoall_8k_half", alltoall(8192), 0.5, {90, 94, 95}},
                    Case{"alltoall_8k_twice", alltoall(8192), 2, {92, 95, 95}},
                    Case{"alltoall_64k_half", alltoall(65'536), 0.5, {98.5, 93, 0}},
                    Case{"alltoall_64k_twice", alltoall(65'536), 2, {99, 93, 0}},
                    Case{"direct_allgather_8k_half", direct_allgather(8192), 0.5, {95, 95, 95}},
                    Case{"direct_allgather_8k_twice", direct_allgather(8192), 2, {95, 95, 95}},
                    Case{"direct_allgather_64k_half", direct_allgather(65'536), 0.5, {0, 99, 0}},
                    Case{"direct_allgather_64k_twice", direct_allgather(65'536), 2, {0, 97, 0}},
                    Case{"ring_8k_half", ring(8192), 0.5, {95, 95, 95}},
                    Case{"ring_8k_twice", ring(8192), 2, {95, 95, 95}},
                    Case{"ring_64k_half", ring(65'536), 0.5, {99, 99, 99}},
                    Case{"ring_64k_twice", ring(65'536), 2, {99, 99, 99}},
                    Case{"allgatherv_64k_half", allgatherv(65'536), 0.5, {99, 99, 0}},
                    Case{"allgatherv_64k_twice", allgatherv(65'536), 2, {99, 99, 99}},
                    Case{"alltoallv_64k_half", alltoallv(65'536), 0.5, {99, 99, 0}},
                    Case{"alltoallv_64k_twice", alltoallv(65'536), 2, {99, 99, 99}}),
    name_of);

// Work that is shorter than the operation, or longer, costs nothing.
TEST(OverlapMeasure, TheShorterOneIsSaved) {
  for (const TimeNs work_ns : {TimeNs{100}, kMillisecond}) {
    OverlapPlan plan;
    plan.operation = doubling(64);
    plan.operations = 3;
    plan.work_ns = work_ns;
    const Overlap overlap = measure_overlap({}, plan);
    EXPECT_EQ(overlap.work_ns, static_cast<double>(work_ns));
    EXPECT_EQ(overlap.both_ns, std::max(overlap.work_ns, overlap.comm_ns));
    EXPECT_EQ(overlap.share, 1);
  }
}

// Without a look at it, a post is not made before the work before it is done.
TEST(OverlapMeasure, HostsComputeBetweenTheirPosts) {
  Scenario scenario = bare_plan(4, kBarrier, 10);
  scenario.groups[0].work_ns = kMillisecond;
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_EQ(report.done_ns, std::vector<TimeNs>(10, kMillisecond));
  EXPECT_GE(report.finished_ns, 9 * kMillisecond);
  EXPECT_LT(report.finished_ns, 10 * kMillisecond);
}

}  // namespace
}  // namespace peal::sim
