// SPDX-License-Identifier: BSD-2-Clause
// Both sides of a window's rings on one thread: order, full and empty, wrap-around, and a host that
// breaks the rules.
#include "abi/ring.h"

#include <gtest/gtest.h>

#include "tests/unit/ring/window_memory.h"

namespace peal::test {
namespace {

constexpr uint32_t kEntries = 16;

class Ring : public ::testing::Test {
 protected:
  bool submit(uint64_t number) {
    const peal_submission entry = numbered_submission(number);
    return peal_host_ring_submit(&window.host, &entry) == 1;
  }
  // The number of the entry taken; fails the test when there is none.
  uint64_t take() {
    peal_submission entry{};
    EXPECT_EQ(peal_card_ring_poll(&window.card, &entry), PEAL_RING_ENTRY);
    EXPECT_TRUE(same_entry(entry, numbered_submission(entry.sequence)));
    return entry.sequence;
  }
  peal_ring_poll poll() {
    peal_submission entry{};
    return peal_card_ring_poll(&window.card, &entry);
  }

  WindowMemory window{kEntries};
};

TEST(RingPhase, ChangesWithEveryPassAndIsNeverZero) {
  for (uint64_t index = 0; index < 10 * kEntries; index++) {
    EXPECT_EQ(peal_ring_phase(index, kEntries), (index / kEntries) % 2 == 0 ? 1 : 2);
  }
  // Free-running indices end at 2^64 on a pass boundary, so the phases go on alternating there.
  EXPECT_NE(peal_ring_phase(~uint64_t{0}, kEntries), peal_ring_phase(0, kEntries));
}

TEST_F(Ring, EmptyGivesNothing) {
  peal_completion completion{};
  EXPECT_EQ(poll(), PEAL_RING_EMPTY);
  EXPECT_EQ(peal_host_ring_poll(&window.host, &completion), 0);
  EXPECT_EQ(window.card_head(), 0u);
}

TEST_F(Ring, EntriesArriveWholeAndInOrderOverManyPasses) {
  for (uint64_t number = 0; number < 7 * kEntries + 3; number++) {
    ASSERT_TRUE(submit(number));
    ASSERT_EQ(take(), number);
  }
  EXPECT_EQ(poll(), PEAL_RING_EMPTY);
}

TEST_F(Ring, FullRefusesAndTakesAgainWhenTheCardHasCopiedOne) {
  for (uint64_t number = 0; number < kEntries; number++) ASSERT_TRUE(submit(number));
  EXPECT_FALSE(submit(kEntries));
  EXPECT_EQ(take(), 0u);
  EXPECT_TRUE(submit(kEntries));
  EXPECT_FALSE(submit(kEntries + 1));
  for (uint64_t number = 1; number <= kEntries; number++) EXPECT_EQ(take(), number);
}

TEST_F(Ring, IndicesPassTwoToThe64) {
  const uint64_t start = ~uint64_t{0} - 3;  // 2^64 - 4: pass and phase as any other
  window.host.submission_tail = start;
  window.card.submission_head = start;
  window.host.completion_head = start;
  window.card.completion_tail = start;
  window.card.card->indices.submission_head = start;
  window.host.host->indices.submission_tail = start;
  window.host.host->indices.completion_head = start;
  for (uint64_t number = 0; number < 3 * kEntries; number++) {
    ASSERT_TRUE(submit(number));
    ASSERT_EQ(take(), number);
    const peal_completion done = numbered_completion(number);
    ASSERT_EQ(peal_card_ring_space(&window.card), kEntries);
    peal_card_ring_complete(&window.card, &done);
    peal_completion seen{};
    ASSERT_EQ(peal_host_ring_poll(&window.host, &seen), 1);
    ASSERT_TRUE(same_entry(seen, done));
  }
}

TEST_F(Ring, CompletionsComeBackInOrderAndSpaceIsCounted) {
  for (uint64_t number = 0; number < 5 * kEntries; number += kEntries) {
    for (uint64_t i = 0; i < kEntries; i++) {
      EXPECT_EQ(peal_card_ring_space(&window.card), static_cast<int64_t>(kEntries - i));
      const peal_completion entry = numbered_completion(number + i);
      peal_card_ring_complete(&window.card, &entry);
    }
    EXPECT_EQ(peal_card_ring_space(&window.card), 0);
    for (uint64_t i = 0; i < kEntries; i++) {
      peal_completion seen{};
      ASSERT_EQ(peal_host_ring_poll(&window.host, &seen), 1);
      EXPECT_TRUE(same_entry(seen, numbered_completion(number + i)));
    }
    peal_completion none{};
    ASSERT_EQ(peal_host_ring_poll(&window.host, &none), 0);
  }
}

// What is found touches nothing but its entry; the card hears of it when it may matter.
TEST_F(Ring, WhatWasReadIsToldWithTheNextSubmissionOrWhereNothingIsFound) {
  for (uint64_t number = 0; number < 3; number++) {
    const peal_completion entry = numbered_completion(number);
    peal_card_ring_complete(&window.card, &entry);
  }
  peal_completion seen{};
  ASSERT_EQ(peal_host_ring_poll(&window.host, &seen), 1);
  ASSERT_EQ(peal_host_ring_poll(&window.host, &seen), 1);
  EXPECT_EQ(window.host_page()->indices.completion_head, 0u);
  EXPECT_EQ(peal_card_ring_space(&window.card), kEntries - 3);
  ASSERT_TRUE(submit(0));
  EXPECT_EQ(peal_card_ring_space(&window.card), kEntries - 1);
  ASSERT_EQ(peal_host_ring_poll(&window.host, &seen), 1);
  EXPECT_EQ(peal_card_ring_space(&window.card), kEntries - 1);
  ASSERT_EQ(peal_host_ring_poll(&window.host, &seen), 0);
  EXPECT_EQ(peal_card_ring_space(&window.card), kEntries);
}

// A reader by RDMA may see the tail before the entry: the phase byte is the proof.
TEST_F(Ring, TailWithoutEntryIsNotBelieved) {
  window.host_page()->indices.submission_tail = 1;
  EXPECT_EQ(poll(), PEAL_RING_EMPTY);
  EXPECT_EQ(window.card_head(), 0u);
  const peal_submission entry = numbered_submission(0);
  peal_ring_store_entry(window.submission_slot(0), &entry, peal_ring_phase(0, kEntries));
  EXPECT_EQ(take(), 0u);
}

TEST_F(Ring, EntryOfThePassBeforeIsNotTakenTwice) {
  for (uint64_t number = 0; number < kEntries; number++) ASSERT_TRUE(submit(number));
  for (uint64_t number = 0; number < kEntries; number++) ASSERT_EQ(take(), number);
  window.host_page()->indices.submission_tail = kEntries + 1;  // but slot 0 still holds entry 0
  EXPECT_EQ(poll(), PEAL_RING_EMPTY);
}

TEST_F(Ring, TailTooFarAheadIsWildAndChangesNothing) {
  ASSERT_TRUE(submit(0));
  window.host_page()->indices.submission_tail = kEntries + 1;
  EXPECT_EQ(poll(), PEAL_RING_WILD);
  EXPECT_EQ(window.card_head(), 0u);
  window.host_page()->indices.submission_tail = kEntries;  // exactly full is not wild
  EXPECT_EQ(take(), 0u);
}

TEST_F(Ring, TailGoingBackIsWild) {
  ASSERT_TRUE(submit(0));
  ASSERT_EQ(take(), 0u);
  window.host_page()->indices.submission_tail = 0;
  EXPECT_EQ(poll(), PEAL_RING_WILD);
  window.host_page()->indices.submission_tail = ~uint64_t{0};
  EXPECT_EQ(poll(), PEAL_RING_WILD);
  EXPECT_EQ(window.card_head(), 1u);
}

TEST_F(Ring, CompletionHeadRunningWildIsSeen) {
  const peal_completion entry = numbered_completion(0);
  peal_card_ring_complete(&window.card, &entry);
  window.host_page()->indices.completion_head = 2;  // consumed more than was written
  EXPECT_EQ(peal_card_ring_space(&window.card), -1);
  window.host_page()->indices.completion_head = ~uint64_t{0} - kEntries;
  EXPECT_EQ(peal_card_ring_space(&window.card), -1);
  window.host_page()->indices.completion_head = 1;
  EXPECT_EQ(peal_card_ring_space(&window.card), kEntries);
}

TEST_F(Ring, EntryRewrittenAfterPostingHasNoEffectOnTheCopy) {
  ASSERT_TRUE(submit(41));
  peal_submission copy{};
  ASSERT_EQ(peal_card_ring_poll(&window.card, &copy), PEAL_RING_ENTRY);
  const peal_submission other = numbered_submission(99);
  peal_ring_store_entry(window.submission_slot(0), &other, peal_ring_phase(0, kEntries));
  EXPECT_TRUE(same_entry(copy, numbered_submission(41)));
  EXPECT_EQ(poll(), PEAL_RING_EMPTY);  // nor does it make a second one
}

TEST_F(Ring, SleepingFlagsAreEachOthers) {
  EXPECT_EQ(peal_host_ring_card_sleeps(&window.host), 0);
  EXPECT_EQ(peal_card_ring_host_sleeps(&window.card), 0);
  peal_card_ring_set_sleeping(&window.card, 1);
  EXPECT_EQ(peal_host_ring_card_sleeps(&window.host), 1);
  EXPECT_EQ(peal_card_ring_host_sleeps(&window.card), 0);
  peal_card_ring_set_sleeping(&window.card, 0);
  peal_host_ring_set_sleeping(&window.host, 1);
  EXPECT_EQ(peal_host_ring_card_sleeps(&window.host), 0);
  EXPECT_EQ(peal_card_ring_host_sleeps(&window.card), 1);
}

// Each side writes its own page and ring only: one writer per cache line, as RDMA and a PCI BAR
// want it.
TEST(RingPages, EachSideWritesOnlyItsOwn) {
  WindowMemory window(kEntries);
  const peal_card_page card_before = *window.card.card;
  const peal_submission entry = numbered_submission(1);
  ASSERT_EQ(peal_host_ring_submit(&window.host, &entry), 1);
  peal_host_ring_set_sleeping(&window.host, 1);
  EXPECT_EQ(std::memcmp(&card_before, window.card.card, sizeof(card_before)), 0);

  const peal_host_page host_before = *window.host.host;
  const peal_submission slot_before = *window.submission_slot(0);
  peal_submission copy{};
  ASSERT_EQ(peal_card_ring_poll(&window.card, &copy), PEAL_RING_ENTRY);
  const peal_completion done = numbered_completion(1);
  peal_card_ring_complete(&window.card, &done);
  peal_card_ring_set_sleeping(&window.card, 1);
  EXPECT_EQ(std::memcmp(&host_before, window.host.host, sizeof(host_before)), 0);
  EXPECT_EQ(std::memcmp(&slot_before, window.submission_slot(0), sizeof(slot_before)), 0);
}

}  // namespace
}  // namespace peal::test
