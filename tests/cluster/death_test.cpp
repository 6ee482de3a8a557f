// SPDX-License-Identifier: BSD-2-Clause
// A member that dies makes every request of its groups end with an error that names it, within the
// configured time; an outage that ends before that time kills nobody.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/cluster/operation_case.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

constexpr TimeNs kFloodNs = 200 * kMillisecond;

using Case = OperationCase;
class Death : public testing::TestWithParam<Case> {};
class DeathAmongTheLate : public testing::TestWithParam<Case> {};

TEST_P(Death, ASilentCardIsNamedWithinTheTimeOut) {
  for (const uint32_t ranks : {2u, 5u, 8u, 13u}) {
    for (const TimeNs at_ns : {10 * kMicrosecond, 130 * kMicrosecond, 3 * kMillisecond}) {
      Scenario scenario = plan(ranks, GetParam().operation, 400, 2);
      scenario.groups[0].think_ns = 20 * kMicrosecond;
      scenario.accidents.push_back({Accident::Kind::kSilence, {1, 0}, at_ns});
      const Report report = run(scenario);
      EXPECT_TRUE(report.ok) << ranks << " ranks, silent at " << at_ns << "\n" << failures(report);
      EXPECT_GT(report.peer_dead, 0u);
      EXPECT_GE(report.finished_ns, scenario.timeouts.dead_ns / 2);
      EXPECT_LE(report.finished_ns, at_ns + scenario.timeouts.dead_ns + kFloodNs);
    }
  }
}

// Pairs of ranks that go on by themselves are busy for longer than that.
TEST(DeathOfAPair, IsNotHiddenByWhatOthersSend) {
  Scenario scenario = plan(8, direct(3'000'000), 1);
  scenario.timeouts.dead_ns = kMillisecond;
  scenario.timeouts.probe_interval_ns = 100 * kMicrosecond;
  scenario.accidents.push_back({Accident::Kind::kSilence, {4, 0}, 300 * kMicrosecond});
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_GT(report.peer_dead, 0u);
  EXPECT_LE(report.finished_ns, 300 * kMicrosecond + scenario.timeouts.dead_ns * 3 / 2);
}

// When the rank of a card was told that somebody is dead, and of whom.
class Verdict : public Observer {
 public:
  explicit Verdict(uint32_t card) : card_(card) {}
  void on_completion(TimeNs now, uint32_t card, uint32_t, const peal_completion& entry) override {
    if (card != card_ || at_ns_ != 0 || entry.status != PEAL_STATUS_PEER_DEAD) return;
    at_ns_ = now;
    dead_ = entry.failed_rank;
  }
  [[nodiscard]] TimeNs at_ns() const { return at_ns_; }
  [[nodiscard]] uint32_t dead() const { return dead_; }

 private:
  uint32_t card_;
  uint32_t dead_ = PEAL_NO_RANK;
  TimeNs at_ns_ = 0;
};

// Of 48 ranks 40 come late. One that dies is no peer of rank 0, which has got none of its blocks:
// its peers have them, so rank 0 alone finds out, whoever else it waits for.
TEST_P(DeathAmongTheLate, IsToldBeforeTheyCome) {
  constexpr uint32_t kRanks = 48;
  constexpr uint32_t kLate = 40;
  constexpr TimeNs kLateNs = 20 * kSecond;
  for (const uint32_t first_late : {1u, 4u, 8u}) {
    for (const uint32_t dead : {3u, 45u}) {
      if (dead >= first_late && dead < first_late + kLate) continue;
      Scenario scenario = plan(kRanks, GetParam().operation, 1);
      const Timeouts& times = scenario.timeouts;
      std::fill_n(scenario.groups[0].first_post_ns.begin() + first_late, kLate, kLateNs);
      scenario.cuts.push_back({dead, 0, 0, kNever});
      scenario.accidents.push_back({Accident::Kind::kSilence, {dead, 0}, kMillisecond});
      Verdict verdict(0);
      const Report report = run(scenario, {&verdict, {}});
      EXPECT_TRUE(report.ok) << failures(report);
      EXPECT_EQ(verdict.dead(), dead);
      // All have a place in a quarter of that time, but for the first probes; and one that is due
      // tells that the time is over.
      EXPECT_LE(verdict.at_ns(),
                kMillisecond + times.dead_ns * 5 / 4 + 2 * times.probe_interval_ns);
    }
  }
}

