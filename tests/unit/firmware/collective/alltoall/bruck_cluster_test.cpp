// SPDX-License-Identifier: BSD-2-Clause
// All-to-all among a few real cards: how many packets it takes, that every size and length comes
// out right, in place or not, on a good wire and on a bad one, and how it ends when ranks disagree
// or die.
#include "firmware/base/ranks.h"
#include "tests/unit/cluster_fixture.h"

namespace peal::test {
namespace {

void expect_right(Cluster& cluster, uint64_t sequence, size_t block) {
  for (uint32_t rank = 0; rank < cluster.ranks(); rank++)
    ASSERT_EQ(cluster.check_alltoall(rank, sequence, block), "") << "blocks of " << block;
}

std::vector<size_t> lengths() {
  const size_t mtu = CONFIG_MTU_BYTES;
  return {0, 1, 8, 63, 64, 65, 1000, mtu - 1, mtu, mtu + 1, 3 * mtu + 17, 9 * mtu + 1};
}

class Alltoall : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Alltoall, ::testing::Values(1, 2, 3, 4, 5, 7, 8, 13, 16));

TEST_P(Alltoall, IsRightForEveryLengthAndBuffersAreFreeAtOnce) {
  Cluster cluster(GetParam());
  uint64_t sequence = 0;
  for (const size_t block : lengths()) {
    for (const bool in_place : {false, true}) {
      for (uint32_t rank = 0; rank < cluster.ranks(); rank++)
        cluster.alltoall(rank, sequence, block, in_place);
      ASSERT_TRUE(cluster.run_until_completions(sequence + 1)) << block;
      expect_right(cluster, sequence++, block);
    }
  }
  expect_all(cluster, sequence, "OK");
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_NACK), 0u);
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_REPAIR), 0u);
}

TEST_P(Alltoall, IsRightWhenRanksComeOneAfterTheOther) {
  for (const size_t block : {size_t{40}, size_t{3 * CONFIG_MTU_BYTES}}) {
    Cluster cluster(GetParam());
    for (uint32_t rank = cluster.ranks(); rank-- > 0;) {
      cluster.alltoall(rank, 0, block, block > 40);
      cluster.settle();
    }
    ASSERT_TRUE(cluster.run_until_completions(1));
    expect_all(cluster, 1, "OK");
    expect_right(cluster, 0, block);
  }
}

// K deep and mixed with barriers; a tenth of the frames lost, a tenth doubled; send buffers
// overwritten at completion.
TEST_P(Alltoall, SurvivesLossAndRepetition) {
  const uint64_t operations = 2 * CONFIG_CHANNELS;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    Cluster cluster(GetParam());
    Random random(seed);
    cluster.fate = bad_wire(random);
    std::vector<size_t> block(operations);
    for (auto& length : block) {
      length = random.below(2) == 0 ? random.below(200) : random.below(3 * CONFIG_MTU_BYTES);
    }
    const auto is_barrier = [](uint64_t sequence) { return sequence % 5 == 2; };
    for (uint64_t sequence = 0; sequence < operations; sequence++) {
      for (uint32_t rank = 0; rank < cluster.ranks(); rank++) {
        if (is_barrier(sequence)) {
          cluster.barrier(rank, sequence);
        } else {
          cluster.alltoall(rank, sequence, block[sequence], sequence % 2 == 0);
        }
      }
      if (sequence + 1 < CONFIG_CHANNELS) continue;
      const uint64_t done = sequence + 2 - CONFIG_CHANNELS;
      ASSERT_TRUE(cluster.run_until_completions(done)) << "seed " << seed << " sequence " << done;
    }
    ASSERT_TRUE(cluster.run_until_completions(operations)) << "seed " << seed;
    expect_all(cluster, operations, "OK");
    for (uint64_t sequence = 0; sequence < operations; sequence++) {
      if (!is_barrier(sequence)) expect_right(cluster, sequence, block[sequence]);
    }
    EXPECT_EQ(cluster.total(PEAL_COUNTER_PEERS_DEAD), 0u);
  }
}

