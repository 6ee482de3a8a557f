// SPDX-License-Identifier: BSD-2-Clause
// The papers' figures of programs in virtual time, which is the same on every machine; what they
// say and what of it does not come out: docs/performance.md.
#include "tools/peal-sim/program_figures.h"

#include <gtest/gtest.h>

namespace peal::sim {
namespace {

constexpr uint64_t kMiB = 1 << 20;

CostModel model_of(const std::string& name) {
  CostModel model;
  EXPECT_EQ(load_cost_model(std::string(PEAL_MODELS) + "/" + name, &model), "");
  return model;
}

// The paper names no length of a segment. Its start takes up to 8 us, in proportion to their
// number: at 50 ns for a descriptor, that is segments of 2 MiB for the longest message.
constexpr uint64_t kSegment = 2 * kMiB;

BroadcastTimes broadcast(bool trinary, uint64_t bytes, Start start = Start::kResident) {
  return measure(model_of("tofu2.json"),
                 {.trinary = trinary, .start = start, .bytes = bytes, .segment_bytes = kSegment});
}

// 128 MB over twelve nodes took 4,452 us there, and about a third of the time of a single path.
TEST(Tofu2Figure, TheLongestMessageTakesWhatThePaperMeasured) {
  const auto chain = static_cast<double>(broadcast(false, 128 * kMiB).total_ns);
  const auto trinary = static_cast<double>(broadcast(true, 128 * kMiB).total_ns);
  EXPECT_NEAR(trinary, 4'452'000, 445'200);
  EXPECT_NEAR(chain / trinary, 3, 0.3);
}

// "The execution time of MPI_Start() is 2-8 us", in proportion to the segments; ours is flat.
TEST(Tofu2Figure, AStartCostsTheHostTheSameAtAnyLength) {
  for (const uint64_t bytes : {3 * kMiB, 32 * kMiB}) {
    const BroadcastTimes resident = broadcast(true, bytes);
    EXPECT_EQ(resident.start_ns, broadcast(true, kMiB).start_ns) << bytes;
    EXPECT_LT(resident.start_ns, 2000u);
  }
  const TimeNs least = broadcast(true, kMiB, Start::kEnqueued).start_ns;
  const BroadcastTimes most = broadcast(true, 128 * kMiB, Start::kEnqueued);
  EXPECT_GT(least, 1500u);
  EXPECT_LT(least, 3000u);
  EXPECT_GT(most.start_ns, 6000u);
  EXPECT_LT(most.start_ns, 10'000u);
}

TimeNs alltoall(uint32_t ranks, uint32_t window) {
  return measure(model_of("connectx2.json"),
                 {.ranks = ranks, .ranks_per_card = 8, .block_bytes = 16'384, .window = window});
}

// There the window of six was best at 64 ranks, and made no difference at 32. Here small windows
// are best; what a large one costs grows with the ranks.
TEST(ConnectX2Figure, WindowsMatterMoreWhereThereAreMoreRanks) {
  const auto loss = [](uint32_t ranks) {
    return static_cast<double>(alltoall(ranks, 32)) / static_cast<double>(alltoall(ranks, 4));
  };
  const double few = loss(32);
  const double many = loss(64);
  EXPECT_LT(few, 1.10);
  EXPECT_GT(many, 1.10);
}

}  // namespace
}  // namespace peal::sim
