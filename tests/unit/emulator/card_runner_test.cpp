// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/card_runner.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/unit/emulator/stuck_page.h"
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
  // Until the timer that is due has sent, while more always comes than a turn takes.
  uint32_t turns_in_a_flood() {
    wait_for_the_other();
    room_.now = room_.cards[0]->deadline();
    uint32_t turns = 0;
    for (; sent() == 0 && turns < 1000; turns++) {
      room_.send_junk(0, 200 - room_.wire.frames(0));
      room_.turn();
    }
    return turns;
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
  // The timer was served in the turn that served the last of them, so late that it asks nobody
  // before it has looked again (0049).
  room_.now = room_.cards[0]->deadline();
  room_.turn();
  EXPECT_GE(sent(), 1u);
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

TEST_F(CardRunnerTest, AFloodStopsNoTimer) { EXPECT_LT(turns_in_a_flood(), 50u); }

TEST_F(CardRunnerTest, AFloodStopsNoTimerOfALongShare) {
  for (const auto& card : room_.cards) card->set_share(kLongShare);
  EXPECT_LT(turns_in_a_flood(), 50u);
}

// What a turn takes, by what share it has, and whether its host hears of it at once.
class ShareTest : public CardRunnerTest {
 protected:
  // The end of rank 0's barrier, behind so many frames.
  void wait_for_the_end(uint32_t junk) {
    wait_for_the_other();
    peal_host_ring_set_sleeping(&room_.hosts[0].ring, 1);
    room_.send_junk(0, junk);
    room_.post_barrier(1, 0);
    room_.cards[1]->serve(room_.now);
    ASSERT_EQ(room_.wire.frames(0), junk + 1);
  }
};

TEST_F(ShareTest, AShortOneIsABurst) {
  room_.send_junk(0, 100);
  room_.cards[0]->set_share(kShortShare);
  room_.cards[0]->serve(room_.now);
  EXPECT_EQ(dropped(), 32u);
}

TEST_F(ShareTest, ALongOneIsTwo) {
  room_.send_junk(0, 100);
  room_.cards[0]->set_share(kLongShare);
  room_.cards[0]->serve(room_.now);
  EXPECT_EQ(dropped(), 64u);
}

TEST_F(ShareTest, WhoWasLongAtItTellsItsHostAtOnce) {
  wait_for_the_end(40);
  room_.cards[0]->set_share(kLongShare);
  room_.cards[0]->serve(room_.now);
  EXPECT_EQ(room_.hosts[0].wakes, 1u);
}

// All are told in one go then, which is cheaper.
TEST_F(ShareTest, WhoWasNotDoesWhenAllAreServed) {
  wait_for_the_end(10);
  room_.cards[0]->set_share(kLongShare);
  room_.cards[0]->serve(room_.now);
  EXPECT_EQ(room_.hosts[0].wakes, 0u);
  room_.cards[0]->run_timers(room_.now, false);
  EXPECT_EQ(room_.hosts[0].wakes, 1u);
}

// Rank 0 of two, whose memory is that of this process.
class ProcessMemoryTest : public ::testing::Test {
 protected:
  static constexpr TimeNs kDeadlineNs = 1'000'000'000;

  ProcessMemoryTest() {
    room_.connect();
    lane_ = pool_.acquire();
    room_.cards[0]->host().lanes->attach_lane(room_.contexts[0], lane_);
  }
  uint32_t register_memory(uint32_t rank, uint64_t address) {
    room_.hosts[rank].process_address = address;
    peal_admin_command command = emulator::test::make_command(PEAL_ADMIN_REGISTER_MEMORY);
    command.u.register_memory.kind = PEAL_MEMORY_ALLOCATE;
    command.u.register_memory.access = PEAL_ACCESS_READ | PEAL_ACCESS_WRITE;
    command.u.register_memory.bytes = 4096;
    EXPECT_EQ(room_.execute(rank, command, room_.contexts[rank]), PEAL_STATUS_OK);
    return room_.reply.u.register_memory.key;
  }
  void post_allgather(uint32_t rank, uint32_t key) {
    peal_submission entry = {};
    entry.operation = PEAL_OPERATION_ALLGATHER;
    entry.algorithm = PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST;
    entry.member = room_.members[rank];
    entry.block_bytes = 64;
    entry.send_key = key;
    entry.receive_key = key;
    entry.receive_offset = 2048;
    ASSERT_TRUE(peal_host_ring_submit(&room_.hosts[rank].ring, &entry));
  }
  void turn() {
    room_.turn();
    for (const auto& card : room_.cards) card->tend_copies(room_.now);
  }

  CopyPool pool_{2};
  CopyLane* lane_ = nullptr;
  test::TwoCards room_{CopyOptions{&pool_, kDeadlineNs}};
};

TEST_F(ProcessMemoryTest, IsCopiedByOthers) {
  std::vector<uint8_t> memory(4096);
  for (size_t i = 0; i < 64; i++) memory[i] = static_cast<uint8_t>(i + 1);
  const uint32_t keys[] = {register_memory(0, reinterpret_cast<uintptr_t>(memory.data())),
                           register_memory(1, 0)};
  uint8_t* const other = room_.hosts[1].last_memory;
  for (size_t i = 0; i < 64; i++) other[i] = static_cast<uint8_t>(i + 101);
  for (const uint32_t rank : {0u, 1u}) post_allgather(rank, keys[rank]);
  peal_completion completion;
  while (!peal_host_ring_poll(&room_.hosts[0].ring, &completion)) {
    room_.now += 100;
    turn();
  }
  EXPECT_EQ(completion.status, PEAL_STATUS_OK);
  EXPECT_EQ(std::memcmp(&memory[2048], memory.data(), 64), 0);
  EXPECT_EQ(std::memcmp(&memory[2048 + 64], other, 64), 0);
}

TEST_F(ProcessMemoryTest, ThatCannotBeReachedEndsItsContext) {
  test::StuckPage stuck;
  if (!stuck.available()) GTEST_SKIP() << "the kernel gives this user no userfaultfd";
  post_allgather(0, register_memory(0, stuck.address()));
  while (!lane_->in_hand()) turn();
  // A loop that was away for long has not seen it late for long.
  room_.now += 100 * kDeadlineNs;
  turn();
  turn();
  emulator::Admin& admin = room_.cards[0]->admin();
  EXPECT_TRUE(admin.is_open(room_.contexts[0]));
  for (int i = 0; i < 200; i++) {
    room_.now += kDeadlineNs / 100;
    turn();
  }
  EXPECT_EQ(room_.hosts[0].ended,
            std::vector<emulator::EndReason>{emulator::EndReason::kCopyOverdue});
  EXPECT_EQ(admin.counts().copies_overdue, 1u);
  EXPECT_FALSE(room_.cards[0]->copies_under_way());  // nobody waits for it
  // Until it has really let go, all that is its stays reserved.
  admin.housekeeping();
  EXPECT_TRUE(room_.hosts[0].gone.empty());
  EXPECT_EQ(admin.closing_contexts(), 1u);
  EXPECT_EQ(room_.hosts[0].released, 0u);
  stuck.let_go();
  while (lane_->outstanding() > 0) turn();
  admin.housekeeping();
  EXPECT_EQ(room_.hosts[0].gone, std::vector<ContextId>{room_.contexts[0]});
  EXPECT_EQ(room_.hosts[0].released, 2u);  // memory and channels
}

}  // namespace
}  // namespace peal::nic
