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

// One rank's sixth operation of thirteen is another one; from the second seed on packets are lost,
// and a rank is late.
Scenario disagreeing(const Case& each, uint32_t ranks, uint32_t rank, uint64_t seed) {
  Scenario scenario = plan(ranks, each.agreed, 12, 1 + static_cast<uint32_t>(seed));
  scenario.seed = seed;
  scenario.groups[0].disagreements.push_back({rank, 5, each.other});
  if (seed > 1) scenario.faults.loss = 0.1;
  scenario.faults.until_ns = kSecond;
  if (seed == 3) scenario.groups[0].first_post_ns[ranks - 1] = 5 * kMillisecond;
  if (seed == 4) scenario.groups[0].first_post_ns[0] = 5 * kMillisecond;
  return scenario;
}

class Mismatch : public testing::TestWithParam<Case> {};

TEST_P(Mismatch, EveryRankIsToldAndTheGroupGoesOn) {
  for (const uint32_t ranks : {2u, 3u, 8u, 11u}) {
    for (uint64_t seed = 1; seed <= 3; seed++) {
      const Report report = run(disagreeing(GetParam(), ranks, ranks / 2, seed));
      EXPECT_TRUE(report.ok) << ranks << " ranks, seed " << seed << "\n" << failures(report);
      EXPECT_EQ(report.mismatched, ranks);
      EXPECT_EQ(report.completed, uint64_t{ranks} * 12);
    }
  }
}

// Nobody but those who need the other's data hears of it in a broadcast: whoever posts what the
// root does may have it, whoever does not must be told, and nobody waits for ever.
class RootMismatch : public testing::TestWithParam<Case> {};

TEST_P(RootMismatch, WhoDisagreesWithTheRootIsTold) {
  for (const uint32_t ranks : {2u, 3u, 8u, 11u}) {
    for (const uint32_t rank : {0u, 1u, ranks - 1}) {
      for (uint64_t seed = 1; seed <= 4; seed++) {
        const Report report = run(disagreeing(GetParam(), ranks, rank, seed));
        EXPECT_TRUE(report.ok) << ranks << " ranks, other " << rank << ", seed " << seed << "\n"
                               << failures(report);
        // Two that are both the root need nothing of each other.
        const bool two_roots = ranks == 2 && GetParam().other.root == rank &&
                               GetParam().agreed.operation == GetParam().other.operation &&
                               GetParam().agreed.root != rank;
        EXPECT_GE(report.mismatched, two_roots ? 0u : 1u);
        EXPECT_EQ(report.completed + report.mismatched, uint64_t{ranks} * 13);
      }
    }
  }
}

// A rank whose tables say other lengths than the others' is told, or its partners are: whoever has
// got what its own table says may be over. Nobody waits for ever, and the group goes on.
class LengthMismatch : public testing::TestWithParam<Case> {};

TEST_P(LengthMismatch, NobodyWaitsForEver) {
  for (const uint32_t ranks : {2u, 3u, 8u, 11u}) {
    for (uint64_t seed = 1; seed <= 4; seed++) {
      const Report report = run(disagreeing(GetParam(), ranks, ranks / 2, seed));
      EXPECT_TRUE(report.ok) << ranks << " ranks, seed " << seed << "\n" << failures(report);
      EXPECT_GE(report.mismatched, 1u);
      EXPECT_EQ(report.completed + report.mismatched, uint64_t{ranks} * 13);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, LengthMismatch,
    testing::Values(Case{"direct", alltoallv(1000), alltoallv(999)},
                    Case{"steps", stepped_alltoallv(1000), stepped_alltoallv(999)},
                    Case{"steps_or_directly", stepped_alltoallv(1000), stepped_alltoallv(20'000)},
                    Case{"directly_or_steps", stepped_alltoallv(20'000), stepped_alltoallv(1000)}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Pairs, RootMismatch,
    testing::Values(Case{"root", root_broadcast(100, 0), root_broadcast(100, 1)},
                    Case{"operation", root_broadcast(1000, 0), kBarrier},
                    Case{"operation_the_other_way", kBarrier, root_broadcast(1000, 0)},
                    Case{"kind", root_broadcast(1000, 1), broadcast(1000)},
                    Case{"length", root_broadcast(1000, 0), root_broadcast(1001, 0)},
                    Case{"length_in_pieces", root_broadcast(900'000, 1),
                         root_broadcast(800'000, 1)},
                    Case{"empty", root_broadcast(0, 0), root_broadcast(1, 0)}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Pairs, Mismatch,
    testing::Values(Case{"operation", kBarrier, broadcast(100)},
                    Case{"operation_the_other_way", doubling(100), kBarrier},
                    Case{"algorithm", broadcast(1000), doubling(1000)},
                    Case{"length", broadcast(1000), broadcast(1001)},
                    Case{"length_in_pieces", broadcast(50'000), broadcast(500)},
                    Case{"doubling_length", doubling(50'000), doubling(60'000)},
                    Case{"empty", broadcast(0), broadcast(1)},
                    Case{"alltoall_length", alltoall(1000), alltoall(1001)},
                    Case{"alltoall_kind", alltoall(1000, true), doubling(1000)},
                    Case{"alltoall_ways", alltoall(1000), direct(1000)},
                    Case{"allgather_ways", direct_allgather(1000), broadcast(1000)},
                    Case{"direct_kind", direct_allgather(1000), direct(1000)},
                    Case{"ring_length", ring(1000), ring(999)},
                    Case{"ring_ways", ring(1000), doubling(1000)},
                    Case{"parts", allgatherv(1000), alltoallv(1000)},
                    Case{"parts_or_not", alltoallv(1000), direct(1000)},
                    Case{"parts_ways", stepped_alltoallv(1000), alltoallv(1000)}),
    name_of);

}  // namespace
}  // namespace peal::sim
