// SPDX-License-Identifier: BSD-2-Clause
// Direct all-to-all among a few real cards: how many packets it takes, that every size and length
// comes out right on a good wire and on a bad one, with late ranks, and how it ends when ranks
// disagree or die, be they peers or not.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/cluster.h"

namespace peal::test {
namespace {

BenchOptions with_tables() {
  BenchOptions options;
  options.tables = true;
  return options;
}

class DirectCluster : public Cluster {
 public:
  explicit DirectCluster(uint32_t ranks, const BenchOptions& options = with_tables())
      : Cluster(ranks, options) {
    alltoall_algorithm = PEAL_ALGORITHM_DIRECT;
  }
  void post_all(uint64_t sequence, size_t block, bool in_place = false) {
    for (uint32_t rank = 0; rank < ranks(); rank++) alltoall(rank, sequence, block, in_place);
  }
  bool is_to(const Frame& frame, uint32_t rank) {
    return std::memcmp(frame.header.destination, member(rank).address.mac, PEAL_MAC_BYTES) == 0;
  }
};

void expect_all(Cluster& cluster, size_t count, const std::string& status) {
  for (uint32_t rank = 0; rank < cluster.ranks(); rank++) {
    ASSERT_EQ(cluster.completions(rank).size(), count) << "rank " << rank;
    for (const Completion& completion : cluster.completions(rank))
      EXPECT_EQ(status_text(completion.status), status) << "rank " << rank;
  }
  EXPECT_EQ(cluster.problems(), "");
}

void expect_right(Cluster& cluster, uint64_t sequence, size_t block) {
  for (uint32_t rank = 0; rank < cluster.ranks(); rank++)
    ASSERT_EQ(cluster.check_alltoall(rank, sequence, block), "") << "blocks of " << block;
}

// As many as a card of this profile remembers addresses of, if that is not too many for a test.
constexpr uint32_t kMany = CONFIG_REMEMBERED_ADDRESSES < 40 ? CONFIG_REMEMBERED_ADDRESSES : 40;

class DirectAlltoall : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, DirectAlltoall, ::testing::Values(1, 2, 3, 5, 6, 8, 13, kMany));

TEST_P(DirectAlltoall, IsRightForEveryLengthAndBuffersAreFreeAtOnce) {
  DirectCluster cluster(GetParam());
  const size_t mtu = CONFIG_MTU_BYTES;
  uint64_t sequence = 0;
  for (const size_t block : {size_t{0}, size_t{1}, size_t{1000}, mtu, mtu + 1, 5 * mtu + 17}) {
    for (const bool in_place : {false, true}) {
      cluster.post_all(sequence, block, in_place);
      ASSERT_TRUE(cluster.run_until_completions(sequence + 1)) << block;
      expect_right(cluster, sequence++, block);
    }
  }
  expect_all(cluster, sequence, "OK");
}

TEST_P(DirectAlltoall, IsRightWhenRanksComeOneAfterTheOther) {
  for (const size_t block : {size_t{40}, size_t{3 * CONFIG_MTU_BYTES}}) {
    DirectCluster cluster(GetParam());
    for (uint32_t rank = cluster.ranks(); rank-- > 0;) {
      cluster.alltoall(rank, 0, block, block > 40);
      cluster.settle();
    }
    ASSERT_TRUE(cluster.run_until_completions(1));
    expect_all(cluster, 1, "OK");
    expect_right(cluster, 0, block);
  }
}

// A tenth of the frames lost, a tenth doubled; K deep; send buffers overwritten at completion.
TEST_P(DirectAlltoall, SurvivesLossAndRepetition) {
  DirectCluster cluster(GetParam());
  uint64_t state = 88172645463325252u;
  cluster.fate = [&](const Frame&) -> uint32_t {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const uint64_t draw = (state >> 33) % 10;
    return draw == 0 ? 0 : draw == 1 ? 2 : 1;
  };
  const auto length = [](uint64_t sequence) {
    return sequence % 3 == 0 ? size_t{90} : (sequence % 3) * CONFIG_MTU_BYTES + 11;
  };
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS + 2; sequence++) {
    cluster.post_all(sequence, length(sequence), sequence % 2 == 0);
    if (sequence + 1 < CONFIG_CHANNELS) continue;
    ASSERT_TRUE(cluster.run_until_completions(sequence + 2 - CONFIG_CHANNELS)) << sequence;
  }
  ASSERT_TRUE(cluster.run_until_completions(CONFIG_CHANNELS + 2));
  expect_all(cluster, CONFIG_CHANNELS + 2, "OK");
  for (uint64_t sequence = 2; sequence < CONFIG_CHANNELS + 2; sequence++)
    expect_right(cluster, sequence, length(sequence));
  EXPECT_EQ(cluster.total(PEAL_COUNTER_PEERS_DEAD), 0u);
}

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
    expect_right(cluster, 0, 1000);
    EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_NACK), 1u);
    EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_REPAIR), 1u);
  }
}

