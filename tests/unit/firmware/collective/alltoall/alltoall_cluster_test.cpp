// SPDX-License-Identifier: BSD-2-Clause
// All-to-all among a few real cards, by every algorithm: that every size and length comes out
// right, in place or not, on a good wire and on a bad one, with late ranks, and how it ends when
// ranks disagree or die.
#include "tests/unit/firmware/collective/alltoall/alltoall_cluster.h"

namespace peal::test {
namespace {

// How many direct exchanges the largest group of this profile may have, if that is not too many for
// a test.
constexpr uint32_t kMany = CONFIG_REMEMBERED_ADDRESSES < 40 ? CONFIG_REMEMBERED_ADDRESSES : 40;

constexpr size_t kMtu = CONFIG_MTU_BYTES;
constexpr size_t kLengths[] = {
    0, 1, 8, 63, 64, 65, 1000, kMtu - 1, kMtu, kMtu + 1, 3 * kMtu + 17, 9 * kMtu + 1};

using Case = std::tuple<peal_algorithm, uint32_t>;

std::string algorithm_name(peal_algorithm algorithm) {
  return algorithm == PEAL_ALGORITHM_BRUCK ? "Bruck" : "Direct";
}

// By algorithm and number of ranks.
class Alltoall : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static AlltoallCluster cluster() {
    return {std::get<0>(GetParam()), std::get<1>(GetParam())};
  }
};
std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return algorithm_name(std::get<0>(info.param)) + std::to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Ranks, Alltoall,
                         ::testing::Combine(::testing::Values(PEAL_ALGORITHM_BRUCK,
                                                              PEAL_ALGORITHM_DIRECT),
                                            ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 13, 16)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Many, Alltoall, ::testing::Values(Case{PEAL_ALGORITHM_DIRECT, kMany}),
                         case_name);

TEST_P(Alltoall, IsRightForEveryLengthAndBuffersAreFreeAtOnce) {
  AlltoallCluster cluster = this->cluster();
  uint64_t sequence = 0;
  const bool many = cluster.ranks() > 16;
  for (const size_t block : kLengths) {
    for (const bool in_place : {false, true}) {
      if (many && in_place == (block % 2 == 0)) continue;
      cluster.post_all(sequence, block, in_place);
      ASSERT_TRUE(cluster.run_until_completions(sequence + 1)) << block;
      cluster.expect_right(sequence++, block);
    }
  }
  expect_all(cluster, sequence, "OK");
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_NACK), 0u);
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_REPAIR), 0u);
}

TEST_P(Alltoall, IsRightWhenRanksComeOneAfterTheOther) {
  for (const size_t block : {size_t{40}, 3 * kMtu}) {
    AlltoallCluster cluster = this->cluster();
    for (uint32_t rank = cluster.ranks(); rank-- > 0;) {
      cluster.alltoall(rank, 0, block, block > 40);
      cluster.settle();
    }
    ASSERT_TRUE(cluster.run_until_completions(1));
    expect_all(cluster, 1, "OK");
    cluster.expect_right(0, block);
  }
}

// K deep and mixed with barriers; a tenth of the frames lost, a tenth doubled; send buffers
// overwritten at completion.
TEST_P(Alltoall, SurvivesLossAndRepetition) {
  const uint64_t operations = 2 * CONFIG_CHANNELS;
  const uint64_t seeds = std::get<1>(GetParam()) <= 16 ? 4 : 1;
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    AlltoallCluster cluster = this->cluster();
    Random random(seed);
    cluster.fate = bad_wire(random);
    std::vector<size_t> block(operations);
    for (auto& length : block) {
      length = random.below(2) == 0 ? random.below(200) : random.below(3 * CONFIG_MTU_BYTES);
    }
    const auto is_barrier = [](uint64_t sequence) { return sequence % 5 == 2; };
    SCOPED_TRACE("seed " + std::to_string(seed));
    run_operations(cluster, operations, [&](uint32_t rank, uint64_t sequence) {
      if (is_barrier(sequence)) return cluster.barrier(rank, sequence);
      cluster.alltoall(rank, sequence, block[sequence], sequence % 2 == 0);
    });
    ASSERT_FALSE(HasFatalFailure());
    for (uint64_t sequence = 0; sequence < operations; sequence++) {
      if (!is_barrier(sequence)) cluster.expect_right(sequence, block[sequence]);
    }
    EXPECT_EQ(cluster.total(PEAL_COUNTER_PEERS_DEAD), 0u);
  }
}

class AlltoallEnds : public ::testing::TestWithParam<peal_algorithm> {};
std::string by_name(const ::testing::TestParamInfo<peal_algorithm>& info) {
  return algorithm_name(info.param);
}
INSTANTIATE_TEST_SUITE_P(By, AlltoallEnds,
                         ::testing::Values(PEAL_ALGORITHM_BRUCK, PEAL_ALGORITHM_DIRECT), by_name);

TEST_P(AlltoallEnds, WithFewPacketBuffersAllTheSame) {
  BenchOptions options;
  options.packet_buffers = 8;
  AlltoallCluster cluster(GetParam(), 8, options);
  for (uint64_t sequence = 0; sequence < 3; sequence++) cluster.post_all(sequence, 3000);
  ASSERT_TRUE(cluster.run_until_completions(3));
  expect_all(cluster, 3, "OK");
  for (uint64_t sequence = 0; sequence < 3; sequence++) cluster.expect_right(sequence, 3000);
  EXPECT_GT(cluster.total(PEAL_COUNTER_NO_PACKET), 0u);
}

TEST_P(AlltoallEnds, DisagreementAboutTheLengthIsToldToAll) {
  AlltoallCluster cluster(GetParam(), 8);
  for (uint32_t rank = 0; rank < 8; rank++) cluster.alltoall(rank, 0, rank == 3 ? 72 : 64);
  ASSERT_TRUE(cluster.run_until_completions(1));
  expect_all(cluster, 1, "MISMATCH");
  cluster.post_all(1, 64);
  ASSERT_TRUE(cluster.run_until_completions(2));
  cluster.expect_right(1, 64);
}

TEST_P(AlltoallEnds, ASilentRankIsNamedInTime) {
  AlltoallCluster cluster(GetParam(), 8);
  cluster.post_all_but(3, 64);
  cluster.silence(3);
  ASSERT_TRUE(cluster.run_until_completions(1, 2 * default_timeouts().dead_ns));
  cluster.expect_dead(3, {0, 1, 2, 4, 5, 6, 7});
}

TEST_P(AlltoallEnds, LatenessIsNotDeath) {
  for (const uint32_t late : {0u, 3u}) {
    AlltoallCluster cluster(GetParam(), 8);
    cluster.post_all_but(late, 64);
    EXPECT_FALSE(cluster.run_until_completions(1, 20 * default_timeouts().dead_ns));
    EXPECT_EQ(cluster.total(PEAL_COUNTER_PEERS_DEAD), 0u);
    cluster.alltoall(late, 0, 64);
    ASSERT_TRUE(cluster.run_until_completions(1));
    expect_all(cluster, 1, "OK");
    cluster.expect_right(0, 64);
  }
}

}  // namespace
}  // namespace peal::test