// Whoever does not answer is asked ever more slowly, too.
TEST_P(Death, ASilentCardIsNotStormed) {
  constexpr uint32_t kRanks = 8;
  Scenario scenario = plan(kRanks, GetParam().operation, 50);
  scenario.accidents.push_back({Accident::Kind::kSilence, {3, 0}, 20 * kMicrosecond});
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  // In every origin's tree all that is below the silent card is missing: N log2(N) / 2 blocks of
  // each open piece, asked for on the way to the longest interval and then once per interval.
  const uint64_t missing = kRanks * 3 / 2 * 2 * device().piece_window;
  const uint64_t questions =
      missing * (16 + scenario.timeouts.dead_ns / scenario.timeouts.nack_max_ns);
  EXPECT_LE(report.packets[PEAL_PACKET_NACK], questions);
}

// A group that has died may stand as long as its hosts like, and keeps nothing that nobody will
// post.
TEST_P(Death, AStandingGroupKeepsNoRecordsOfWhatNobodyPosted) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    Scenario scenario = plan(8, GetParam().operation, 20);
    scenario.seed = seed;
    scenario.groups[0].destroy = scenario.teardown = false;
    scenario.groups[0].think_ns = 40 * kMicrosecond;
    scenario.accidents.push_back({Accident::Kind::kSilence, {4, 0}, 100 * kMicrosecond});
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << "seed " << seed << "\n" << failures(report);
    EXPECT_GT(report.peer_dead, 0u);
  }
}

// A closed host connection is death at once: its card is there to say so.
TEST_P(Death, AKilledProcessIsNamedWithoutTheTimeOut) {
  for (const uint32_t ranks : {2u, 5u, 8u, 13u}) {
    Scenario scenario = plan(ranks, GetParam().operation, 400, 3);
    scenario.groups[0].think_ns = 20 * kMicrosecond;
    scenario.accidents.push_back({Accident::Kind::kKill, {1, 0}, 200 * kMicrosecond});
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << ranks << " ranks\n" << failures(report);
    EXPECT_GT(report.peer_dead, 0u);
    EXPECT_LE(report.finished_ns, kFloodNs);
  }
}

TEST_P(Death, DeathUnderLossIsToldAsWell) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    Scenario scenario = plan(9, GetParam().operation, 200, 4);
    scenario.seed = seed;
    scenario.faults.loss = 0.2;
    scenario.faults.duplicate = 0.1;
    scenario.faults.reorder = 0.2;
    scenario.accidents.push_back(
        {seed % 2 == 0 ? Accident::Kind::kSilence : Accident::Kind::kKill, {4, 0}, kMillisecond});
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << "seed " << seed << "\n" << failures(report);
    EXPECT_GT(report.peer_dead, 0u);
  }
}

TEST_P(Death, TwoDeathsAtOnce) {
  Scenario scenario = plan(8, GetParam().operation, 300, 2);
  scenario.accidents.push_back({Accident::Kind::kSilence, {2, 0}, 50 * kMicrosecond});
  scenario.accidents.push_back({Accident::Kind::kSilence, {6, 0}, 51 * kMicrosecond});
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_GT(report.peer_dead, 0u);
}

TEST_P(Death, AnOutageShorterThanTheTimeOutKillsNobody) {
  Scenario scenario = plan(6, GetParam().operation, 50, 2);
  scenario.groups[0].think_ns = 20 * kMicrosecond;
  emulator::Partition partition;
  partition.first_card = 0;
  partition.last_card = 2;
  partition.from_ns = 100 * kMicrosecond;
  partition.until_ns = partition.from_ns + scenario.timeouts.dead_ns * 3 / 4;
  scenario.faults.partitions.push_back(partition);
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_EQ(report.peer_dead, 0u);
}