TEST(DirectPackets, FewPacketBuffersAreBackPressureOnly) {
  BenchOptions options = with_tables();
  options.packet_buffers = 8;
  DirectCluster cluster(8, options);
  for (uint64_t sequence = 0; sequence < 3; sequence++) cluster.post_all(sequence, 3000);
  ASSERT_TRUE(cluster.run_until_completions(3));
  expect_all(cluster, 3, "OK");
  for (uint64_t sequence = 0; sequence < 3; sequence++) expect_right(cluster, sequence, 3000);
  EXPECT_GT(cluster.total(PEAL_COUNTER_NO_PACKET), 0u);
}

TEST(DirectEnds, DisagreementIsToldToAll) {
  DirectCluster cluster(8);
  for (uint32_t rank = 0; rank < 8; rank++) cluster.alltoall(rank, 0, rank == 3 ? 72 : 64);
  ASSERT_TRUE(cluster.run_until_completions(1));
  expect_all(cluster, 1, "MISMATCH");
  cluster.post_all(1, 64);
  ASSERT_TRUE(cluster.run_until_completions(2));
  expect_right(cluster, 1, 64);
}

void expect_dead(Cluster& cluster, uint32_t dead, const std::vector<uint32_t>& ranks) {
  for (const uint32_t rank : ranks) {
    ASSERT_EQ(cluster.completions(rank).size(), 1u) << "rank " << rank;
    EXPECT_EQ(status_text(cluster.completions(rank)[0].status), "PEER_DEAD") << "rank " << rank;
    EXPECT_EQ(cluster.completions(rank)[0].failed_rank, dead) << "rank " << rank;
  }
  EXPECT_EQ(cluster.problems(), "");
}

TEST(DirectEnds, ASilentRankIsNamedInTime) {
  DirectCluster cluster(8);
  for (uint32_t rank = 0; rank < 8; rank++) {
    if (rank != 3) cluster.alltoall(rank, 0, 64);
  }
  cluster.silence(3);
  ASSERT_TRUE(cluster.run_until_completions(1, 2 * default_timeouts().dead_ns));
  expect_dead(cluster, 3, {0, 1, 2, 4, 5, 6, 7});
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
  expect_dead(cluster, 4, {1});
}

TEST(DirectEnds, LatenessIsNotDeath) {
  for (const uint32_t late : {0u, 3u}) {
    DirectCluster cluster(8);
    for (uint32_t rank = 0; rank < 8; rank++) {
      if (rank != late) cluster.alltoall(rank, 0, 64);
    }
    EXPECT_FALSE(cluster.run_until_completions(1, 20 * default_timeouts().dead_ns));
    EXPECT_EQ(cluster.total(PEAL_COUNTER_PEERS_DEAD), 0u);
    cluster.alltoall(late, 0, 64);
    ASSERT_TRUE(cluster.run_until_completions(1));
    expect_all(cluster, 1, "OK");
    expect_right(cluster, 0, 64);
  }
}

}  // namespace
}  // namespace peal::test
