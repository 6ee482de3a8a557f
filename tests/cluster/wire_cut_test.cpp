// SPDX-License-Identifier: BSD-2-Clause
// Links that are cut, in one direction or both: between ranks that watch each other a long cut is
// death and a short one nothing; between all others no cut matters at all.
#include <gtest/gtest.h>

#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

void cut_pair(Scenario* scenario, uint32_t a, uint32_t b, TimeNs until_ns = kNever) {
  scenario->cuts.push_back({a, b, 0, until_ns});
  scenario->cuts.push_back({b, a, 0, until_ns});
}

TEST(WireCut, PeersThatNeverHearEachOtherAreDeadToEachOther) {
  for (const bool both : {true, false}) {
    for (const auto& operation : {kBarrier, broadcast(2000), doubling(2000)}) {
      Scenario scenario = plan(8, operation, 20);
      scenario.cuts.push_back({1, 2, 50 * kMicrosecond, kNever});
      if (both) scenario.cuts.push_back({2, 1, 50 * kMicrosecond, kNever});
      const Report report = run(scenario);
      EXPECT_TRUE(report.ok) << failures(report);
      EXPECT_GT(report.peer_dead, 0u);
      EXPECT_GT(report.cluster.dropped_cut, 0u);
    }
  }
}

TEST(WireCut, AShortCutKillsNobody) {
  for (const bool both : {true, false}) {
    for (const auto& operation : {kBarrier, broadcast(2000), doubling(2000)}) {
      Scenario scenario = plan(8, operation, 20);
      scenario.cuts.push_back({1, 2, 50 * kMicrosecond, scenario.timeouts.dead_ns * 3 / 4});
      if (both)
        scenario.cuts.push_back({2, 1, 50 * kMicrosecond, scenario.timeouts.dead_ns * 3 / 4});
      const Report report = run(scenario);
      EXPECT_TRUE(report.ok) << failures(report);
      EXPECT_EQ(report.peer_dead, 0u);
      EXPECT_GT(report.cluster.dropped_cut, 0u);
    }
  }
}

// Of 8 ranks 0 and 3 (and 5 and 2, 1 and 4) are no peers: nothing is ever sent between them.
TEST(WireCut, RanksThatAreNoPeersNeedNoWire) {
  for (const auto& operation : {kBarrier, broadcast(2000), doubling(2000)}) {
    Scenario scenario = plan(8, operation, 30, 2);
    cut_pair(&scenario, 0, 3);
    cut_pair(&scenario, 2, 5);
    cut_pair(&scenario, 1, 4);
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << failures(report);
    EXPECT_EQ(report.peer_dead, 0u);
    EXPECT_EQ(report.cluster.dropped_cut, 0u);
  }
}

// Of long broadcasts a link loses hundreds of packets: 512 of the emulator's cards, which in eight
// bits are none. (The root has ended them all.)
TEST(WireCut, ALinkThatLosesALongBurstIsAskedAgain) {
  uint64_t lost_many = 0;
  for (TimeNs end = 13 * kMillisecond; end < 60 * kMillisecond; end += kMillisecond) {
    Scenario scenario = plan(8, root_broadcast(512 << 10, 0), device().channels, device().channels);
    scenario.cuts.push_back({0, 1, 0, end});
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << failures(report);
    EXPECT_EQ(report.peer_dead, 0u);
    EXPECT_LT(report.finished_ns, end + 200 * kMillisecond) << end;
    lost_many += report.cluster.dropped_cut >= 256;
  }
  EXPECT_GE(lost_many, 40u);
}

}  // namespace
}  // namespace peal::sim
