// SPDX-License-Identifier: BSD-2-Clause
// A rank may be seconds late: nobody dies of it, nothing is repaired, and the others ask ever more
// slowly.
#include <gtest/gtest.h>

#include <string>

#include "tests/cluster/operation_case.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

using Case = OperationCase;
class Late : public testing::TestWithParam<Case> {};

TEST_P(Late, SecondsCostAQuestionPerIntervalAndMember) {
  constexpr TimeNs kLateNs = 6 * kSecond;  // three times the silence that would be death
  for (const uint32_t ranks : {2u, 7u, 16u}) {
    Scenario scenario = plan(ranks, GetParam().operation, 3);
    scenario.groups[0].first_post_ns[1] = kLateNs;
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << failures(report);
    EXPECT_EQ(report.repairs, 0u);
    EXPECT_EQ(report.completed, uint64_t{ranks} * 4);
    const uint64_t pieces = 2;  // that are open at once
    const uint64_t questions = ranks * pieces * (16 + kLateNs / scenario.timeouts.nack_max_ns);
    EXPECT_LE(report.packets[PEAL_PACKET_NACK], questions);
    EXPECT_LE(report.packets[PEAL_PACKET_NOT_YET], questions);
    EXPECT_LE(report.finished_ns, kLateNs + 100 * kMillisecond);
  }
}

TEST_P(Late, EarlyDataWaitsInTheChannels) {
  // Everybody else posts as deep as possible; the late one finds all its data there.
  Scenario scenario = plan(5, GetParam().operation, 30, device().parked_max);
  scenario.groups[0].first_post_ns[4] = kSecond;
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_EQ(report.repairs, 0u);
  if (GetParam().operation.block_bytes > 0) {
    EXPECT_GT(counted(report, "early_data"), 0u);
  }
}

TEST_P(Late, EveryRankLateInTurn) {
  for (uint32_t rank = 0; rank < 6; rank++) {
    Scenario scenario = plan(6, GetParam().operation, 5, 2);
    scenario.groups[0].first_post_ns[rank] = 30 * kMillisecond;
    scenario.faults.loss = 0.1;
    scenario.faults.until_ns = 500 * kMillisecond;
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << "late rank " << rank << "\n" << failures(report);
  }
}

// A member that is not connected yet is late as well, as long as its card lives.
TEST_P(Late, ConnectingLate) {
  Scenario scenario = plan(6, GetParam().operation, 3);
  scenario.groups[0].connect_ns[2] = scenario.timeouts.dead_ns / 2;
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, Late,
    testing::Values(
        Case{"barrier", kBarrier}, Case{"broadcast_empty", broadcast(0)},
        Case{"broadcast_small", broadcast(64)}, Case{"broadcast_large", broadcast(30'000)},
        Case{"doubling_empty", doubling(0)}, Case{"doubling_small", doubling(64)},
        Case{"doubling_large", doubling(30'000)}, Case{"doubling_in_place", doubling(30'000, true)},
        Case{"broadcast_in_place", broadcast(30'000, true)},
        Case{"root_broadcast_empty", root_broadcast(0, 1)},
        Case{"root_broadcast_small", root_broadcast(64, 0)},
        Case{"root_broadcast_large", root_broadcast(30'000, 1)},
        Case{"alltoall_small", alltoall(64)}, Case{"alltoall_large", alltoall(30'000)},
        Case{"alltoall_in_place", alltoall(3000, true)}, Case{"direct", direct(3000)},
        Case{"direct_in_place", direct(30'000, true)},
        Case{"direct_allgather", direct_allgather(3000)},
        Case{"direct_allgather_in_place", direct_allgather(30'000, true)}, Case{"ring", ring(3000)},
        Case{"ring_in_place", ring(30'000, true)}, Case{"allgatherv", allgatherv(3000)},
        Case{"allgatherv_in_place", allgatherv(30'000, true)}, Case{"alltoallv", alltoallv(3000)},
        Case{"alltoallv_in_place", alltoallv(30'000, true)},
        Case{"stepped_alltoallv", stepped_alltoallv(3000)},
        Case{"stepped_alltoallv_in_place", stepped_alltoallv(30'000, true)}),
    name_of_case);

}  // namespace
}  // namespace peal::sim
