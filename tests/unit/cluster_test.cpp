// SPDX-License-Identifier: BSD-2-Clause
// A few real cards wired together: how many packets cross the wire when nothing is lost (no
// acknowledgement flows), that every size and length comes out right, and that loss, repetition and
// lateness change nothing but the count.
#include "tests/support/cluster.h"

#include "tests/unit/cluster_fixture.h"

namespace peal::test {
namespace {

constexpr uint64_t kEpoch = CONFIG_CHANNELS / 2;
constexpr auto kBroadcast = PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST;
constexpr auto kDoubling = PEAL_ALGORITHM_RECURSIVE_DOUBLING;

uint32_t rounds(uint32_t ranks) {
  uint32_t result = 0;
  while ((1u << result) < ranks) result++;
  return result;
}

// --- packet counts, no loss ---

TEST(PacketCount, BarrierOfEightIsTwentyFourPacketsAndNoneElse) {
  Cluster cluster(8);
  for (uint32_t rank = 0; rank < 8; rank++) cluster.barrier(rank, 0);
  cluster.settle();
  expect_all(cluster, 1, "OK");
  EXPECT_EQ(cluster.trace().size(), 24u);
  EXPECT_EQ(cluster.sent(PEAL_PACKET_SIGNAL, PEAL_OPERATION_BARRIER), 24u);
  // Nor does time bring any.
  EXPECT_FALSE(cluster.run_until([] { return false; }, 10'000'000'000));
  EXPECT_EQ(cluster.trace().size(), 24u);
}

TEST(PacketCount, BroadcastIsNTimesNLessOnePerPieceAndNoneElse) {
  for (const uint32_t ranks : {2u, 3u, 5u, 8u}) {
    Cluster cluster(ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) cluster.allgather(rank, 0, kBroadcast, 64);
    cluster.settle();
    expect_all(cluster, 1, "OK");
    EXPECT_EQ(cluster.trace().size(), ranks * (ranks - 1));
    EXPECT_EQ(cluster.sent(PEAL_PACKET_DATA, PEAL_OPERATION_ALLGATHER), ranks * (ranks - 1));
    EXPECT_EQ(cluster.total(PEAL_COUNTER_FORWARDED), ranks * (ranks - 1) - ranks * rounds(ranks));
  }
}

TEST(PacketCount, DoublingIsOnePacketPerRankAndStep) {
  for (const uint32_t ranks : {2u, 4u, 5u, 8u}) {
    Cluster cluster(ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) cluster.allgather(rank, 0, kDoubling, 64);
    cluster.settle();
    expect_all(cluster, 1, "OK");
    EXPECT_EQ(cluster.trace().size(), ranks * rounds(ranks));
  }
}

TEST(PacketCount, LongBlocksArePiecesWithoutAcknowledgements) {
  constexpr uint32_t kRanks = 4;
  const uint32_t image = CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW);
  const uint32_t piece = std::min<uint32_t>(CONFIG_MTU_BYTES, image / kRanks & ~7u);
  Cluster cluster(kRanks);
  const size_t block = 10 * piece + 5;
  for (uint32_t rank = 0; rank < kRanks; rank++) cluster.allgather(rank, 0, kBroadcast, block);
  cluster.settle();
  expect_all(cluster, 1, "OK");
  EXPECT_EQ(cluster.trace().size(), 11u * kRanks * (kRanks - 1));
  for (uint32_t rank = 0; rank < kRanks; rank++)
    EXPECT_EQ(cluster.check_result(rank, 0, block), "");
}

// The documented extra: N - 1 small packets every K/2 broadcasts of one root.
TEST(PacketCount, RecyclingIsTheOnlyExtra) {
  constexpr uint32_t kRanks = 8;
  constexpr uint64_t kEpochs = 6;
  Cluster cluster(kRanks);
  for (uint64_t sequence = 0; sequence < kEpochs * kEpoch; sequence++) {
    for (uint32_t rank = 0; rank < kRanks; rank++) cluster.broadcast(rank, sequence, 0, 8);
    cluster.settle();
  }
  expect_all(cluster, kEpochs * kEpoch, "OK");
  EXPECT_EQ(cluster.sent(PEAL_PACKET_SIGNAL, PEAL_OPERATION_RECYCLE), kEpochs * (kRanks - 1));
  EXPECT_EQ(cluster.trace().size(), kEpochs * kEpoch * (kRanks - 1) + kEpochs * (kRanks - 1));
}

TEST(PacketCount, BarriersAreRecycledByBarriers) {
  constexpr uint32_t kRanks = 8;
  constexpr uint64_t kEpochs = 6;
  Cluster cluster(kRanks);
  for (uint64_t sequence = 0; sequence < kEpochs * kEpoch; sequence++) {
    for (uint32_t rank = 0; rank < kRanks; rank++) cluster.barrier(rank, sequence);
    cluster.settle();
  }
  expect_all(cluster, kEpochs * kEpoch, "OK");
  EXPECT_EQ(cluster.sent(PEAL_PACKET_SIGNAL, PEAL_OPERATION_BARRIER), kEpochs * kEpoch * 24);
  EXPECT_EQ(cluster.trace().size(), kEpochs * kEpoch * 24);
}

// At most one packet per origin and piece is under way on an edge:
// nobody is sent the same block twice.
TEST(PacketCount, NobodyIsSentTheSameBlockTwice) {
  Cluster cluster(7);
  for (uint32_t rank = 0; rank < 7; rank++) cluster.allgather(rank, 0, kBroadcast, 200);
  cluster.settle();
  std::set<std::string> seen;
  for (const Frame& frame : cluster.trace()) {
    const uint32_t receiver = frame.header.destination[5];
    const std::string what =
        std::to_string(receiver) + " origin " + std::to_string(frame.header.origin);
    EXPECT_TRUE(seen.insert(what).second) << what;
  }
}

// --- right for every size, length, algorithm and order of arrival ---

struct Shape {
  uint32_t ranks;
  peal_algorithm algorithm;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.ranks << (shape.algorithm == kDoubling ? " doubling" : " broadcast");
}

class Allgather : public ::testing::TestWithParam<Shape> {};

std::vector<Shape> shapes() {
  std::vector<Shape> result;
  for (const uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 12u, 16u}) {
    result.push_back({ranks, kBroadcast});
    result.push_back({ranks, kDoubling});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Allgather, ::testing::ValuesIn(shapes()));

std::vector<size_t> lengths() {
  const size_t mtu = CONFIG_MTU_BYTES;
  return {0, 1, 8, 63, 64, 65, 1000, mtu - 1, mtu, mtu + 1, 3 * mtu + 17, 12 * mtu + 1};
}

TEST_P(Allgather, IsRightForEveryLengthAndBuffersAreFreeAtOnce) {
  const Shape shape = GetParam();
  Cluster cluster(shape.ranks);
  uint64_t sequence = 0;
  for (const size_t block : lengths()) {
    for (const bool in_place : {false, true}) {
      for (uint32_t rank = 0; rank < shape.ranks; rank++) {
        cluster.allgather(rank, sequence, shape.algorithm, block, in_place);
      }
      ASSERT_TRUE(cluster.run_until_completions(sequence + 1)) << block;
      for (uint32_t rank = 0; rank < shape.ranks; rank++) {
        ASSERT_EQ(cluster.check_result(rank, sequence, block), "")
            << block << " in place " << in_place;
      }
      sequence++;
    }
  }
  expect_all(cluster, sequence, "OK");
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_NACK), 0u);
}

TEST_P(Allgather, IsRightWhenRanksComeOneAfterTheOther) {
  const Shape shape = GetParam();
  for (const size_t block : {size_t{40}, size_t{3 * CONFIG_MTU_BYTES}}) {
    Cluster cluster(shape.ranks);
    for (uint32_t rank = shape.ranks; rank-- > 0;) {
      cluster.allgather(rank, 0, shape.algorithm, block);
      cluster.settle();
    }
    ASSERT_TRUE(cluster.run_until_completions(1));
    expect_all(cluster, 1, "OK");
    for (uint32_t rank = 0; rank < shape.ranks; rank++) {
      EXPECT_EQ(cluster.check_result(rank, 0, block), "");
    }
  }
}

// --- a bad wire ---

// All mixed: barriers and allgathers K deep, a tenth of the frames lost, a tenth doubled, send
// buffers overwritten at completion.
TEST_P(Allgather, SurvivesLossAndRepetition) {
  const Shape shape = GetParam();
  const uint64_t operations = 2 * CONFIG_CHANNELS;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    Cluster cluster(shape.ranks);
    Random random(seed);
    cluster.fate = bad_wire(random);
    std::vector<size_t> block(operations);
    for (auto& length : block) length = random.below(2 * CONFIG_MTU_BYTES);
    const auto is_barrier = [](uint64_t sequence) { return sequence % 5 == 2; };
    SCOPED_TRACE("seed " + std::to_string(seed));
    run_operations(cluster, operations, [&](uint32_t rank, uint64_t sequence) {
      if (is_barrier(sequence)) return cluster.barrier(rank, sequence);
      cluster.allgather(rank, sequence, shape.algorithm, block[sequence]);
    });
    ASSERT_FALSE(HasFatalFailure());
    for (uint64_t sequence = 0; sequence < operations; sequence++) {
      if (is_barrier(sequence)) continue;
      for (uint32_t rank = 0; rank < shape.ranks; rank++) {
        ASSERT_EQ(cluster.check_result(rank, sequence, block[sequence]), "");
      }
    }
    EXPECT_EQ(cluster.total(PEAL_COUNTER_PEERS_DEAD), 0u);
  }
}

