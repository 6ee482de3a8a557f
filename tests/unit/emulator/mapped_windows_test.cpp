// SPDX-License-Identifier: BSD-2-Clause
// The windows of a card without its administration: the test opens, ends and lets go of them.
#include "emulator/common/mapped_windows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "abi/ring.h"
#include "tests/unit/emulator/lone_card.h"

namespace peal::emulator {
namespace {

class MappedWindowsTest : public ::testing::Test, public WindowOwner, public HostWaker {
 protected:
  struct alignas(PEAL_PAGE_BYTES) Memory {
    uint8_t bytes[kWindowBytes];
  };

  MappedWindowsTest() {
    windows_.set_owner(this);
    card_.port.windows = &windows_;
  }
  // A context of the card with a window that another client has left.
  ContextId open() {
    ContextId context = 0;
    while (card_open_context(card_.card(), context) != PEAL_STATUS_OK && context < kContexts)
      context++;
    EXPECT_LT(context, kContexts);
    open_window(context);
    return context;
  }
  void open_window(ContextId context) {
    memory_[context] = std::make_unique<Memory>();
    std::memset(memory_[context]->bytes, 0xa5, kWindowBytes);
    windows_.open(context, memory_[context]->bytes, 0x8, this);
    peal_host_ring_init(&rings_[context], memory_[context]->bytes, kRingEntries);
  }
  // Submissions that are refused, and so complete at once.
  void submit(ContextId context, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
      peal_submission entry = {};
      entry.operation = 99;
      entry.cookie = ++cookie_;
      ASSERT_TRUE(peal_host_ring_submit(&rings_[context], &entry));
    }
  }
  std::string completions(ContextId context) {
    std::string text;
    peal_completion entry;
    while (peal_host_ring_poll(&rings_[context], &entry))
      text += std::to_string(entry.cookie) + " ";
    return text;
  }
  void window_ended(ContextId context, WindowEnd why, TimeNs now) override {
    log_ += "context " + std::to_string(context) +
            (why == WindowEnd::kReset ? " reset" : " wild index") + " at " + std::to_string(now) +
            "\n";
  }
  void wake_host(ContextWindow& window) override {
    log_ += "wake " + std::to_string(window.context()) + "\n";
  }

  test::LoneCard card_;
  MappedWindows windows_{card_.card()};
  std::unique_ptr<Memory> memory_[kContexts];
  peal_host_ring rings_[kContexts] = {};
  uint64_t cookie_ = 0;
  std::string log_;
};

TEST_F(MappedWindowsTest, TakesAsManyFromEachAsTheLimitSays) {
  const ContextId first = open();
  const ContextId second = open();
  submit(first, 5);
  submit(second, 2);
  EXPECT_TRUE(windows_.poll(3, 1));
  EXPECT_TRUE(windows_.has_unread());
  EXPECT_EQ(completions(first), "1 2 3 ");
  EXPECT_EQ(completions(second), "6 7 ");
  EXPECT_EQ(windows_.completed(), 5u);
  EXPECT_TRUE(windows_.poll(3, 2));
  EXPECT_FALSE(windows_.has_unread());
  EXPECT_EQ(completions(first), "4 5 ");
  EXPECT_FALSE(windows_.poll(3, 3));
  EXPECT_EQ(windows_.completed(), 7u);
}

TEST_F(MappedWindowsTest, AWindowThatRunsWildIsToldOfOnceAndTheOthersAreServed) {
  const ContextId first = open();
  const ContextId second = open();
  const ContextId third = open();
  rings_[first].host->indices.submission_tail = kRingEntries + 1;
  submit(second, 1);
  submit(third, 1);
  EXPECT_TRUE(windows_.poll(16, 7));
  EXPECT_FALSE(windows_.poll(16, 8));
  EXPECT_EQ(log_, "context " + std::to_string(first) + " wild index at 7\n");
  EXPECT_EQ(rings_[first].card->indices.faults, 1u);
  EXPECT_EQ(completions(second), "1 ");
  EXPECT_EQ(completions(third), "2 ");
}

TEST_F(MappedWindowsTest, AResetIsAcknowledgedWhenTheWindowIsLetGo) {
  const ContextId context = open();
  rings_[context].host->reset_epoch.value = 9;
  submit(context, 1);
  EXPECT_TRUE(windows_.poll(16, 7));
  EXPECT_EQ(log_, "context " + std::to_string(context) + " reset at 7\n");
  EXPECT_EQ(completions(context), "");
  EXPECT_EQ(rings_[context].card->reset.epoch, 0u);
  EXPECT_TRUE(windows_.let_go(context));
  EXPECT_EQ(rings_[context].card->reset.epoch, 9u);
}

TEST_F(MappedWindowsTest, AnEndedWindowIsLeftAlone) {
  const ContextId context = open();
  submit(context, 1);
  windows_.end(context);
  EXPECT_FALSE(windows_.poll(16, 1));
  windows_.complete(context, peal_completion{});
  windows_.set_card_sleeping(true);
  windows_.beat(5, 1000);
  EXPECT_EQ(completions(context), "");
  EXPECT_FALSE(peal_host_ring_card_sleeps(&rings_[context]));
  EXPECT_EQ(rings_[context].card->heartbeat.beats, 0u);
  EXPECT_EQ(log_, "");
}

// A completion of the one before was not flushed yet.
TEST_F(MappedWindowsTest, TheNextWindowOfAContextKnowsNothingOfTheOneBefore) {
  const ContextId context = open();
  peal_host_ring_set_sleeping(&rings_[context], 1);
  submit(context, 1);
  EXPECT_TRUE(windows_.poll(16, 1));
  windows_.end(context);
  EXPECT_TRUE(windows_.let_go(context));
  open_window(context);
  peal_host_ring_set_sleeping(&rings_[context], 1);
  windows_.flush();
  EXPECT_EQ(log_, "");
  submit(context, 1);
  EXPECT_TRUE(windows_.poll(16, 2));
  windows_.flush();
  windows_.flush();
  EXPECT_EQ(log_, "wake " + std::to_string(context) + "\n");
  EXPECT_EQ(completions(context), "2 ");
}

// A library that divides by the interval, or waits for ten of them, must not find zero.
TEST_F(MappedWindowsTest, AWindowShowsTheLastBeatAtOnce) {
  windows_.beat(41, 250'000);
  const ContextId context = open();
  EXPECT_EQ(rings_[context].card->heartbeat.beats, 41u);
  EXPECT_EQ(rings_[context].card->heartbeat.heartbeat_interval_us, 250'000u);
}

TEST_F(MappedWindowsTest, SomeWindowThatWaitsForRoomIsSeen) {
  open();
  const ContextId context = open();
  submit(context, kRingEntries);
  while (windows_.poll(16, 1)) continue;
  EXPECT_FALSE(windows_.has_blocked());
  submit(context, 1);
  EXPECT_FALSE(windows_.poll(16, 2));
  EXPECT_TRUE(windows_.has_blocked());
  peal_completion entry;
  ASSERT_TRUE(peal_host_ring_poll(&rings_[context], &entry));
  EXPECT_FALSE(windows_.poll(16, 3)) << "the card has not heard of it";
  while (peal_host_ring_poll(&rings_[context], &entry)) continue;
  EXPECT_TRUE(windows_.poll(16, 4));
  EXPECT_FALSE(windows_.has_blocked());
}

}  // namespace
}  // namespace peal::emulator
