// SPDX-License-Identifier: BSD-2-Clause
// What the random scenarios are made of, counted over the first thousand seeds: a corner that is
// hardly ever drawn is hardly ever tested. (What they reach when they run: corners.h.)
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "emulator/cluster/scenario_random.h"

namespace peal::sim {
namespace {

using Holds = std::function<bool(const Scenario&)>;

class Mix : public testing::Test {
 protected:
  static constexpr uint32_t kSeeds = 1000;

  static void SetUpTestSuite() {
    for (uint64_t seed = 1; seed <= kSeeds; seed++)
      scenarios_.push_back(random_scenario(seed, RandomLimits{}));
  }
  static void TearDownTestSuite() { scenarios_.clear(); }

  static uint32_t percent(const Holds& holds) {
    return static_cast<uint32_t>(std::count_if(scenarios_.begin(), scenarios_.end(), holds)) * 100 /
           kSeeds;
  }
  static uint32_t percent_of_groups(bool (*holds)(const GroupPlan&)) {
    return percent([holds](const Scenario& scenario) {
      return std::any_of(scenario.groups.begin(), scenario.groups.end(), holds);
    });
  }
  static std::vector<Scenario> scenarios_;
};

std::vector<Scenario> Mix::scenarios_;

// Whether the same cut is there in the other direction.
bool has_opposite(const Scenario& scenario, const WireCut& cut) {
  return std::any_of(scenario.cuts.begin(), scenario.cuts.end(), [&cut](const WireCut& other) {
    return other.from_card == cut.to_card && other.to_card == cut.from_card;
  });
}

TEST_F(Mix, EveryScenarioMakesSense) {
  for (const Scenario& scenario : scenarios_)
    EXPECT_EQ(scenario.problem(), "") << describe(scenario);
}

TEST_F(Mix, HalfOfThemLoseOneInTwentyOrMore) {
  EXPECT_GE(percent([](const Scenario& s) { return s.faults.loss >= 0.05; }), 50u);
  EXPECT_GE(percent([](const Scenario& s) { return s.faults.loss == 0; }), 10u);
  EXPECT_GE(percent([](const Scenario& s) { return s.faults.duplicate > 0; }), 30u);
  EXPECT_GE(percent([](const Scenario& s) { return s.faults.reorder > 0; }), 30u);
  EXPECT_GE(percent([](const Scenario& s) { return s.faults.corrupt > 0; }), 15u);
}

TEST_F(Mix, AccidentsInFourOfTen) {
  EXPECT_GE(percent([](const Scenario& s) { return !s.accidents.empty(); }), 40u);
  EXPECT_GE(percent([](const Scenario& s) { return s.accidents.size() > 1; }), 20u);
  for (const auto kind : {Accident::Kind::kSilence, Accident::Kind::kKill, Accident::Kind::kReset,
                          Accident::Kind::kWild, Accident::Kind::kRestart, Accident::Kind::kUnmap,
                          Accident::Kind::kFreeze})
    EXPECT_GE(percent([kind](const Scenario& s) {
                return std::any_of(s.accidents.begin(), s.accidents.end(),
                                   [kind](const Accident& each) { return each.kind == kind; });
              }),
              3u)
        << accident_name(kind);
  EXPECT_GE(
      percent([](const Scenario& s) { return !s.accidents.empty() && s.faults.loss >= 0.05; }),
      20u);
}

TEST_F(Mix, HostsLeaveInEveryWay) {
  EXPECT_GE(percent([](const Scenario& s) { return !s.early_closes.empty(); }), 25u);
  for (const bool connected : {false, true})
    EXPECT_GE(percent([connected](const Scenario& s) {
                return std::any_of(s.groups.begin(), s.groups.end(), [&](const GroupPlan& group) {
                  return !group.abandons.empty() && group.abandons[0].posts == 0 &&
                         group.abandons[0].connected == connected;
                });
              }),
              3u);
  EXPECT_GE(percent_of_groups([](const GroupPlan& group) {
              return !group.abandons.empty() && group.abandons[0].posts > 0;
            }),
            8u);
  EXPECT_GE(percent([](const Scenario& s) { return !s.chores.empty(); }), 30u);
  // Killed while the group is made.
  EXPECT_GE(percent([](const Scenario& s) {
              return std::any_of(s.accidents.begin(), s.accidents.end(), [&](const Accident& each) {
                return each.kind == Accident::Kind::kKill &&
                       std::any_of(s.groups.begin(), s.groups.end(), [&](const GroupPlan& group) {
                         for (size_t rank = 0; rank < group.places.size(); rank++)
                           if (group.places[rank] == each.place &&
                               each.at_ns < group.made_ns + group.connect_ns[rank])
                             return true;
                         return false;
                       });
              });
            }),
            1u);
}

TEST_F(Mix, WiresAreCutInEveryWay) {
  EXPECT_GE(percent([](const Scenario& s) { return !s.faults.partitions.empty(); }), 7u);
  EXPECT_GE(percent([](const Scenario& s) {
              return std::any_of(s.cuts.begin(), s.cuts.end(),
                                 [&s](const WireCut& cut) { return !has_opposite(s, cut); });
            }),
            5u);
  EXPECT_GE(percent([](const Scenario& s) {
              return std::any_of(s.cuts.begin(), s.cuts.end(),
                                 [&s](const WireCut& cut) { return has_opposite(s, cut); });
            }),
            5u);
  EXPECT_GE(percent([](const Scenario& s) {
              return std::any_of(s.cuts.begin(), s.cuts.end(),
                                 [](const WireCut& cut) { return cut.until_ns == kNever; });
            }),
            5u);
}

TEST_F(Mix, PatienceAndSpeed) {
  const auto nack = [](TimeNs from_us, TimeNs to_us) {
    return percent([=](const Scenario& s) {
      return s.timeouts.nack_ns >= from_us * kMicrosecond &&
             s.timeouts.nack_ns <= to_us * kMicrosecond;
    });
  };
  EXPECT_EQ(nack(20, 500), 100u);
  EXPECT_GE(nack(20, 50), 15u);
  EXPECT_GE(nack(300, 500), 15u);
  const auto processor = [](TimeNs from_ns, TimeNs to_ns) {
    return percent([=](const Scenario& s) {
      return s.costs.packet_ns >= from_ns && s.costs.packet_ns <= to_ns;
    });
  };
  EXPECT_EQ(processor(100, 10'000), 100u);
  EXPECT_GE(processor(100, 300), 15u);
  EXPECT_GE(processor(5'000, 10'000), 10u);
}

TEST_F(Mix, GroupsAndSequences) {
  EXPECT_GE(percent([](const Scenario& s) { return s.groups.size() > 1; }), 50u);
  EXPECT_GE(percent([](const Scenario& s) { return s.groups.size() > 2; }), 25u);
  EXPECT_GE(percent_of_groups([](const GroupPlan& g) { return g.after_group != kNoGroup; }), 15u);
  EXPECT_GE(percent_of_groups([](const GroupPlan& g) { return g.depth > 1; }), 50u);
  EXPECT_GE(percent_of_groups([](const GroupPlan& g) { return !g.disagreements.empty(); }), 10u);
  // So near to 2^32 that its operations, or its epochs, pass it.
  EXPECT_GE(percent_of_groups([](const GroupPlan& g) {
              return g.first_sequence != 0 &&
                     (g.first_sequence + g.post_count()) >> 32 != g.first_sequence >> 32;
            }),
            10u);
}

}  // namespace
}  // namespace peal::sim
