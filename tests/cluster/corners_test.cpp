// SPDX-License-Identifier: BSD-2-Clause
// A corner is reached by what happened, and not by what a scenario asked for.
#include "emulator/cluster/corners.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

// Whether one run is enough for it.
bool reaches(const Scenario& scenario, const Report& report, const std::string& corner) {
  Corners corners;
  corners.add(scenario, report);
  const std::vector<std::string> missing = corners.missing();
  return std::find(missing.begin(), missing.end(), corner) == missing.end();
}

// What came of it, and of the same where the second rank is killed before anybody posts: then
// nothing succeeds.
void expect_reached_by_success(Scenario scenario, const std::string& corner) {
  const Report done = run(scenario);
  EXPECT_TRUE(done.ok) << failures(done);
  EXPECT_TRUE(reaches(scenario, done, corner)) << corner;
  scenario.accidents.push_back({Accident::Kind::kKill, scenario.groups[0].places[1], 1, 0});
  const Report killed = run(scenario);
  EXPECT_TRUE(killed.ok) << failures(killed);
  EXPECT_EQ(killed.completed, 0u);
  EXPECT_FALSE(reaches(scenario, killed, corner)) << corner;
}

TEST(Corner, OfOperationsIsReachedWhenAllRanksSucceed) {
  OperationPlan some_in_place = direct(100);
  some_in_place.in_place = some_in_place.place_by_rank = true;
  expect_reached_by_success(plan(8, some_in_place, 1), "in place on some ranks");
  const auto parts = [](OperationPlan operation) {
    Scenario scenario = plan(8, operation, 0);
    for (uint32_t draw = 0; draw < 20; draw++) {
      operation.lengths = draw;
      scenario.groups[0].operations.push_back(operation);
    }
    return scenario;
  };
  expect_reached_by_success(parts(allgatherv(40'000)), "an empty block for all beside a long one");
  expect_reached_by_success(parts(alltoallv(40'000)), "two ranks with long blocks for each other");
}

TEST(Corner, OfSequencesIsReachedByAnOperationBehindThem) {
  Scenario scenario = plan(4, kBarrier, 2 * device().channels);
  scenario.groups[0].first_sequence = (uint64_t{1} << 32) - device().channels;
  expect_reached_by_success(scenario, "sequences past 2^32");
}

TEST(Corner, OfAGroupInThePlaceOfAnotherIsReachedWhenItIsMade) {
  Scenario scenario = plan(4, kBarrier, 1);
  GroupPlan next = scenario.groups[0];
  next.after_group = 0;
  scenario.groups.push_back(next);
  expect_reached_by_success(scenario, "a group in the place of another");
  expect_reached_by_success(scenario, "several groups");
}

// Strangers whose wire is cut before the group has done all, and after.
TEST(Corner, OfACutBetweenStrangersIsReachedByAGroupThatGoesOn) {
  Scenario scenario = plan(8, kBarrier, 20);
  const std::string corner = "cut for good between strangers";
  scenario.cuts.push_back({1, 4, 0, kNever});
  EXPECT_TRUE(reaches(scenario, run(scenario), corner));
  scenario.cuts[0].from_ns = kSecond;
  EXPECT_FALSE(reaches(scenario, run(scenario), corner));
}

// Nothing is lent where checksums are computed, nor is a batch where there is no DMA.
TEST(Corner, OfTheEngineIsReachedByWhatItDoes) {
  Scenario scenario = plan(8, direct(20'000), 20);
  scenario.lends = true;
  scenario.dma_batch = 8;
  scenario.faults.loss = 0.05;
  const std::string lent = "memory lent, and something sent again";
  EXPECT_TRUE(reaches(scenario, run(scenario), lent));
  scenario.checksums = ChecksumChoice::kSoftware;
  EXPECT_FALSE(reaches(scenario, run(scenario), lent));
  const std::string batches = "an engine that makes most of batches";
  EXPECT_TRUE(reaches(scenario, run(scenario), batches));
  scenario.groups[0].operations = {kBarrier};
  EXPECT_FALSE(reaches(scenario, run(scenario), batches));
}

}  // namespace
}  // namespace peal::sim