// --- small pools ---

TEST(Exhaustion, FewPacketBuffersAreBackPressureOnly) {
  BenchOptions options;
  options.packet_buffers = 8;
  Cluster cluster(8, options);
  for (uint64_t sequence = 0; sequence < 3; sequence++) {
    for (uint32_t rank = 0; rank < 8; rank++) {
      cluster.allgather(rank, sequence, sequence == 1 ? kDoubling : kBroadcast, 3000);
    }
  }
  ASSERT_TRUE(cluster.run_until_completions(3));
  expect_all(cluster, 3, "OK");
  for (uint32_t rank = 0; rank < 8; rank++) {
    for (uint64_t sequence = 0; sequence < 3; sequence++) {
      EXPECT_EQ(cluster.check_result(rank, sequence, 3000), "");
    }
  }
  EXPECT_GT(cluster.total(PEAL_COUNTER_NO_PACKET), 0u);
}

// --- disagreement, death, destroy ---

TEST(Disagreement, EveryRankIsToldAndTheGroupGoesOn) {
  Cluster cluster(8);
  for (uint32_t rank = 0; rank < 8; rank++)
    cluster.allgather(rank, 0, kBroadcast, rank == 5 ? 72 : 64);
  ASSERT_TRUE(cluster.run_until_completions(1));
  for (uint32_t rank = 0; rank < 8; rank++) {
    EXPECT_EQ(status_text(cluster.completions(rank)[0].status), "MISMATCH") << "rank " << rank;
  }
  for (uint64_t sequence = 1; sequence < 3 * CONFIG_CHANNELS; sequence++) {
    for (uint32_t rank = 0; rank < 8; rank++) cluster.barrier(rank, sequence);
    ASSERT_TRUE(cluster.run_until_completions(sequence + 1));
  }
  for (uint32_t rank = 0; rank < 8; rank++) {
    EXPECT_EQ(status_text(cluster.completions(rank).back().status), "OK");
  }
  EXPECT_EQ(cluster.problems(), "");
}

