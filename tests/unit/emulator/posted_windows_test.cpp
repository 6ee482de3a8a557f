// SPDX-License-Identifier: BSD-2-Clause
// Administration and a card over windows that can only be reached by posting reads and writes.
#include "tests/unit/emulator/posted_windows.h"
#include "firmware/channels.h"

#include <gtest/gtest.h>

#include <vector>

#include "emulator/common/admin.h"
#include "tests/unit/emulator/lone_card.h"

namespace peal::emulator {
namespace {

class PostedWindowsTest : public ::testing::Test, public MemoryProvider {
 protected:
  PostedWindowsTest() {
    card_.port.windows = &windows_;
    peal_host_ring_init(&ring_, remote_.bytes, kRingEntries);
    context_ = execute(test::make_command(PEAL_ADMIN_OPEN_CONTEXT), kNoContext) == PEAL_STATUS_OK
                   ? reply_.u.open.context
                   : kNoContext;
  }
  peal_status execute(const peal_admin_command& command, ContextId context) {
    return admin_.execute(command, sizeof(command), context, *this, card_.now, &reply_);
  }
  // The card's turns, and as many transfers of the fabric between them as it has.
  void run() {
    for (int turn = 0; turn < 50; turn++) {
      windows_.poll(16, ++card_.now);
      card_.port.finish_dmas(card_.card(), card_.now);
      while (windows_.carry_out()) continue;
      admin_.housekeeping();
    }
  }
  void submit_refused(uint64_t cookie) {
    peal_submission entry = {};
    entry.operation = 99;
    entry.cookie = cookie;
    ASSERT_TRUE(peal_host_ring_submit(&ring_, &entry));
  }

  peal_status open_window(ContextId context, uint64_t* offset) override {
    windows_.open(context, remote_.bytes);
    *offset = 0;
    return PEAL_STATUS_OK;
  }
  void context_gone(ContextId context) override { gone_.push_back(context); }
  void context_ending(ContextId, EndReason reason) override { ended_.push_back(reason); }
  peal_status make_memory(const peal_register_memory&, RegionId*) override {
    return PEAL_STATUS_BAD_ADDRESS;
  }
  peal_status make_channels(const peal_reserve_group&, RegionId* region) override {
    channels_.resize(kChannelsBytes);
    *region = card_.regions.put_mapped(channels_.data(), kChannelsBytes, {});
    return PEAL_STATUS_OK;
  }

  struct alignas(PEAL_PAGE_BYTES) Remote {
    uint8_t bytes[kWindowBytes];
  };