TEST_P(Death, AnOutageLongerThanTheTimeOutIsDeath) {
  Scenario scenario = plan(6, GetParam().operation, 400, 2);
  emulator::Partition partition;
  partition.first_card = 0;
  partition.last_card = 2;
  partition.from_ns = 100 * kMicrosecond;
  partition.until_ns = partition.from_ns + 3 * scenario.timeouts.dead_ns;
  scenario.faults.partitions.push_back(partition);
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_GT(report.peer_dead, 0u);
}

// Another group on the same cards goes on as if nothing had happened.
TEST_P(Death, OtherGroupsOfTheSameCardsLive) {
  Scenario scenario = plan(5, GetParam().operation, 100, 2);
  GroupPlan other = scenario.groups[0];
  for (Place& place : other.places) place.process = 1;
  scenario.groups.push_back(other);
  scenario.accidents.push_back({Accident::Kind::kKill, {3, 0}, 100 * kMicrosecond});
  scenario.groups[0].think_ns = 10 * kMicrosecond;
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_GE(report.completed, 5u * 101);
  EXPECT_LE(report.peer_dead, 4u * 101);
}

// A process whose memory went away fails its operations, on every rank that needs it; nobody waits
// for ever.
TEST_P(Death, UnreachableMemoryIsToldToEverybody) {
  for (const uint32_t ranks : {2u, 5u, 8u}) {
    Scenario scenario = plan(ranks, GetParam().operation, 30, 3);
    scenario.groups[0].think_ns = 20 * kMicrosecond;
    scenario.faults.loss = 0.05;
    scenario.accidents.push_back({Accident::Kind::kUnmap, {1, 0}, 100 * kMicrosecond});
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << ranks << " ranks\n" << failures(report);
    EXPECT_EQ(report.dma_faults > 0, GetParam().operation.block_bytes > 0);
    EXPECT_EQ(report.peer_dead, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Operations, Death,
    testing::Values(
        Case{"barrier", kBarrier}, Case{"broadcast_small", broadcast(64)},
        Case{"broadcast_large", broadcast(20'000)}, Case{"doubling_small", doubling(64)},
        Case{"doubling_large", doubling(20'000)},
        Case{"root_broadcast_small", root_broadcast(64, 0)},
        Case{"root_broadcast_large", root_broadcast(20'000, 1)},
        Case{"root_broadcast_in_pieces", root_broadcast(600'000, 0)},
        Case{"alltoall_small", alltoall(64)}, Case{"alltoall_large", alltoall(9000, true)},
        Case{"direct", direct(700)}, Case{"direct_large", direct(9000, true)},
        Case{"direct_allgather", direct_allgather(700)},
        Case{"direct_allgather_large", direct_allgather(9000, true)}, Case{"ring", ring(700)},
        Case{"ring_large", ring(9000, true)}, Case{"allgatherv", allgatherv(700)},
        Case{"allgatherv_large", allgatherv(9000, true)}, Case{"alltoallv", alltoallv(700)},
        Case{"alltoallv_large", alltoallv(9000, true)},
        Case{"stepped_alltoallv", stepped_alltoallv(700)},
        Case{"stepped_alltoallv_large", stepped_alltoallv(9000, true)}),
    name_of_case);

// Blocks of one piece, and of as many as are sent at once: of the second kind those of whom none
// has come seem late.
const uint32_t kFewPieces = 2 * piece_bytes(48);
INSTANTIATE_TEST_SUITE_P(
    Operations, DeathAmongTheLate,
    testing::Values(Case{"direct", direct(64)}, Case{"direct_pieces", direct(kFewPieces)},
                    Case{"direct_allgather", direct_allgather(64)},
                    Case{"direct_allgather_pieces", direct_allgather(kFewPieces)},
                    Case{"alltoallv", alltoallv(64)}),
    name_of_case);

}  // namespace
}  // namespace peal::sim