TEST(Disagreement, AboutTheOperationOrTheAlgorithm) {
  for (int kind = 0; kind < 3; kind++) {
    Cluster cluster(4);
    for (uint32_t rank = 0; rank < 3; rank++) cluster.allgather(rank, 0, kBroadcast, 64);
    if (kind == 0) cluster.barrier(3, 0);
    if (kind == 1) cluster.allgather(3, 0, kDoubling, 64);
    if (kind == 2) cluster.destroy(3, 0);
    ASSERT_TRUE(cluster.run_until_completions(1)) << kind;
    for (uint32_t rank = 0; rank < 4; rank++) {
      EXPECT_EQ(status_text(cluster.completions(rank)[0].status), "MISMATCH")
          << kind << " " << rank;
    }
    EXPECT_EQ(cluster.problems(), "");
  }
}

TEST(Disagreement, IsToldOnABadWireToo) {
  for (uint64_t seed = 1; seed <= 10; seed++) {
    Cluster cluster(6);
    Random random(seed);
    cluster.fate = lossy_wire(random, 5);
    for (uint32_t rank = 0; rank < 6; rank++) {
      cluster.allgather(rank, 0, kBroadcast, rank == 2 ? 100 : 64);
      cluster.settle();
    }
    ASSERT_TRUE(cluster.run_until_completions(1)) << "seed " << seed;
    for (uint32_t rank = 0; rank < 6; rank++) {
      EXPECT_EQ(status_text(cluster.completions(rank)[0].status), "MISMATCH") << "seed " << seed;
    }
  }
}

