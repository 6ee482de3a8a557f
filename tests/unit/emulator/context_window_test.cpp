// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/context_window.h"

#include <gtest/gtest.h>

#include "tests/unit/emulator/lone_card.h"

namespace peal::emulator {
namespace {

using test::LoneCard;
using test::TestProvider;

// A window that Admin opened, with the host's side in the test's hand.
class ContextWindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    peal_admin_reply reply;
    const peal_admin_command command = test::make_command(PEAL_ADMIN_OPEN_CONTEXT);
    ASSERT_EQ(
        card_.admin().execute(command, sizeof(command), kNoContext, provider_, card_.now, &reply),
        PEAL_STATUS_OK);
    context_ = reply.u.open.context;
    ring_ = provider_.ring;
  }

  // A submission that is refused, and so completes at once.
  void submit_refused(uint64_t cookie) {
    peal_submission entry = {};
    entry.operation = 99;
    entry.cookie = cookie;
    ASSERT_TRUE(peal_host_ring_submit(&ring_, &entry));
  }

  LoneCard card_;
  TestProvider provider_{card_};
  peal_host_ring ring_{};
  ContextId context_ = 0;
};

TEST_F(ContextWindowTest, CardPageDescribesItself) {
  const peal_card_page& page = *ring_.card;
  EXPECT_EQ(page.directory.magic, PEAL_WINDOW_MAGIC);
  EXPECT_EQ(page.directory.abi_version, unsigned{PEAL_ABI_VERSION});
  EXPECT_EQ(page.directory.window_bytes, kWindowBytes);
  EXPECT_EQ(page.device.context, context_);
  EXPECT_EQ(page.device.card_index, 3);
  EXPECT_EQ(page.device.ring_entries, kRingEntries);
  EXPECT_EQ(page.device.channels, unsigned{CONFIG_CHANNELS});
  EXPECT_EQ(page.device.capabilities, 0x8u);
  EXPECT_EQ(page.sleep.sleeping, 0u);
  // Each block lies inside the window, and the known ones are where the structure says.
  uint32_t seen = 0;
  for (uint32_t i = 0; i < page.directory.block_count; i++) {
    const peal_block& block = page.directory.blocks[i];
    EXPECT_LE(uint64_t{block.offset} + block.bytes, kWindowBytes);
    seen |= 1u << block.type;
    if (block.type == PEAL_BLOCK_DEVICE) {
      EXPECT_EQ(block.offset, offsetof(peal_card_page, device));
    }
    if (block.type == PEAL_BLOCK_SUBMISSION) {
      EXPECT_EQ(block.offset, unsigned{PEAL_WINDOW_SUBMISSIONS});
    }
    if (block.type == PEAL_BLOCK_COMPLETION) {
      EXPECT_EQ(block.offset, PEAL_WINDOW_COMPLETIONS(kRingEntries));
    }
  }
  EXPECT_EQ(seen, 0x3eu);
}

// The provider's memory was full of another client's bytes.
TEST_F(ContextWindowTest, RingsBeginEmpty) {
  EXPECT_EQ(ring_.host->indices.submission_tail, 0u);
  peal_completion completion;
  EXPECT_FALSE(peal_host_ring_poll(&ring_, &completion));
  card_.run();
  EXPECT_EQ(ring_.card->indices.faults, 0u);
}

TEST_F(ContextWindowTest, SubmissionToCompletion) {
  submit_refused(7);
  card_.run();
  peal_completion completion;
  ASSERT_TRUE(peal_host_ring_poll(&ring_, &completion));
  EXPECT_EQ(completion.cookie, 7u);
  EXPECT_NE(completion.status, PEAL_STATUS_OK);
  EXPECT_FALSE(peal_host_ring_poll(&ring_, &completion));
}

TEST_F(ContextWindowTest, RunsManyTimesRound) {
  for (uint64_t i = 0; i < 5 * kRingEntries; i += 4) {
    for (uint64_t j = i; j < i + 4; j++) submit_refused(j);
    card_.windows().poll(16, card_.now);
    for (uint64_t j = i; j < i + 4; j++) {
      peal_completion completion;
      ASSERT_TRUE(peal_host_ring_poll(&ring_, &completion));
      ASSERT_EQ(completion.cookie, j);
    }
  }
}

TEST_F(ContextWindowTest, TakesNoMoreThanCompletionsFit) {
  for (uint64_t i = 0; i < kRingEntries; i++) submit_refused(i);
  card_.run();
  EXPECT_EQ(ring_.card->indices.submission_head, kRingEntries);
  for (uint64_t i = 0; i < 10; i++) submit_refused(1000 + i);
  card_.run();
  // No room: nothing was taken, nothing overwritten, and the window knows that it is blocked.
  EXPECT_EQ(ring_.card->indices.submission_head, kRingEntries);
  EXPECT_TRUE(card_.windows().has_blocked());
  for (uint64_t i = 0; i < 5; i++) {
    peal_completion completion;
    ASSERT_TRUE(peal_host_ring_poll(&ring_, &completion));
    EXPECT_EQ(completion.cookie, i);
  }
  submit_refused(1010);  // The card hears of these five with it.
  card_.run();
  EXPECT_EQ(ring_.card->indices.submission_head, kRingEntries + 5);
  peal_completion completion;
  while (peal_host_ring_poll(&ring_, &completion)) {
  }
  card_.run();  // And of the others, because nothing is left.
  EXPECT_EQ(ring_.card->indices.submission_head, kRingEntries + 11);
  EXPECT_TRUE(card_.admin().is_open(context_));
}

