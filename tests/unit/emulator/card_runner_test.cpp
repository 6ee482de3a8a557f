// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/card_runner.h"

#include <gtest/gtest.h>

#include "tests/unit/emulator/two_cards.h"

namespace peal::nic {
namespace {

class CardRunnerTest : public ::testing::Test {
 protected:
  CardRunnerTest() { room_.connect(); }
  // Rank 0 waits for rank 1, which has not posted: a timer is armed.
  void wait_for_the_other() {
    room_.post_barrier(0, 0);
    for (int i = 0; i < 10; i++) room_.turn();
    ASSERT_TRUE(room_.quiet());
    ASSERT_NE(room_.cards[0]->deadline(), kNever);
  }
  // Everything that card 0's timers do is to send.
  [[nodiscard]] uint64_t sent() const {
    const uint64_t* const counters = card_counters(room_.cards[0]->card());
    return counters[PEAL_COUNTER_SENT_NACK] + counters[PEAL_COUNTER_SENT_LIVENESS];
  }
  [[nodiscard]] uint64_t dropped() const {
    return card_counters(room_.cards[0]->card())[PEAL_COUNTER_DROP_ETHERTYPE];
  }

  test::TwoCards room_;
};

TEST_F(CardRunnerTest, BarrierOfTwo) {
  room_.post_barrier(0, 0);
  room_.post_barrier(1, 0);
  for (int i = 0; i < 10; i++) room_.turn();
  for (auto& host : room_.hosts) {
    peal_completion completion;
    ASSERT_TRUE(peal_host_ring_poll(&host.ring, &completion));
    EXPECT_EQ(completion.status, PEAL_STATUS_OK);
  }
}

TEST_F(CardRunnerTest, TimersRunWhenNothingWaits) {
  wait_for_the_other();
  room_.now = room_.cards[0]->deadline();
  room_.turn();
  EXPECT_EQ(sent(), 1u);
}

// A runner that was stopped finds every deadline passed, and the answers in its queues.
TEST_F(CardRunnerTest, TimersWaitForWhatHadArrived) {
  wait_for_the_other();
  room_.send_junk(0, 100);
  room_.now += 60'000'000'000;
  while (dropped() < 100) {
    EXPECT_EQ(sent(), 0u);
    room_.turn();
  }
  EXPECT_GE(sent(), 1u);  // in the turn that served the last of them
}

TEST_F(CardRunnerTest, TimersWaitForWhatAwaitsTheOthers) {
  wait_for_the_other();
  room_.send_junk(1, 40);
  room_.now = room_.cards[0]->deadline();
  room_.turn();
  EXPECT_EQ(sent(), 0u);
  room_.turn();
  EXPECT_EQ(sent(), 1u);
}

TEST_F(CardRunnerTest, TimersWaitForPostsThatWereCutShort) {
  wait_for_the_other();
  for (uint64_t i = 1; i <= 20; i++) room_.post_barrier(0, i);
  room_.now = room_.cards[0]->deadline();
  room_.turn();
  EXPECT_EQ(sent(), 0u);
  room_.turn();
  EXPECT_GE(sent(), 1u);
}

TEST_F(CardRunnerTest, AFloodStopsNoTimer) {
  wait_for_the_other();
  room_.now = room_.cards[0]->deadline();
  uint32_t turns = 0;
  for (; sent() == 0 && turns < 1000; turns++) {
    room_.send_junk(0, 200 - room_.wire.frames(0));
    room_.turn();
  }
  EXPECT_LT(turns, 50u);
}

}  // namespace
}  // namespace peal::nic