TEST(Death, EveryPendingRequestNamesTheSilentRankInTime) {
  Cluster cluster(8);
  for (uint32_t rank = 0; rank < 8; rank++) {
    if (rank != 3) cluster.allgather(rank, 0, kBroadcast, 64);
    if (rank != 3) cluster.barrier(rank, 1);
  }
  cluster.silence(3);
  const CardTimeouts timeouts = default_timeouts();
  ASSERT_TRUE(cluster.run_until_completions(2, 2 * timeouts.dead_ns));
  for (uint32_t rank = 0; rank < 8; rank++) {
    if (rank == 3) continue;
    for (const Completion& completion : cluster.completions(rank)) {
      EXPECT_EQ(status_text(completion.status), "PEER_DEAD") << "rank " << rank;
      EXPECT_EQ(completion.failed_rank, 3u) << "rank " << rank;
    }
    cluster.barrier(rank, 2);  // nor does anything later hang
  }
  cluster.settle();
  for (uint32_t rank = 0; rank < 8; rank++) {
    if (rank == 3) continue;
    EXPECT_EQ(cluster.completions(rank).size(), 3u);
  }
  EXPECT_EQ(cluster.problems(), "");
}

TEST(Death, LatenessNeverIs) {
  Cluster cluster(4);
  for (uint32_t rank = 0; rank < 3; rank++) cluster.barrier(rank, 0);
  EXPECT_FALSE(cluster.run_until_completions(1, 20 * default_timeouts().dead_ns));
  EXPECT_EQ(cluster.total(PEAL_COUNTER_PEERS_DEAD), 0u);
  cluster.barrier(3, 0);
  ASSERT_TRUE(cluster.run_until_completions(1));
  expect_all(cluster, 1, "OK");
}

TEST(Destroy, EverybodyLeavesAndLateNacksAreAnswered) {
  for (uint64_t seed = 1; seed <= 10; seed++) {
    Cluster cluster(5);
    Random random(seed);
    cluster.fate = lossy_wire(random, 4);
    for (uint32_t rank = 0; rank < 5; rank++) {
      cluster.allgather(rank, 0, kBroadcast, 500);
      cluster.destroy(rank, 1);
    }
    ASSERT_TRUE(cluster.run_until_completions(2)) << "seed " << seed;
    expect_all(cluster, 2, "OK");
    for (uint32_t rank = 0; rank < 5; rank++) {
      EXPECT_EQ(cluster.check_result(rank, 0, 500), "");
      cluster.barrier(rank, 2);  // the handle is gone
    }
    cluster.settle();
    for (uint32_t rank = 0; rank < 5; rank++) {
      EXPECT_EQ(status_text(cluster.completions(rank).back().status), "BAD_GROUP");
    }
  }
}

}  // namespace
}  // namespace peal::test