// A host may have a ring's worth under way, whatever it has read and not told.
TEST_F(ContextWindowTest, WhatWasReadBeforeLeavesRoomForAFullRing) {
  constexpr uint64_t kBefore = kRingEntries - 1;
  for (uint64_t i = 0; i < kBefore; i++) submit_refused(i);
  card_.run();
  for (uint64_t i = 0; i < kBefore; i++) {
    peal_completion completion;
    ASSERT_TRUE(peal_host_ring_poll(&ring_, &completion));
  }
  EXPECT_EQ(ring_.host->indices.completion_head, 0u);
  for (uint64_t i = 0; i < kRingEntries; i++) submit_refused(1000 + i);
  card_.run();
  EXPECT_EQ(ring_.card->indices.submission_head, kBefore + kRingEntries);
}

TEST_F(ContextWindowTest, EntryWithoutItsPhaseIsNotThereYet) {
  __atomic_store_n(&ring_.host->indices.submission_tail, 1, __ATOMIC_RELEASE);
  EXPECT_FALSE(card_.windows().poll(16, card_.now));
  // Nor does the card look again and again: whoever writes it rings the doorbell.
  EXPECT_FALSE(card_.windows().has_blocked());
  EXPECT_EQ(ring_.card->indices.faults, 0u);
  peal_submission entry = {};
  entry.operation = 99;
  peal_ring_store_entry(&ring_.submissions[0], &entry, 1);
  EXPECT_TRUE(card_.windows().poll(16, card_.now));
}

TEST_F(ContextWindowTest, WildTailEndsTheContext) {
  for (const uint64_t wild : {uint64_t{kRingEntries} + 1, ~uint64_t{0}}) {
    SCOPED_TRACE(wild);
    ring_.host->indices.submission_tail = wild;
    card_.run();
    EXPECT_EQ(ring_.card->indices.faults, 1u);
    EXPECT_FALSE(card_.admin().is_open(context_));
    ASSERT_FALSE(provider_.gone.empty());
    EXPECT_EQ(provider_.gone.back(), context_);
    SetUp();  // the next client
  }
  EXPECT_EQ(card_.admin().counts().windows_broken, 2u);
}

TEST_F(ContextWindowTest, WildHeadEndsTheContext) {
  submit_refused(1);
  ring_.host->indices.completion_head = 1;  // more than was ever completed
  card_.run();
  EXPECT_EQ(ring_.card->indices.faults, 1u);
  EXPECT_EQ(ring_.card->indices.submission_head, 0u);
  EXPECT_FALSE(card_.admin().is_open(context_));
}

TEST_F(ContextWindowTest, SleepingHostIsWoken) {
  submit_refused(1);
  card_.run();
  EXPECT_EQ(provider_.wakes, 0u);
  peal_host_ring_set_sleeping(&ring_, 1);
  submit_refused(2);
  submit_refused(3);
  card_.run();
  EXPECT_EQ(provider_.wakes, 1u);  // once for both
  card_.run();
  EXPECT_EQ(provider_.wakes, 1u);
}

TEST_F(ContextWindowTest, SleepingCardSaysSo) {
  card_.windows().set_card_sleeping(true);
  EXPECT_TRUE(peal_host_ring_card_sleeps(&ring_));
  card_.windows().set_card_sleeping(false);
  EXPECT_FALSE(peal_host_ring_card_sleeps(&ring_));
}

TEST_F(ContextWindowTest, Heartbeat) {
  card_.windows().beat(5, 250000);
  EXPECT_EQ(ring_.card->heartbeat.beats, 5u);
  EXPECT_EQ(ring_.card->heartbeat.heartbeat_interval_us, 250000u);
}

TEST_F(ContextWindowTest, ResetIsAcknowledgedOnceTheCardHasLetGo) {
  ring_.host->reset_epoch.value = 9;
  submit_refused(1);
  card_.run();
  EXPECT_EQ(ring_.card->reset.epoch, 9u);
  EXPECT_EQ(ring_.card->indices.submission_head, 0u);
  EXPECT_FALSE(card_.admin().is_open(context_));
  EXPECT_EQ(provider_.gone, std::vector<ContextId>{context_});
  EXPECT_EQ(card_.admin().counts().windows_reset, 1u);
}

}  // namespace
}  // namespace peal::emulator
