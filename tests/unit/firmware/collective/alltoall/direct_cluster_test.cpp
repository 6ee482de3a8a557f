// SPDX-License-Identifier: BSD-2-Clause
// Direct all-to-all among a few real cards: how many packets it takes, what a lost block costs, and
// who finds out that a rank is dead, be it a peer or not.
#include "tests/unit/firmware/collective/alltoall/alltoall_cluster.h"

namespace peal::test {
namespace {

class DirectCluster : public AlltoallCluster {
 public:
  explicit DirectCluster(uint32_t ranks) : AlltoallCluster(PEAL_ALGORITHM_DIRECT, ranks) {}
};

TEST(DirectPackets, OneForEachBlockAndNoneMore) {
  for (const uint32_t ranks : {2u, 6u, 8u, 13u}) {
    DirectCluster cluster(ranks);
    cluster.post_all(0, 16);
    cluster.settle();
    expect_all(cluster, 1, "OK");
    EXPECT_EQ(cluster.trace().size(), size_t{ranks} * (ranks - 1));
    EXPECT_FALSE(cluster.run_until([] { return false; }, 10'000'000'000));
    EXPECT_EQ(cluster.trace().size(), size_t{ranks} * (ranks - 1));
  }
}

// The block of a rank that is no peer is lost: nothing shows it but silence.
TEST(DirectPackets, OneLostBlockIsOneQuestionAndOneRepair) {
  for (const uint32_t from : {2u, 3u}) {  // of rank 0: a peer, and none
    DirectCluster cluster(8);
    bool lost = false;
    cluster.fate = [&](const Frame& frame) -> uint32_t {
      const bool it = !lost && frame.header.sender == from && cluster.is_to(frame, 0) &&
                      frame.header.type == PEAL_PACKET_DATA;
      lost |= it;
      return it ? 0 : 1;
    };
    cluster.post_all(0, 1000);
    ASSERT_TRUE(cluster.run_until_completions(1));
    cluster.expect_right(0, 1000);
    EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_NACK), 1u);
    EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_REPAIR), 1u);
  }
}

// Its peers have its blocks, and want nothing of it: whoever lacks one finds out itself.
TEST(DirectEnds, ADeadRankThatNoPeerWaitsForIsNamedInTime) {
  DirectCluster cluster(8);
  cluster.fate = [&](const Frame& frame) -> uint32_t {
    return frame.header.sender == 4 && cluster.is_to(frame, 1) ? 0 : 1;
  };
  cluster.post_all(0, 64);
  cluster.settle();
  for (uint32_t rank = 0; rank < 8; rank++)
    ASSERT_EQ(cluster.completions(rank).size(), rank == 1 ? 0u : 1u) << rank;
  cluster.silence(4);
  ASSERT_TRUE(cluster.run_until([&] { return cluster.completions(1).size() == 1; },
                                2 * default_timeouts().dead_ns));
  cluster.expect_dead(4, {1});
}

}  // namespace
}  // namespace peal::test