// Small blocks: a packet a step.
TEST(AlltoallPackets, ALogarithmOfPacketsARank) {
  for (const uint32_t ranks : {2u, 3u, 5u, 8u, 13u}) {
    Cluster cluster(ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) cluster.alltoall(rank, 0, 16);
    cluster.settle();
    expect_all(cluster, 1, "OK");
    EXPECT_EQ(cluster.trace().size(), ranks * ceil_log2(ranks));
    EXPECT_EQ(cluster.sent(PEAL_PACKET_DATA, PEAL_OPERATION_ALLTOALL), cluster.trace().size());
    EXPECT_FALSE(cluster.run_until([] { return false; }, 10'000'000'000));
    EXPECT_EQ(cluster.trace().size(), ranks * ceil_log2(ranks));
  }
}

TEST(AlltoallPackets, FewPacketBuffersAreBackPressureOnly) {
  BenchOptions options;
  options.packet_buffers = 8;
  Cluster cluster(8, options);
  for (uint64_t sequence = 0; sequence < 3; sequence++) {
    for (uint32_t rank = 0; rank < 8; rank++) cluster.alltoall(rank, sequence, 3000);
  }
  ASSERT_TRUE(cluster.run_until_completions(3));
  expect_all(cluster, 3, "OK");
  for (uint64_t sequence = 0; sequence < 3; sequence++) expect_right(cluster, sequence, 3000);
  EXPECT_GT(cluster.total(PEAL_COUNTER_NO_PACKET), 0u);
}

TEST(AlltoallEnds, DisagreementAboutTheLengthIsToldToAll) {
  Cluster cluster(5);
  for (uint32_t rank = 0; rank < 5; rank++) cluster.alltoall(rank, 0, rank == 3 ? 72 : 64);
  ASSERT_TRUE(cluster.run_until_completions(1));
  expect_all(cluster, 1, "MISMATCH");
  for (uint32_t rank = 0; rank < 5; rank++) cluster.alltoall(rank, 1, 64);
  ASSERT_TRUE(cluster.run_until_completions(2));
  expect_right(cluster, 1, 64);
}

TEST(AlltoallEnds, DisagreementAboutTheOperationIsToldToAll) {
  Cluster cluster(4);
  for (uint32_t rank = 0; rank < 4; rank++) {
    if (rank == 2) {
      cluster.allgather(rank, 0, PEAL_ALGORITHM_RECURSIVE_DOUBLING, 64);
    } else {
      cluster.alltoall(rank, 0, 64);
    }
  }
  ASSERT_TRUE(cluster.run_until_completions(1));
  expect_all(cluster, 1, "MISMATCH");
}

TEST(AlltoallEnds, ASilentRankIsNamedInTime) {
  Cluster cluster(8);
  for (uint32_t rank = 0; rank < 8; rank++) {
    if (rank != 3) cluster.alltoall(rank, 0, 64);
  }
  cluster.silence(3);
  ASSERT_TRUE(cluster.run_until_completions(1, 2 * default_timeouts().dead_ns));
  for (uint32_t rank = 0; rank < 8; rank++) {
    if (rank == 3) continue;
    ASSERT_EQ(cluster.completions(rank).size(), 1u);
    EXPECT_EQ(status_text(cluster.completions(rank)[0].status), "PEER_DEAD") << "rank " << rank;
    EXPECT_EQ(cluster.completions(rank)[0].failed_rank, 3u) << "rank " << rank;
  }
  EXPECT_EQ(cluster.problems(), "");
}

TEST(AlltoallEnds, LatenessIsNotDeath) {
  Cluster cluster(4);
  for (uint32_t rank = 0; rank < 3; rank++) cluster.alltoall(rank, 0, 64);
  EXPECT_FALSE(cluster.run_until_completions(1, 20 * default_timeouts().dead_ns));
  EXPECT_EQ(cluster.total(PEAL_COUNTER_PEERS_DEAD), 0u);
  cluster.alltoall(3, 0, 64);
  ASSERT_TRUE(cluster.run_until_completions(1));
  expect_all(cluster, 1, "OK");
  expect_right(cluster, 0, 64);
}

}  // namespace
}  // namespace peal::test
