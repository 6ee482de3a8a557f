// SPDX-License-Identifier: BSD-2-Clause
// How collectives and point-to-point slow each other down on one card, in the model's time: a
// barrier or an allgather of 1 KiB behind the other, while each rank keeps so many puts to the next
// one under way that its DMA engine never rests. docs/decisions/0034
#include <gtest/gtest.h>

#include "firmware/base/ranks.h"
#include "firmware/p2p_types.h"
#include "tests/cluster/sharing_hosts.h"

namespace peal::sim {
namespace {

constexpr uint32_t kPuts = 4;
constexpr uint32_t kBlock = 1024;
constexpr Sharing kBarrier = {PEAL_OPERATION_BARRIER, 0, 0};
constexpr Sharing kAllgather = {PEAL_OPERATION_ALLGATHER, kBlock, 0};
constexpr Sharing kNone = {PEAL_OPERATION_NONE, 0, 0};

SharingHosts::Done measure(uint32_t cards, Sharing sharing, uint32_t puts) {
  ClusterOptions options;
  options.cards = cards;
  sharing.puts = puts;
  SharingHosts hosts(options, sharing);
  const SharingHosts::Done done = hosts.run(300'000, 1'000'000);
  EXPECT_EQ(hosts.failures(), 0u);
  return done;
}

// The packets of puts that stand before one of a collective's where it leaves its card: as many as
// are being read.
TimeNs before_a_packet() {
  const CostModel costs;
  const uint64_t bytes = p2p::kChunkBytes + 128 + costs.frame_extra_bytes;
  return p2p::kReadsMax * (costs.packet_gap_ns + costs.send_ns + bytes * costs.byte_gap_ps / 1000);
}

// And before one of its DMA: those, and a window of packets that have come.
TimeNs before_a_dma() {
  const CostModel costs;
  const TimeNs each = costs.dma_gap_ns + p2p::kChunkBytes * costs.dma_byte_gap_ps / 1000;
  return (p2p::kReadsMax + p2p::kWindow) * each;
}

// Smaller packets would not keep the DMA engine busy: with such it is not built.
static_assert(p2p::kChunkBytes >= 4096);

class SharingTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(SharingTest, ABarrierWaitsForAFewPacketsInEachRound) {
  const TimeNs alone = measure(GetParam(), kBarrier, 0).slowest_ns;
  const TimeNs shared = measure(GetParam(), kBarrier, kPuts).slowest_ns;
  RecordProperty("alone_ns", static_cast<int>(alone));
  RecordProperty("shared_ns", static_cast<int>(shared));
  EXPECT_GT(shared, alone);
  EXPECT_LE(shared, alone + ceil_log2(GetParam()) * before_a_packet());
}

TEST_P(SharingTest, AnAllgatherWaitsBesidesForTwoOfItsDma) {
  const TimeNs alone = measure(GetParam(), kAllgather, 0).slowest_ns;
  const TimeNs shared = measure(GetParam(), kAllgather, kPuts).slowest_ns;
  RecordProperty("alone_ns", static_cast<int>(alone));
  RecordProperty("shared_ns", static_cast<int>(shared));
  EXPECT_GT(shared, alone);
  EXPECT_LE(shared, alone + ceil_log2(GetParam()) * before_a_packet() + 2 * before_a_dma());
}

// Where collectives never stop, puts lose no more than what those move.
TEST_P(SharingTest, PutsGoOnBesideCollectives) {
  const double alone = measure(GetParam(), kNone, kPuts).put_bytes_per_ns;
  const double beside_barriers = measure(GetParam(), kBarrier, kPuts).put_bytes_per_ns;
  const double beside_allgathers = measure(GetParam(), kAllgather, kPuts).put_bytes_per_ns;
  EXPECT_GT(alone, 8.0);  // the engine's 16.6, for what is read and what is written
  EXPECT_GE(beside_barriers, 0.98 * alone);
  EXPECT_GE(beside_allgathers, 0.9 * alone);
}

INSTANTIATE_TEST_SUITE_P(Ranks, SharingTest, ::testing::Values(2, 3, 8, 16),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace peal::sim
