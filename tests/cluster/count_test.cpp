// SPDX-License-Identifier: BSD-2-Clause
// With no loss no acknowledgement flows: every packet is counted, and there are exactly as many as
// the arithmetic of the algorithms says, plus the documented recycling.
#include <gtest/gtest.h>

#include <algorithm>

#include "emulator/cluster/arithmetic.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

uint32_t ceil_log2(uint32_t n) {
  uint32_t rounds = 0;
  while ((1u << rounds) < n) rounds++;
  return rounds;
}

void expect_only(const Report& report, uint64_t data, uint64_t signals) {
  ASSERT_TRUE(report.ok) << failures(report);
  EXPECT_EQ(report.packets[PEAL_PACKET_DATA], data);
  EXPECT_EQ(report.packets[PEAL_PACKET_SIGNAL], signals);
  EXPECT_EQ(report.cluster.sent, data + signals);
  EXPECT_EQ(report.needed, data + signals);
  EXPECT_EQ(report.repairs, 0u);
}

TEST(Count, BarrierOfEightIsTwentyFourPackets) {
  expect_only(run(bare_plan(8, kBarrier, 1)), 0, 24);
}

TEST(Count, BarrierSendsOnePacketPerRankAndRound) {
  for (const uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 9u, 16u, 31u, 33u})
    expect_only(run(bare_plan(ranks, kBarrier, 1)), 0, ranks * ceil_log2(ranks));
}

// Every half a cycle (K / 2 operations) each rank says to the root that those below it are there,
// where nothing else says so. What comes of it the next data tells.
TEST(Count, RecyclingAddsAPacketOfEachOtherRankPerHalfCycle) {
  const uint32_t half = device().channels / 2;
  for (const uint32_t ranks : {2u, 5u, 8u}) {
    for (const uint32_t operations : {half - 1, half, 2 * half + 1, 10 * half}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(operations) + " operations");
      const uint64_t signals = uint64_t{ranks - 1} * (operations / half);
      for (const uint32_t root : {0u, ranks - 1}) {
        const Report report = run(bare_plan(ranks, root_broadcast(8, root), operations));
        expect_only(report, uint64_t{ranks - 1} * operations, signals);
        EXPECT_EQ(report.recycle_signals, signals);
        EXPECT_EQ(report.effort(), 1);
      }
      const uint64_t round = ranks * ceil_log2(ranks);
      expect_only(run(bare_plan(ranks, kBarrier, operations)), 0, round * operations);
    }
  }
}

TEST(Count, AllToAllBroadcastSendsEveryBlockToEveryOtherRankOnce) {
  for (const uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 13u, 16u, 31u, 40u}) {
    const uint32_t piece = piece_bytes(ranks);
    for (const uint32_t bytes : {0u, 1u, 64u, piece, piece + 1, 5 * piece + 3}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(bytes) + " bytes");
      const uint64_t pieces = bytes == 0 ? 1 : (bytes + piece - 1) / piece;
      expect_only(run(bare_plan(ranks, broadcast(bytes), 1)),
                  uint64_t{ranks} * (ranks - 1) * pieces, 0);
    }
  }
}

// What does not fit the window waits for credits:
// one for W/2 pieces (at least one), on every edge.
TEST(Count, ABroadcastSendsEveryPacketToEveryOtherRankOnceAndFewCredits) {
  const uint32_t mtu = device().mtu_bytes;
  const uint32_t places = 2 * device().piece_window;
  const uint32_t image = shape_of(device()).image_bytes;
  const uint32_t channel = places * image;
  const uint32_t piece = std::min({image, 128u << 10, 32 * mtu});
  ASSERT_EQ(piece % mtu, 0u);
  const uint32_t each = std::max(places / 4, 1u);
  for (const uint32_t ranks : {1u, 2u, 3u, 5u, 8u, 13u, 33u}) {
    for (const uint32_t bytes : {0u, 1u, mtu + 1, channel, channel + 1, 3 * channel - 5}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(bytes) + " bytes");
      const uint64_t packets = bytes == 0 ? 1 : (bytes + mtu - 1) / mtu;
      const uint64_t pieces = (bytes + piece - 1) / piece;
      const uint64_t credits = pieces <= places ? 0 : (pieces - places + each - 1) / each;
      expect_only(run(bare_plan(ranks, root_broadcast(bytes, ranks / 2), 1)), (ranks - 1) * packets,
                  (ranks - 1) * credits);
    }
  }
}

// Step k carries min(2^k, N - 2^k) blocks of the piece, cut into packets.
TEST(Count, RecursiveDoublingSendsTheImageSoFarInEveryStep) {
  const uint32_t mtu = device().mtu_bytes;
  for (const uint32_t ranks : {1u, 2u, 3u, 4u, 6u, 7u, 8u, 16u, 17u, 32u, 40u}) {
    const uint32_t piece = piece_bytes(ranks);
    for (const uint32_t bytes : {0u, 8u, 64u, piece, 2 * piece + 24}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(bytes) + " bytes");
      uint64_t packets = 0;
      uint32_t left = bytes;
      do {
        const uint32_t length = std::min(left, piece);
        for (uint32_t held = 1; held < ranks; held *= 2) {
          const uint64_t step = uint64_t{std::min(held, ranks - held)} * length;
          packets += step == 0 ? 1 : (step + mtu - 1) / mtu;
        }
        left -= length;
      } while (left > 0);
      expect_only(run(bare_plan(ranks, doubling(bytes), 1)), ranks * packets, 0);
    }
  }
}

TEST(Count, InPlaceSendsTheSamePackets) {
  for (const bool doubles : {false, true}) {
    const auto make = doubles ? doubling : broadcast;
    const Report apart = run(bare_plan(6, make(3000, false), 3));
    const Report in_place = run(bare_plan(6, make(3000, true), 3));
    ASSERT_TRUE(apart.ok && in_place.ok) << failures(apart) << failures(in_place);
    EXPECT_EQ(apart.packets, in_place.packets);
  }
}

// Destroying is one more barrier, and a farewell to each peer whose signals were awaited; nothing
// is said when the contexts close afterwards.
TEST(Count, DestroyingAGroupIsABarrierAndFarewells) {
  const Report report = run(plan(8, kBarrier, 1));
  ASSERT_TRUE(report.ok) << failures(report);
  EXPECT_EQ(report.packets[PEAL_PACKET_SIGNAL], 48u);
  EXPECT_EQ(report.packets[PEAL_PACKET_FAREWELL], 24u);
  EXPECT_EQ(report.cluster.sent, 72u);
  EXPECT_EQ(report.repairs, 0u);
}

TEST(Count, SkewAndDepthAddNothing) {
  Scenario scenario = bare_plan(8, broadcast(2000), 12);
  scenario.groups[0].depth = 6;
  scenario.groups[0].think_ns = 3 * kMicrosecond;
  expect_only(run(scenario), 12 * 56, 0);
}

}  // namespace
}  // namespace peal::sim
