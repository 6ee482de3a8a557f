// SPDX-License-Identifier: BSD-2-Clause
// Broadcasts over a few real cards: packets when nothing is lost, every size, root and length, and
// the same under loss and repetition, with barriers and allgathers between them.
#include <algorithm>

#include "tests/support/broadcast_pieces.h"
#include "tests/unit/cluster_fixture.h"

namespace peal::test {
namespace {

constexpr size_t kPiece = kBroadcastPiece;
constexpr size_t kWindowBytes = 2 * CONFIG_PIECE_WINDOW * kPiece;

BenchOptions plenty() {
  BenchOptions options;
  options.packet_buffers = 2048;
  return options;
}

void broadcast_from(Cluster& cluster, uint64_t sequence, uint32_t root, size_t block) {
  for (uint32_t rank = 0; rank < cluster.ranks(); rank++)
    cluster.broadcast(rank, sequence, root, block);
}

void expect_right(Cluster& cluster, uint64_t sequence, uint32_t root, size_t block) {
  for (uint32_t rank = 0; rank < cluster.ranks(); rank++)
    ASSERT_EQ(cluster.check_broadcast(rank, sequence, root, block), "") << "bytes " << block;
}

// Operations end in any order: a root is done with one while it waits for another's data.
bool all_completed(const Cluster& cluster, uint64_t sequence) {
  for (uint32_t rank = 0; rank < cluster.ranks(); rank++) {
    const auto& completions = cluster.completions(rank);
    const bool found =
        std::any_of(completions.begin(), completions.end(),
                    [&](const Completion& done) { return done.cookie == 100 + sequence; });
    if (!found) return false;
  }
  return true;
}

class BinomialSizes : public ::testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Ranks, BinomialSizes,
                         ::testing::Values(1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 11u, 16u));

TEST_P(BinomialSizes, EveryRankGetsEveryPacketOnceFromEveryRoot) {
  const uint32_t ranks = GetParam();
  for (const size_t block : {size_t{0}, size_t{1}, size_t{3 * CONFIG_MTU_BYTES + 1}}) {
    for (uint32_t root = 0; root < ranks; root++) {
      Cluster cluster(ranks, plenty());
      broadcast_from(cluster, 0, root, block);
      cluster.settle();
      expect_all(cluster, 1, "OK");
      expect_right(cluster, 0, root, block);
      const size_t packets = block == 0 ? 1 : (block + CONFIG_MTU_BYTES - 1) / CONFIG_MTU_BYTES;
      EXPECT_EQ(cluster.trace().size(), packets * (ranks - 1));
      // Nor does time bring any.
      EXPECT_FALSE(cluster.run_until([] { return false; }, 10'000'000'000));
      EXPECT_EQ(cluster.trace().size(), packets * (ranks - 1));
    }
  }
}

TEST_P(BinomialSizes, LongBlocksNeedFewCredits) {
  const uint32_t ranks = GetParam();
  const size_t pieces = 4 * CONFIG_PIECE_WINDOW + 3;
  const size_t block = pieces * kPiece - 7;
  Cluster cluster(ranks, plenty());
  broadcast_from(cluster, 0, ranks / 2, block);
  cluster.settle();
  expect_all(cluster, 1, "OK");
  expect_right(cluster, 0, ranks / 2, block);
  const size_t packets = (block + CONFIG_MTU_BYTES - 1) / CONFIG_MTU_BYTES * (ranks - 1);
  EXPECT_EQ(cluster.sent(PEAL_PACKET_DATA, PEAL_OPERATION_BROADCAST), packets);
  const size_t each = std::max(CONFIG_PIECE_WINDOW / 2, 1);
  const size_t credits = (pieces - 2 * CONFIG_PIECE_WINDOW + each - 1) / each * (ranks - 1);
  const size_t sent = cluster.sent(PEAL_PACKET_SIGNAL, PEAL_OPERATION_BROADCAST);
  EXPECT_LE(sent, credits);
  EXPECT_EQ(sent == 0, ranks == 1);
  EXPECT_EQ(cluster.trace().size(), packets + sent);
}

TEST_P(BinomialSizes, RanksComeOneAfterTheOther) {
  const uint32_t ranks = GetParam();
  for (const size_t block : {size_t{40}, kPiece, kWindowBytes + kPiece + 3}) {
    Cluster cluster(ranks, plenty());
    const uint32_t root = ranks - 1;
    for (uint32_t rank = ranks; rank-- > 0;) {
      cluster.broadcast(rank, 0, root, block);
      cluster.settle();
    }
    ASSERT_TRUE(cluster.run_until_completions(1));
    expect_all(cluster, 1, "OK");
    expect_right(cluster, 0, root, block);
  }
}

// All mixed, K deep: a tenth of the frames lost, a tenth doubled;
// send buffers are overwritten at completion.
TEST_P(BinomialSizes, SurvivesABadWire) {
  const uint32_t ranks = GetParam();
  const uint64_t operations = 3 * CONFIG_CHANNELS;
  for (uint64_t seed = 1; seed <= (ranks <= 8 ? 3 : 1); seed++) {
    Cluster cluster(ranks, plenty());
    Random random(seed);
    cluster.fate = bad_wire(random);
    struct Draw {
      uint32_t root;
      size_t block;
    };
    std::vector<Draw> draws(operations);
    uint32_t longs = 0;
    for (auto& draw : draws) {
      const bool is_long = random.below(6) == 0;
      longs += is_long ? 1 : 0;
      draw = {random.below(ranks), is_long ? kWindowBytes + random.below(3 * kPiece)
                                           : random.below(3 * CONFIG_MTU_BYTES)};
    }
    EXPECT_GT(longs, 0u);
    const auto kind = [](uint64_t sequence) { return sequence % 7; };
    for (uint64_t sequence = 0; sequence < operations; sequence++) {
      const auto& [root, block] = draws[sequence];
      for (uint32_t rank = 0; rank < ranks; rank++) {
        if (kind(sequence) == 2) {
          cluster.barrier(rank, sequence);
        } else if (kind(sequence) == 5) {
          cluster.allgather(rank, sequence, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, 100);
        } else {
          cluster.broadcast(rank, sequence, root, block);
        }
      }
      // At most K outstanding, so that every buffer slot is free when it comes round.
      if (sequence + 1 < CONFIG_CHANNELS) continue;
      const uint64_t done = sequence + 1 - CONFIG_CHANNELS;
      ASSERT_TRUE(cluster.run_until([&] { return all_completed(cluster, done); }, 10'000'000'000))
          << "seed " << seed << " sequence " << done;
      if (kind(done) != 2 && kind(done) != 5)
        expect_right(cluster, done, draws[done].root, draws[done].block);
    }
    ASSERT_TRUE(cluster.run_until_completions(operations)) << "seed " << seed;
    expect_all(cluster, operations, "OK");
    EXPECT_EQ(cluster.total(PEAL_COUNTER_PEERS_DEAD), 0u);
    EXPECT_EQ(ranks == 1, cluster.total(PEAL_COUNTER_SENT_REPAIR) == 0);
  }
}

TEST(BinomialCluster, FewPacketBuffersAreBackPressureOnly) {
  BenchOptions options;
  options.packet_buffers = 12;
  Cluster cluster(8, options);
  const size_t block = kWindowBytes + 5000;
  for (uint64_t sequence = 0; sequence < 2; sequence++) broadcast_from(cluster, sequence, 3, block);
  ASSERT_TRUE(cluster.run_until_completions(2));
  expect_all(cluster, 2, "OK");
  for (uint64_t sequence = 0; sequence < 2; sequence++) expect_right(cluster, sequence, 3, block);
  EXPECT_GT(cluster.total(PEAL_COUNTER_NO_PACKET), 0u);
}

// Two ranks think that another one is the root; everybody else waits for the first.
TEST(BinomialCluster, DisagreementAboutTheRootIsTold) {
  Cluster cluster(8);
  for (uint32_t rank = 0; rank < 8; rank++) cluster.broadcast(rank, 0, rank < 6 ? 7 : 5, 64);
  ASSERT_TRUE(cluster.run_until_completions(1));
  expect_all(cluster, 1, "MISMATCH");
  for (uint32_t rank = 0; rank < 8; rank++) cluster.barrier(rank, 1);
  ASSERT_TRUE(cluster.run_until_completions(2));
  for (uint32_t rank = 0; rank < 8; rank++)
    EXPECT_EQ(status_text(cluster.completions(rank)[1].status), "OK");
}

TEST(BinomialCluster, ALateRankHoldsUpALongBroadcastAndNobodyDies) {
  Cluster cluster(6, plenty());
  const size_t block = kWindowBytes + 2 * kPiece;
  for (uint32_t rank = 0; rank < 6; rank++) {
    if (rank != 4) cluster.broadcast(rank, 0, 1, block);
  }
  EXPECT_FALSE(cluster.run_until([] { return false; }, 5 * default_timeouts().dead_ns));
  for (uint32_t rank = 0; rank < 6; rank++) EXPECT_TRUE(cluster.completions(rank).empty()) << rank;
  cluster.broadcast(4, 0, 1, block);
  ASSERT_TRUE(cluster.run_until_completions(1));
  expect_all(cluster, 1, "OK");
  expect_right(cluster, 0, 1, block);
}

TEST(BinomialCluster, ADeadLeafIsFoundAndNamed) {
  Cluster cluster(6, plenty());
  cluster.silence(4);  // a leaf below root 1, whose parent is rank 2
  for (uint32_t rank = 0; rank < 6; rank++) {
    if (rank != 4) cluster.broadcast(rank, 0, 1, kWindowBytes + 2 * kPiece);
  }
  const CardTimeouts timeouts = default_timeouts();
  ASSERT_TRUE(cluster.run_until_completions(1, 2 * timeouts.dead_ns + timeouts.nack_max_ns));
  for (uint32_t rank = 0; rank < 6; rank++) {
    if (rank == 4) continue;
    EXPECT_EQ(status_text(cluster.completions(rank)[0].status), "PEER_DEAD") << rank;
    EXPECT_EQ(cluster.completions(rank)[0].failed_rank, 4u) << rank;
  }
}

TEST(BinomialCluster, EverybodyLeavesAfterwards) {
  for (uint64_t seed = 1; seed <= 10; seed++) {
    Cluster cluster(5);
    Random random(seed);
    cluster.fate = lossy_wire(random, 4);
    for (uint32_t rank = 0; rank < 5; rank++) {
      cluster.broadcast(rank, 0, 3, 3000);
      cluster.destroy(rank, 1);
    }
    ASSERT_TRUE(cluster.run_until_completions(2)) << "seed " << seed;
    expect_all(cluster, 2, "OK");
    expect_right(cluster, 0, 3, 3000);
  }
}

}  // namespace
}  // namespace peal::test