  test::LoneCard card_;
  test::PostedWindows windows_{card_.card()};
  Admin admin_{card_.card(), card_.regions, windows_};
  Remote remote_{};
  peal_host_ring ring_{};
  std::vector<uint8_t> channels_;
  std::vector<ContextId> gone_;
  std::vector<EndReason> ended_;
  peal_admin_reply reply_{};
  ContextId context_ = kNoContext;
};

TEST_F(PostedWindowsTest, ABarrierOfOneFromSubmissionToCompletion) {
  peal_admin_command command = test::make_command(PEAL_ADMIN_RESERVE_GROUP);
  command.u.reserve.ranks = 1;
  ASSERT_EQ(execute(command, context_), PEAL_STATUS_OK);
  const uint32_t member = reply_.u.reserve.address.member;
  command = test::make_command(PEAL_ADMIN_CONNECT_GROUP);
  command.u.connect.member = member;
  command.u.connect.group = 5;
  ASSERT_EQ(execute(command, context_), PEAL_STATUS_OK);
  peal_submission entry = {};
  entry.operation = PEAL_OPERATION_BARRIER;
  entry.algorithm = PEAL_ALGORITHM_DISSEMINATION;
  entry.member = member;
  entry.cookie = 42;
  ASSERT_TRUE(peal_host_ring_submit(&ring_, &entry));
  run();
  peal_completion completion;
  ASSERT_TRUE(peal_host_ring_poll(&ring_, &completion));
  EXPECT_EQ(completion.status, PEAL_STATUS_OK);
  EXPECT_EQ(completion.cookie, 42u);
  EXPECT_EQ(ring_.card->indices.submission_head, 1u);
}

TEST_F(PostedWindowsTest, RoundAfterRoundAndNeverMoreThanFits) {
  for (uint64_t i = 0; i < kRingEntries; i++) submit_refused(i);
  uint64_t seen = 0;
  for (int turn = 0; turn < 100; turn++) {
    run();
    if (turn == 50)
      for (uint64_t i = 0; i < 8; i++) submit_refused(kRingEntries + i);
    peal_completion completion;
    while (turn > 60 && peal_host_ring_poll(&ring_, &completion))
      ASSERT_EQ(completion.cookie, seen++);
    ASSERT_LE(ring_.card->indices.submission_head, kRingEntries + seen);
  }
  EXPECT_EQ(seen, kRingEntries + 8);
}

// Only a round that begins from then on, and finds nothing, says that all was taken.
TEST_F(PostedWindowsTest, MemoryIsTakenBackBehindWhatWasSubmitted) {
  peal_admin_command command = test::make_command(PEAL_ADMIN_UNREGISTER_MEMORY);
  command.u.unregister_memory.key = 5;
  windows_.poll(16, card_.now);
  ASSERT_TRUE(windows_.carry_out());  // has read that there is nothing
  submit_refused(1);
  EXPECT_EQ(execute(command, context_), PEAL_STATUS_BUSY);
  windows_.poll(16, card_.now);
  EXPECT_EQ(execute(command, context_), PEAL_STATUS_BUSY);
  run();
  peal_completion completion;
  EXPECT_TRUE(peal_host_ring_poll(&ring_, &completion));
  EXPECT_EQ(execute(command, context_), PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(execute(command, context_), PEAL_STATUS_BUSY) << "once for each that asks";
}

TEST_F(PostedWindowsTest, AClosedWindowStaysUntilNothingIsUnderWay) {
  windows_.poll(16, card_.now);
  ASSERT_EQ(windows_.posted(), 1u);
  EXPECT_EQ(execute(test::make_command(PEAL_ADMIN_CLOSE_CONTEXT), context_), PEAL_STATUS_BUSY);
  EXPECT_FALSE(admin_.housekeeping());
  EXPECT_EQ(admin_.closing_contexts(), 1u);
  EXPECT_TRUE(gone_.empty());
  // The card has let go of it, its window has not: its place is nobody's yet.
  ASSERT_EQ(execute(test::make_command(PEAL_ADMIN_OPEN_CONTEXT), kNoContext), PEAL_STATUS_OK);
  EXPECT_NE(reply_.u.open.context, context_);
  ASSERT_TRUE(windows_.carry_out());
  EXPECT_TRUE(admin_.housekeeping());
  EXPECT_EQ(gone_, std::vector<ContextId>{context_});
}

TEST_F(PostedWindowsTest, AResetIsAcknowledgedBeforeTheMemoryGoes) {
  ring_.host->reset_epoch.value = 9;
  windows_.poll(16, card_.now);
  ASSERT_TRUE(windows_.carry_out());
  windows_.poll(16, card_.now);
  EXPECT_EQ(ended_, std::vector<EndReason>{EndReason::kReset});
  EXPECT_TRUE(gone_.empty());
  EXPECT_EQ(ring_.card->reset.epoch, 0u);
  ASSERT_TRUE(windows_.carry_out());
  EXPECT_EQ(ring_.card->reset.epoch, 9u);
  EXPECT_TRUE(admin_.housekeeping());
  EXPECT_EQ(gone_, std::vector<ContextId>{context_});
  EXPECT_EQ(admin_.counts().windows_reset, 1u);
}

TEST_F(PostedWindowsTest, AWildIndexEndsTheContext) {
  ring_.host->indices.submission_tail = kRingEntries + 1;
  run();
  EXPECT_EQ(ended_, std::vector<EndReason>{EndReason::kWildIndex});
  EXPECT_EQ(gone_, std::vector<ContextId>{context_});
  EXPECT_EQ(windows_.posted(), 0u);
}

}  // namespace
}  // namespace peal::emulator
