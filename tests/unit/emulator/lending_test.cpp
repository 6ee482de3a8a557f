// SPDX-License-Identifier: BSD-2-Clause
// Cards of peal-nic that leave what they read for one other card in its host's memory: what is
// copied once, and that nobody ever sees what the host has written there since.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tests/support/broadcast_pieces.h"
#include "tests/unit/emulator/two_cards.h"

namespace peal::nic {
namespace {

constexpr uint32_t kRanks = test::TwoCards::kCards;
constexpr uint64_t kWindow = CONFIG_PIECE_WINDOW * CONFIG_MTU_BYTES;
constexpr uint64_t kBlock = kWindow + CONFIG_MTU_BYTES;
// More than may be under way, so that the root waits for what has come.
constexpr uint64_t kBroadcast = (2 * CONFIG_PIECE_WINDOW + 2) * peal::test::kBroadcastPiece;
static_assert(CONFIG_MTU_BYTES > LentMemory::kLeast);

// All-to-alls of two: each rank's memory has a block for each rank, then room for one from each. Or
// broadcasts: a block, then room for one.
class Lending {
 public:
  explicit Lending(Checksums checksums = Checksums::kSkipped, const SwitchOptions& options = {})
      : room({&pool_, 1'000'000'000}, checksums, options) {
    room.connect();
  }

  // In memory of the process, or else mapped.
  void make_memory(uint32_t rank, bool of_process = false) {
    if (of_process) {
      own_.assign(kBytes, 0);
      room.hosts[rank].process_address = reinterpret_cast<uintptr_t>(own_.data());
      room.cards[rank]->host().lanes->attach_lane(room.contexts[rank], pool_.acquire());
    }
    peal_admin_command command = emulator::test::make_command(PEAL_ADMIN_REGISTER_MEMORY);
    command.u.register_memory.kind = PEAL_MEMORY_ALLOCATE;
    command.u.register_memory.access = PEAL_ACCESS_READ | PEAL_ACCESS_WRITE;
    command.u.register_memory.bytes = kBytes;
    ASSERT_EQ(room.execute(rank, command, room.contexts[rank]), PEAL_STATUS_OK);
    keys_[rank] = room.reply.u.register_memory.key;
    memory[rank] = of_process ? own_.data() : room.hosts[rank].last_memory;
    for (uint64_t i = 0; i < kBytes / 2; i++) memory[rank][i] = byte(rank, i);
  }
  void make_all() {
    for (uint32_t rank = 0; rank < kRanks; rank++) make_memory(rank);
  }
  // A broadcast from rank 0.
  void post_broadcast(uint32_t rank, uint64_t block) {
    peal_submission entry = {};
    entry.operation = PEAL_OPERATION_BROADCAST;
    entry.algorithm = PEAL_ALGORITHM_BINOMIAL;
    entry.member = room.members[rank];
    entry.block_bytes = block;
    entry.send_key = keys_[0];
    entry.receive_key = keys_[rank];
    entry.receive_offset = kBytes / 2;
    ASSERT_TRUE(peal_host_ring_submit(&room.hosts[rank].ring, &entry));
  }
  void post(uint32_t rank, uint64_t block = kBlock, uint16_t flags = 0) {
    peal_submission entry = {};
    entry.operation = PEAL_OPERATION_ALLTOALL;
    entry.algorithm = PEAL_ALGORITHM_DIRECT;
    entry.flags = flags;
    entry.member = room.members[rank];
    entry.block_bytes = block;
    entry.send_key = keys_[rank];
    entry.receive_key = keys_[rank];
    entry.receive_offset = (flags & PEAL_SUBMIT_IN_PLACE) != 0 ? 0 : kBytes / 2;
    ASSERT_TRUE(peal_host_ring_submit(&room.hosts[rank].ring, &entry));
  }
  // One card alone, as when it is on another thread than the other one.
  void serve(uint32_t rank, int turns = 20) {
    room.wire.set_now(room.now);
    for (int i = 0; i < turns; i++) {
      room.cards[rank]->serve(room.now);
      room.cards[rank]->tend_copies(room.now);
    }
  }
  // The status, when it is over.
  int status(uint32_t rank) {
    peal_completion completion;
    if (!peal_host_ring_poll(&room.hosts[rank].ring, &completion)) return -1;
    return completion.status;
  }
  int wait(uint32_t rank) {
    int found = -1;
    while ((found = status(rank)) < 0) {
      room.now += 100;
      for (uint32_t card = 0; card < kRanks; card++) serve(card, 1);
    }
    return found;
  }
  // What rank 1 has of a broadcast.
  [[nodiscard]] bool has_broadcast(uint64_t block) const {
    for (uint64_t i = 0; i < block; i++)
      if (memory[1][kBytes / 2 + i] != byte(0, i)) return false;
    return true;
  }
  void scribble(uint32_t rank) { std::memset(memory[rank], 0xee, kBytes / 2); }
  [[nodiscard]] bool has_block(uint32_t rank, uint32_t from, uint64_t block = kBlock,
                               uint64_t at = kBytes / 2) const {
    for (uint64_t i = 0; i < block; i++)
      if (memory[rank][at + from * block + i] != byte(from, rank * block + i)) return false;
    return true;
  }
  [[nodiscard]] bool is_right(uint32_t rank, uint64_t block = kBlock,
                              uint64_t at = kBytes / 2) const {
    return has_block(rank, 0, block, at) && has_block(rank, 1, block, at);
  }
  [[nodiscard]] uint64_t copied_once() const { return room.mapped.bytes_once(); }

  static constexpr uint64_t kBytes = 2 * std::max<uint64_t>(kRanks * kBlock, kBroadcast);
  test::TwoCards room;
  std::array<uint8_t*, kRanks> memory{};

 private:
  static uint8_t byte(uint32_t rank, uint64_t at) {
    return static_cast<uint8_t>(at * 7 + at / 256 + rank * 101 + 1);
  }

  CopyPool pool_{1};
  std::vector<uint8_t> own_;
  std::array<uint32_t, kRanks> keys_{};
};

TEST(LendingTest, LongBlocksForOneRankAreCopiedOnce) {
  Lending test;
  test.make_all();
  for (uint32_t rank = 0; rank < kRanks; rank++) test.post(rank);
  for (uint32_t rank = 0; rank < kRanks; rank++) {
    EXPECT_EQ(test.wait(rank), PEAL_STATUS_OK);
    EXPECT_TRUE(test.is_right(rank));
  }
  // But for what is on its way when its rank is over.
  EXPECT_GE(test.copied_once(), kRanks * kRanks * kBlock - kWindow);
}

// Rank 1 was first, so that rank 0 is over before anybody has looked at what it sent.
TEST(LendingTest, AHostMayWriteWhenItsOperationIsOver) {
  Lending test;
  test.make_all();
  test.post(1, kWindow);
  test.serve(1);
  test.post(0, kWindow);
  test.serve(0);
  ASSERT_EQ(test.status(0), PEAL_STATUS_OK);
  ASSERT_TRUE(test.room.wire.has_frames(1));
  test.scribble(0);
  EXPECT_EQ(test.wait(1), PEAL_STATUS_OK);
  EXPECT_TRUE(test.is_right(1, kWindow));
}

// The last piece that rank 0 waits for is still to be sent.
TEST(LendingTest, WhatIsSentIsThereWhenTheMemoryIsGone) {
  Lending test;
  test.make_all();
  test.post(1);
  test.serve(1);
  test.post(0);
  test.serve(0);
  ASSERT_TRUE(test.room.wire.has_frames(1));
  ASSERT_EQ(test.room.execute(0, emulator::test::make_command(PEAL_ADMIN_CLOSE_CONTEXT),
                              test.room.contexts[0]),
            PEAL_STATUS_OK);
  test.serve(0);
  test.room.cards[0]->admin().housekeeping();
  ASSERT_GE(test.room.hosts[0].released, 1u);
  test.scribble(0);
  // What came before the news of its death.
  test.serve(1);
  EXPECT_TRUE(test.has_block(1, 0));
}

TEST(LendingTest, MemoryOfAProcessGetsItFromThePacket) {
  Lending test;
  test.make_memory(0);
  test.make_memory(1, true);
  test.post(1);
  test.serve(1);
  test.post(0);
  EXPECT_EQ(test.wait(0), PEAL_STATUS_OK);
  test.scribble(0);
  EXPECT_EQ(test.wait(1), PEAL_STATUS_OK);
  for (uint32_t rank = 0; rank < kRanks; rank++) EXPECT_TRUE(test.is_right(rank)) << rank;
  EXPECT_EQ(test.copied_once(), kBlock);  // rank 0's own
}

TEST(LendingTest, ABroadcastIsCopiedOnce) {
  Lending test;
  test.make_all();
  for (uint32_t rank = 0; rank < kRanks; rank++) test.post_broadcast(rank, kBroadcast);
  for (uint32_t rank = 0; rank < kRanks; rank++) EXPECT_EQ(test.wait(rank), PEAL_STATUS_OK);
  EXPECT_TRUE(test.has_broadcast(kBroadcast));
  // But for what is on its way when the root is over.
  EXPECT_GE(test.copied_once(), 2 * peal::test::kBroadcastPiece);
}

TEST(LendingTest, ARootMayWriteWhenItsBroadcastIsOver) {
  Lending test;
  test.make_all();
  test.post_broadcast(0, kBlock);
  test.serve(0);
  ASSERT_EQ(test.status(0), PEAL_STATUS_OK);
  ASSERT_TRUE(test.room.wire.has_frames(1));
  test.scribble(0);
  test.post_broadcast(1, kBlock);
  EXPECT_EQ(test.wait(1), PEAL_STATUS_OK);
  EXPECT_TRUE(test.has_broadcast(kBlock));
}

class NotLent : public ::testing::Test {
 protected:
  static void expect_copied_twice(Lending& test, uint64_t block, uint16_t flags = 0) {
    test.make_all();
    for (uint32_t rank = 0; rank < kRanks; rank++) test.post(rank, block, flags);
    const uint64_t at = flags == 0 ? Lending::kBytes / 2 : 0;
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      EXPECT_EQ(test.wait(rank), PEAL_STATUS_OK);
      EXPECT_TRUE(test.is_right(rank, block, at));
    }
    EXPECT_EQ(test.copied_once(), 0u);
  }
};

TEST_F(NotLent, WhatIsSummed) {
  Lending test(Checksums::kSoftware);
  expect_copied_twice(test, kBlock);
}

TEST_F(NotLent, WhatAWireMayRepeat) {
  SwitchOptions options;
  options.faults.duplicate = 0.5;
  Lending test(Checksums::kSkipped, options);
  expect_copied_twice(test, kBlock);
}

// Blocks take each other's place.
TEST_F(NotLent, WhatIsExchangedInPlace) {
  Lending test;
  expect_copied_twice(test, kBlock, PEAL_SUBMIT_IN_PLACE);
}

TEST_F(NotLent, WhatIsShort) {
  Lending test;
  expect_copied_twice(test, LentMemory::kLeast - 1);
}

}  // namespace
}  // namespace peal::nic
