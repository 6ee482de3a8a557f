// SPDX-License-Identifier: BSD-2-Clause
// Random programs in virtual time, over bad wires: what must come out does, start after start, and
// the cards have nothing left.
#include "tools/peal-sim/random_programs.h"

#include <gtest/gtest.h>

#include "tools/peal-sim/random_runs.h"

namespace peal::sim {
namespace {

constexpr uint64_t kSeeds = 120;

TEST(RandomProgramsInTime, BringWhatTheyMustWhateverTheWireDoes) {
  RandomPrograms::Counts all;
  for (uint64_t seed = 1; seed <= kSeeds; seed++) {
    const RandomPrograms plan(seed);
    ASSERT_EQ(run_random(RandomKind::kPrograms, seed).problems, "") << "seed " << seed;
    all.puts += plan.counts().puts;
    all.messages += plan.counts().messages;
    all.signals += plan.counts().signals;
    all.passed_on += plan.counts().passed_on;
    all.gated += plan.counts().gated;
    all.to_itself += plan.counts().to_itself;
  }
  // A corner that no seed reached is not tested.
  EXPECT_GT(all.puts, kSeeds);
  EXPECT_GT(all.messages, kSeeds);
  EXPECT_GT(all.signals, kSeeds);
  EXPECT_GT(all.passed_on, kSeeds);
  EXPECT_GT(all.gated, kSeeds);
  EXPECT_GT(all.to_itself, kSeeds / 2);
}

// A round's bytes are no other round's: what an earlier one left there is wrong.
TEST(RandomProgramsInTime, WhatAnEarlierRoundLeftIsWrong) {
  for (uint64_t seed = 1; seed <= kSeeds; seed++) {
    const RandomPrograms plan(seed);
    std::vector<uint8_t> send(plan.bytes());
    std::vector<uint8_t> receive(plan.bytes());
    for (uint32_t rank = 0; rank < plan.ranks(); rank++) {
      plan.fill(rank, 1, send.data(), receive.data());
      EXPECT_GE(plan.wrong_bytes(rank, 2, receive.data()), plan.bytes() * 9 / 10) << seed;
    }
  }
}

}  // namespace
}  // namespace peal::sim
