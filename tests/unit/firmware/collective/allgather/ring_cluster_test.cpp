// SPDX-License-Identifier: BSD-2-Clause
// A ring of a few real cards: right results at every size of group and block, as few packets as it
// takes, whoever is late and whatever is lost.
#include "firmware/collective/allgather/ring.h"
#include "firmware/operation/layout.h"
#include "tests/support/cluster.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

class RingCluster : public Cluster {
 public:
  explicit RingCluster(uint32_t ranks, const BenchOptions& options = {})
      : Cluster(ranks, options) {}
  void post_all(uint64_t sequence, size_t block, bool in_place = false) {
    for (uint32_t rank = 0; rank < ranks(); rank++)
      allgather(rank, sequence, PEAL_ALGORITHM_RING, block, in_place);
  }
  void expect_right(uint64_t sequence, size_t block) {
    for (uint32_t rank = 0; rank < ranks(); rank++)
      ASSERT_EQ(check_result(rank, sequence, block), "") << "blocks of " << block;
  }
  void expect_all(size_t count, const std::string& status) {
    for (uint32_t rank = 0; rank < ranks(); rank++) {
      ASSERT_EQ(completions(rank).size(), count) << "rank " << rank;
      for (const Completion& completion : completions(rank))
        EXPECT_EQ(status_text(completion.status), status) << "rank " << rank;
    }
    EXPECT_EQ(problems(), "");
  }
  // Loses one frame of so many, and doubles another.
  void lose(uint64_t one_of) {
    fate = [this, one_of](const Frame&) -> uint32_t {
      state_ ^= state_ << 13;
      state_ ^= state_ >> 7;
      state_ ^= state_ << 17;
      const uint64_t draw = (state_ >> 33) % one_of;
      return draw == 0 ? 0 : draw == 1 ? 2 : 1;
    };
  }

 private:
  uint64_t state_ = 88172645463325252u;
};

class RingAllgather : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RingAllgather, ::testing::Values(1, 2, 3, 5, 8, 13));

TEST_P(RingAllgather, IsRightForEveryLengthAndBuffersAreFreeAtOnce) {
  RingCluster cluster(GetParam());
  const size_t mtu = CONFIG_MTU_BYTES;
  uint64_t sequence = 0;
  for (const size_t block : {size_t{0}, size_t{1}, size_t{1000}, mtu, mtu + 1, 5 * mtu + 17}) {
    for (const bool in_place : {false, true}) {
      cluster.post_all(sequence, block, in_place);
      ASSERT_TRUE(cluster.run_until_completions(sequence + 1)) << block;
      cluster.expect_right(sequence++, block);
    }
  }
  cluster.expect_all(sequence, "OK");
}

TEST_P(RingAllgather, TakesNoPacketTooMany) {
  for (const size_t block : {size_t{16}, size_t{3 * CONFIG_MTU_BYTES}}) {
    RingCluster cluster(GetParam());
    const size_t ranks = cluster.ranks();
    const size_t piece = piece_bytes_for(cluster.ranks());
    cluster.post_all(0, block);
    EXPECT_FALSE(cluster.run_until([] { return false; }, 10'000'000'000));
    cluster.expect_all(1, "OK");
    EXPECT_EQ(cluster.trace().size(), ranks * (ranks - 1) * ((block + piece - 1) / piece));
  }
}

TEST_P(RingAllgather, IsRightWhenRanksComeOneAfterTheOther) {
  for (const bool keeps_early : {false, true}) {
    for (const size_t block : {size_t{40}, size_t{3 * CONFIG_MTU_BYTES}}) {
      BenchOptions options;
      options.keeps_early = keeps_early;
      RingCluster cluster(GetParam(), options);
      for (uint32_t rank = cluster.ranks(); rank-- > 0;) {
        cluster.allgather(rank, 0, PEAL_ALGORITHM_RING, block, block > 40);
        cluster.settle();
      }
      ASSERT_TRUE(cluster.run_until_completions(1));
      cluster.expect_all(1, "OK");
      cluster.expect_right(0, block);
    }
  }
}

// A tenth of the frames lost, a tenth doubled; K deep; send buffers overwritten at completion.
TEST_P(RingAllgather, SurvivesLossAndRepetition) {
  RingCluster cluster(GetParam());
  cluster.lose(10);
  const auto length = [](uint64_t sequence) {
    return sequence % 3 == 0 ? size_t{90} : (sequence % 3) * CONFIG_MTU_BYTES + 11;
  };
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS + 2; sequence++) {
    cluster.post_all(sequence, length(sequence), sequence % 2 == 0);
    if (sequence + 1 < CONFIG_CHANNELS) continue;
    ASSERT_TRUE(cluster.run_until_completions(sequence + 2 - CONFIG_CHANNELS)) << sequence;
  }
  ASSERT_TRUE(cluster.run_until_completions(CONFIG_CHANNELS + 2));
  cluster.expect_all(CONFIG_CHANNELS + 2, "OK");
  for (uint64_t sequence = 2; sequence < CONFIG_CHANNELS + 2; sequence++)
    cluster.expect_right(sequence, length(sequence));
}

// What is lost on one edge is asked for there, by name, and by nobody else.
TEST(RingRepairs, OneLossIsOneQuestionAndOneRepair) {
  RingCluster cluster(8);
  uint32_t left = 1;
  cluster.fate = [&](const Frame& frame) -> uint32_t {
    if (frame.header.sender != 3 || frame.header.origin != 1) return 1;
    return left-- > 0 ? 0 : 1;
  };
  cluster.post_all(0, 64);
  EXPECT_FALSE(cluster.run_until([] { return false; }, 10'000'000'000));
  cluster.expect_all(1, "OK");
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_NACK), 1u);
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_REPAIR), 1u);
  EXPECT_EQ(cluster.trace().size(), 8u * 7 + 2);
}

TEST(RingRepairs, FewPacketBuffersAreBackPressureOnly) {
  BenchOptions options;
  options.packet_buffers = 8;
  RingCluster cluster(8, options);
  for (uint64_t sequence = 0; sequence < 3; sequence++) cluster.post_all(sequence, 3000);
  ASSERT_TRUE(cluster.run_until_completions(3));
  cluster.expect_all(3, "OK");
  for (uint64_t sequence = 0; sequence < 3; sequence++) cluster.expect_right(sequence, 3000);
}

TEST(RingEnds, DisagreementIsToldToAll) {
  RingCluster cluster(8);
  for (uint32_t rank = 0; rank < 8; rank++)
    cluster.allgather(rank, 0, PEAL_ALGORITHM_RING, rank == 3 ? 72 : 64);
  ASSERT_TRUE(cluster.run_until_completions(1));
  cluster.expect_all(1, "MISMATCH");
}

}  // namespace
}  // namespace peal::test
