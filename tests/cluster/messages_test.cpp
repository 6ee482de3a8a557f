// SPDX-License-Identifier: BSD-2-Clause
// Random messages, puts, gets and fences among collectives in virtual time, over bad wires, with
// late ranks and with one that dies: each request ends as the plan says, or with the dead rank's
// name, once, and the cards have nothing left. A seed alone says everything.
#include <gtest/gtest.h>

#include "emulator/cluster/message_hosts.h"
#include "emulator/cluster/random_surroundings.h"
#include "tests/cluster/spoils_a_payload.h"

namespace peal::sim {
namespace {

constexpr uint64_t kSeeds = 400;

// What was drawn, and what came of it.
struct Reached {
  uint32_t kinds[PEAL_OPERATION_COUNT] = {};
  uint32_t any_tag = 0;
  uint32_t to_itself = 0;
  uint32_t too_long = 0;
  uint32_t refused = 0;
  uint32_t told_of_a_death = 0;
  uint64_t lost = 0;

  void note(const MessagePlan& plan) {
    for (const MessagePlan::Transfer& each : plan.transfers()) {
      kinds[each.operation]++;
      any_tag += each.any_tag ? 1 : 0;
      to_itself += each.from == each.to ? 1 : 0;
      too_long += each.flaw == MessagePlan::Flaw::kRoom ? 1 : 0;
      refused += each.flaw > MessagePlan::Flaw::kRoom ? 1 : 0;
    }
  }
};

TEST(MessagesInTime, EndAsTheyMustWhateverHappens) {
  Reached all;
  for (uint64_t seed = 1; seed <= kSeeds; seed++) {
    const MessagePlan plan(seed);
    MessageHosts hosts(random_surroundings(seed, plan.ranks()), plan);
    hosts.run();
    ASSERT_EQ(hosts.problems(), "") << "seed " << seed << ", " << plan.ranks() << " ranks";
    all.note(plan);
    all.told_of_a_death += hosts.told_of_a_death();
    all.lost += hosts.frames_lost();
  }
  // A corner that no seed reached is not tested.
  for (const auto kind : {PEAL_OPERATION_SEND, PEAL_OPERATION_PUT, PEAL_OPERATION_GET,
                          PEAL_OPERATION_FENCE, PEAL_OPERATION_BARRIER, PEAL_OPERATION_BROADCAST}) {
    EXPECT_GT(all.kinds[kind], kSeeds / 2) << kind;
  }
  EXPECT_GT(all.any_tag, kSeeds / 2);
  EXPECT_GT(all.to_itself, kSeeds / 2);
  EXPECT_GT(all.too_long, kSeeds / 2);
  EXPECT_GT(all.refused, kSeeds / 2);
  EXPECT_GT(all.told_of_a_death, kSeeds);
  EXPECT_GT(all.lost, 10 * kSeeds);
}

// What the cluster sees by itself is not lost where nobody else looks.
TEST(MessagesInTime, AViolationIsAProblem) {
  const MessagePlan plan(3);
  SpoilsAPayload spoiler;
  MessageHosts hosts(random_surroundings(3, plan.ranks()), plan, &spoiler);
  hosts.run();
  EXPECT_NE(hosts.problems().find("a payload was written after it was sent"), std::string::npos)
      << hosts.problems();
}

TEST(MessagesInTime, ThatNeverEndAreStuckAndNothingElse) {
  const MessagePlan plan(3);
  ASSERT_EQ(plan.victim(), MessagePlan::kNobody);
  ClusterOptions options = random_surroundings(3, plan.ranks());
  options.timeouts.dead_ns = 1000 * kSecond;
  options.faults.loss = 1;
  MessageHosts hosts(options, plan);
  hosts.run();
  EXPECT_NE(hosts.problems().find("never ended"), std::string::npos);
  EXPECT_TRUE(hosts.only_stuck()) << hosts.problems();
  options.faults.loss = 0;
  MessageHosts fine(options, plan);
  fine.run();
  EXPECT_EQ(fine.problems(), "");
  EXPECT_FALSE(fine.only_stuck());
}

TEST(MessagesInTime, ASeedSaysEverything) {
  for (const uint64_t seed : {3, 11, 58}) {
    const MessagePlan plan(seed);
    MessageHosts first(random_surroundings(seed, plan.ranks()), plan);
    MessageHosts again(random_surroundings(seed, MessagePlan(seed).ranks()), plan);
    MessageHosts other(random_surroundings(seed + 1, plan.ranks()), plan);
    for (MessageHosts* each : {&first, &again, &other}) each->run();
    EXPECT_EQ(first.trace_hash(), again.trace_hash()) << seed;
    EXPECT_NE(first.trace_hash(), other.trace_hash()) << seed;
  }
}

}  // namespace
}  // namespace peal::sim
