// SPDX-License-Identifier: BSD-2-Clause
// One set of options, read by the programs with a wire and passed on by the others.
#include "emulator/common/fault_options.h"

#include <gtest/gtest.h>

namespace peal::command_line {
namespace {

class FaultOptionsTest : public ::testing::Test {
 protected:
  FaultOptionsTest() : app_("tool", "tool [OPTIONS]", "") {
    options_.add_faults(app_);
    options_.add_plan_and_seed(app_);
  }
  // The plan as text and the seed, or what is wrong.
  std::string read(std::vector<const char*> words) {
    words.insert(words.begin(), "tool");
    EXPECT_EQ(app_.parse(static_cast<int>(words.size()), words.data()), std::nullopt);
    emulator::FaultPlan plan;
    if (std::string error = options_.read(&plan); !error.empty()) return error;
    return format_fault_plan(plan) + " seed=" + std::to_string(options_.seed());
  }

  App app_;
  FaultOptions options_;
};

TEST_F(FaultOptionsTest, WithoutAnyThereAreNone) {
  EXPECT_EQ(read({}), " seed=1");
  EXPECT_EQ(options_.words(), std::vector<std::string>{});
}

TEST_F(FaultOptionsTest, All) {
  EXPECT_EQ(read({"--loss", "0.1", "--duplicate=0.2", "--reorder=0.3", "--reorder-us=1",
                  "--delay=0.4", "--delay-us=2", "--corrupt=0.5", "--seed=0x10", "--fault-plan",
                  "partition=0-1:5-9,until_us=20", "--fault-plan", "partition=2-3:5-9"}),
            "loss=0.1,duplicate=0.2,reorder=0.3,delay=0.4,corrupt=0.5,reorder_us=1,delay_us=2,"
            "until_us=20,partition=0-1:5-9,partition=2-3:5-9 seed=16");
}

TEST_F(FaultOptionsTest, AFractionOfAMicrosecond) {
  const char* const words[] = {"tool", "--reorder-us", "0.25"};
  EXPECT_EQ(app_.parse(std::size(words), words), std::nullopt);
  emulator::FaultPlan plan;
  EXPECT_EQ(options_.read(&plan), "");
  EXPECT_EQ(plan.reorder_ns, 250u);
  EXPECT_EQ(plan.delay_ns, 200'000u);
}

TEST_F(FaultOptionsTest, WhatIsPassedOnMeansTheSame) {
  const std::string meant = read({"--delay", "0.25", "--fault-plan", "loss=0.1", "--seed", "9",
                                  "--fault-plan", "duplicate=0.5"});
  const std::vector<std::string> words = options_.words();
  EXPECT_EQ(words, (std::vector<std::string>{"--delay=0.25", "--fault-plan=loss=0.1",
                                             "--fault-plan=duplicate=0.5", "--seed=9"}));
  std::vector<const char*> again;
  for (const std::string& word : words) again.push_back(word.c_str());
  EXPECT_EQ(read(again), meant);
}

TEST_F(FaultOptionsTest, APlanThatMakesNoSense) {
  EXPECT_EQ(read({"--fault-plan", "partition=3-1:0-5"}),
            "--fault-plan: partition of cards 3-1: the first card must not exceed the last");
  EXPECT_EQ(
      read({"--fault-plan", "loss=0.1,ring=2"}),
      "--fault-plan: cannot read 'ring=2'; terms are loss= duplicate= reorder= delay= corrupt= "
      "(0 to 1), reorder_us= delay_us= until_us=, partition=FIRST-LAST:FROM_US-UNTIL_US, "
      "spare=FIRST-LAST");
}

}  // namespace
}  // namespace peal::command_line
