// SPDX-License-Identifier: BSD-2-Clause
// What happens to hosts and cards besides silence and kills: windows that are reset or spoiled,
// cards that come back as others, hosts that give up or die while the group is made, hosts that
// close while others still ask, and sequences that pass 2^32.
#include <gtest/gtest.h>

#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

constexpr TimeNs kFloodNs = 200 * kMillisecond;

Scenario mixed(uint32_t cards) {
  Scenario scenario = plan(cards, kBarrier, 1, 3);
  for (uint32_t i = 0; i < 20; i++) {
    const uint32_t bytes = 64 << (i % 9);
    scenario.groups[0].operations.push_back(i % 2 == 0 ? broadcast(bytes) : doubling(bytes));
    if (i % 5 == 0) scenario.groups[0].operations.push_back(kBarrier);
  }
  scenario.faults.loss = 0.1;
  scenario.faults.until_ns = 10 * kSecond;
  return scenario;
}

// The window's owner is ended, and its card says so at once; nobody else of the card notices.
TEST(Accidents, AWindowThatIsResetOrRunsWildEndsItsProcess) {
  for (const auto kind : {Accident::Kind::kReset, Accident::Kind::kWild}) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
      Scenario scenario = mixed(6);
      scenario.seed = seed;
      scenario.groups[0].think_ns = 20 * kMicrosecond;
      GroupPlan other = scenario.groups[0];
      for (Place& place : other.places) place.process = 1;
      const uint64_t posts = other.post_count();
      scenario.groups.push_back(other);
      scenario.accidents.push_back({kind, {2, 0}, 100 * kMicrosecond, 0});
      const Report report = run(scenario);
      EXPECT_TRUE(report.ok) << "seed " << seed << "\n" << failures(report);
      EXPECT_GT(report.peer_dead, 0u);
      EXPECT_GE(report.completed, 6 * posts);
      EXPECT_LE(report.finished_ns, kFloodNs) << "its card says so: nobody waits for silence";
    }
  }
}

// The old group hears of the death; a new one over the same cards, with the card that came back,
// works, though the old one's packets still fly.
TEST(Accidents, ACardComesBackAsAnother) {
  for (const TimeNs down_ns : {100 * kMicrosecond, 50 * kMillisecond, 3 * kSecond}) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
      Scenario scenario = mixed(6);
      scenario.seed = seed;
      scenario.groups[0].think_ns = 20 * kMicrosecond;
      scenario.accidents.push_back({Accident::Kind::kRestart, {2, 0}, 150 * kMicrosecond, down_ns});
      GroupPlan next = mixed(6).groups[0];
      next.made_ns = 150 * kMicrosecond + down_ns + 10 * kMicrosecond;
      for (Place& place : next.places)
        if (place.card != 2) place.process = 1;
      const uint64_t posts = next.post_count();
      scenario.groups.push_back(next);
      const Report report = run(scenario);
      EXPECT_TRUE(report.ok) << "seed " << seed << "\n" << failures(report);
      EXPECT_GT(report.peer_dead, 0u);
      EXPECT_GE(report.completed, 6 * posts);
    }
  }
}

// A card that comes back twice, the second time over a group that was made and is done in between.
TEST(Accidents, RestartsOfACardMayOverlap) {
  Scenario scenario = mixed(3);
  scenario.accidents.push_back(
      {Accident::Kind::kRestart, {0, 0}, 2 * kMicrosecond, 200 * kMillisecond});
  scenario.accidents.push_back({Accident::Kind::kRestart, {0, 0}, 70 * kMicrosecond, 0});
  GroupPlan next = make_group(1, 1);
  next.operations.assign(5, broadcast(100));
  next.made_ns = 100 * kMicrosecond;
  scenario.groups.push_back(next);
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_GE(report.completed, next.post_count());
}

TEST(Accidents, ARankThatGivesUpIsNamed) {
  for (const bool connected : {false, true}) {
    for (const uint32_t ranks : {2u, 5u, 8u}) {
      Scenario scenario = mixed(ranks);
      scenario.groups[0].abandons.push_back({1, connected});
      scenario.groups[0].connect_ns[1] = 30 * kMicrosecond;
      const Report report = run(scenario);
      EXPECT_TRUE(report.ok) << ranks << " ranks\n" << failures(report);
      EXPECT_EQ(report.completed, 0u);
      EXPECT_EQ(report.peer_dead, (ranks - 1) * scenario.groups[0].post_count());
      if (connected) {
        EXPECT_LE(report.finished_ns, kFloodNs);
      }
    }
  }
}

// Leaves while operations are under way, its own too, and at once or a little later.
TEST(Accidents, ARankThatAbortsIsNamed) {
  for (const TimeNs after_ns : {TimeNs{0}, 3 * kMicrosecond, 10 * kMicrosecond}) {
    for (const uint32_t ranks : {2u, 5u, 8u}) {
      for (uint64_t seed = 1; seed <= 10; seed++) {
        Scenario scenario = mixed(ranks);
        scenario.seed = seed;
        scenario.groups[0].abandons.push_back({1, true, 3, after_ns});
        const Report report = run(scenario);
        EXPECT_TRUE(report.ok) << ranks << " ranks, seed " << seed << "\n" << failures(report);
        EXPECT_GE(report.peer_dead, ranks - 1);
        EXPECT_EQ(report.happened.at("abort"), 1u);
        // What it has not posted has succeeded on no rank, nor on its own.
        if (after_ns == 0) {
          EXPECT_LE(report.completed, 3u * ranks);
        }
      }
    }
  }
}

// Killed after it has reserved its place and before it is connected, and after.
TEST(Accidents, ADeathInSetUpIsToldToo) {
  for (const TimeNs at_ns : {10 * kMicrosecond, 60 * kMicrosecond}) {
    for (const uint32_t ranks : {2u, 5u, 8u}) {
      Scenario scenario = mixed(ranks);
      scenario.groups[0].connect_ns[1] = 50 * kMicrosecond;
      scenario.groups[0].first_post_ns[1] = 100 * kMicrosecond;
      scenario.accidents.push_back({Accident::Kind::kKill, {1, 0}, at_ns, 0});
      const Report report = run(scenario);
      EXPECT_TRUE(report.ok) << ranks << " ranks\n" << failures(report);
      EXPECT_EQ(report.completed, 0u);
      EXPECT_EQ(report.peer_dead, (ranks - 1) * scenario.groups[0].post_count());
    }
  }
}

// The wire has 32 bits of a sequence and of an epoch: both pass their end here.
TEST(Accidents, SequencesPassTheEndOfTheWiresBits) {
  const uint32_t half = device().channels / 2;
  for (const uint64_t end : {uint64_t{1} << 32, uint64_t{half} << 32}) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
      Scenario scenario = mixed(7);
      scenario.seed = seed;
      for (uint32_t i = 0; i < 4 * device().channels; i++)
        scenario.groups[0].operations.push_back(broadcast(100 + i));
      scenario.groups[0].first_sequence = end - 32;
      const Report report = run(scenario);
      EXPECT_TRUE(report.ok) << "seed " << seed << "\n" << failures(report);
      EXPECT_EQ(report.completed, 7 * scenario.groups[0].post_count());
    }
  }
}

}  // namespace
}  // namespace peal::sim
