// SPDX-License-Identifier: BSD-2-Clause
// Bruck's all-to-all among a few real cards: how many packets it takes, and that it is not taken
// for another exchange in steps.
#include "firmware/base/ranks.h"
#include "tests/unit/firmware/collective/alltoall/alltoall_cluster.h"

namespace peal::test {
namespace {

// Small blocks: a packet a step.
TEST(BruckCluster, ALogarithmOfPacketsARank) {
  for (const uint32_t ranks : {2u, 3u, 5u, 8u, 13u}) {
    AlltoallCluster cluster(PEAL_ALGORITHM_BRUCK, ranks);
    cluster.post_all(0, 16);
    cluster.settle();
    expect_all(cluster, 1, "OK");
    EXPECT_EQ(cluster.trace().size(), ranks * ceil_log2(ranks));
    EXPECT_EQ(cluster.sent(PEAL_PACKET_DATA, PEAL_OPERATION_ALLTOALL), cluster.trace().size());
    EXPECT_FALSE(cluster.run_until([] { return false; }, 10'000'000'000));
    EXPECT_EQ(cluster.trace().size(), ranks * ceil_log2(ranks));
  }
}

TEST(BruckCluster, DisagreementAboutTheOperationIsToldToAll) {
  AlltoallCluster cluster(PEAL_ALGORITHM_BRUCK, 4);
  cluster.post_all_but(2, 64);
  cluster.allgather(2, 0, PEAL_ALGORITHM_RECURSIVE_DOUBLING, 64);
  ASSERT_TRUE(cluster.run_until_completions(1));
  expect_all(cluster, 1, "MISMATCH");
}

}  // namespace
}  // namespace peal::test
