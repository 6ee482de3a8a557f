// SPDX-License-Identifier: BSD-2-Clause
// What a rank exchanges with the others needs none of its caller's requests: they would wait for
// it.
#include "hostlib/card_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

#include "hostlib/rings.h"
#include "hostlib/wait.h"
#include "tests/unit/hostlib/fake_card.h"

namespace peal::host {
namespace {

// Rank 0 of two; the test plays its card, and who is rank 1.
class ExchangeOfTwo : public testing::Test {
 protected:
  void SetUp() override {
    for (FakeCard& card : cards) card.ring.card->device.members_max = 2;
    peal_context* contexts[] = {open_fake(&cards[0]), open_fake(&cards[1])};
    std::copy(std::begin(contexts), std::end(contexts), context);
    const std::vector<peal_group*> groups = make_fake_groups(contexts, nullptr);
    ASSERT_EQ(groups.size(), 2u);
    group = groups[0];
    ASSERT_EQ(peal_alloc(context[0], 64, &memory), PEAL_OK);
  }
  void TearDown() override {
    for (peal_context* each : context) peal_close(each);
  }
  // Messages, of which there is no limit but the context's.
  void use_all_requests() {
    peal_request* request = nullptr;
    while (peal_irecv(group, 1, 0, memory, 1, &request) == PEAL_OK) requests.push_back(request);
    ASSERT_EQ(requests.size(), size_t{request_count(*context[0])});
    peal_submission entry = {};
    while (cards[0].take(&entry)) receives.push_back(entry);
  }

  // So often has a thread of the context slept.
  int sleeps() {
    const std::lock_guard lock(cards[0].mutex);
    return cards[0].sleeps;
  }

  FakeCard cards[2];
  peal_context* context[2] = {};
  peal_group* group = nullptr;
  void* memory = nullptr;
  std::vector<peal_request*> requests;
  std::vector<peal_submission> receives;
};

TEST_F(ExchangeOfTwo, NeedsNoRequestOfTheContext) {
  use_all_requests();
  uint32_t all[2] = {};
  std::thread rank([&] {
    const CardExchange exchange(*group);
    const uint32_t own = 7;
    for (int round = 0; round < 3; round++)
      EXPECT_EQ(exchange.gather(&own, all, sizeof(own)), PEAL_OK) << peal_last_error_text();
  });
  for (uint64_t round = 0; round < 3; round++) {
    const peal_submission entry = cards[0].await_entry();
    EXPECT_EQ(entry.operation, PEAL_OPERATION_ALLGATHER);
    EXPECT_EQ(entry.sequence, round);
    cards[0].complete(entry);
  }
  rank.join();
  // And the group ends by the same request.
  std::thread end([&] { EXPECT_EQ(peal_group_destroy(group), PEAL_OK); });
  for (const peal_submission& receive : receives) cards[0].complete_message(receive, 0);
  const peal_submission destroy = cards[0].await_entry();
  EXPECT_EQ(destroy.operation, PEAL_OPERATION_DESTROY);
  EXPECT_EQ(destroy.sequence, 3u);
  cards[0].complete(destroy);
  end.join();
}

// Two groups' at once, of which other ranks may begin the other one first: neither waits for the
// other, as long as the card may take both.
TEST_F(ExchangeOfTwo, OfTwoGroupsNeitherWaitsForTheOther) {
  peal_group* const second = make_fake_groups(context, nullptr)[0];
  use_all_requests();
  std::vector<std::thread> ranks;
  for (peal_group* each : {group, second}) {
    ranks.emplace_back([each] {
      const CardExchange exchange(*each);
      uint32_t all[2] = {7, 7};
      EXPECT_EQ(exchange.gather(all, all, sizeof(*all)), PEAL_OK) << peal_last_error_text();
    });
  }
  const peal_submission exchanges[] = {cards[0].await_entry(), cards[0].await_entry()};
  // So many submissions a card takes whose completions fit.
  EXPECT_LE(receives.size() + std::size(exchanges), size_t{kFakeEntries});
  for (const peal_submission& each : exchanges) cards[0].complete(each);
  for (std::thread& rank : ranks) rank.join();
}

// Starts that end when another rank starts its side, which it may not do before the exchange.
TEST_F(ExchangeOfTwo, StartsAreNotInItsWay) {
  constexpr uint32_t kPrograms = kFakeParked / kFakeStarts + 1;
  std::vector<peal_program*> programs(kPrograms);
  std::thread rank([&] {
    for (peal_program*& program : programs) {
      uint32_t told = 0;
      ASSERT_EQ(peal_program_create(0, 2, nullptr, &program), PEAL_OK);
      ASSERT_EQ(peal_program_counter(program, 1, &told), PEAL_OK);
      ASSERT_EQ(peal_program_wait(program, told, 1), PEAL_OK);
      EXPECT_EQ(peal_program_commit(group, program), PEAL_OK) << peal_last_error_text();
      for (uint32_t start = 0; start < kFakeStarts; start++)
        EXPECT_EQ(peal_program_start(program, 1, nullptr), PEAL_OK) << peal_last_error_text();
    }
    const CardExchange exchange(*group);
    uint32_t all[2] = {7, 7};
    EXPECT_EQ(exchange.gather(all, all, sizeof(*all)), PEAL_OK) << peal_last_error_text();
    EXPECT_EQ(peal_barrier(group), PEAL_OK) << peal_last_error_text();
  });
  std::vector<peal_submission> starts;
  uint64_t operations = 0;
  while (operations < kPrograms + 2 || starts.size() < size_t{kPrograms} * kFakeStarts) {
    const peal_submission entry = cards[0].await_entry();
    if (entry.operation == PEAL_OPERATION_START && entry.block_bytes != 0) {
      starts.push_back(entry);
      continue;
    }
    if (entry.operation != PEAL_OPERATION_START) {
      EXPECT_EQ(entry.sequence, operations++);
    }
    cards[0].complete(entry);
  }
  rank.join();
  // They are in the way of the group's end.
  std::atomic<bool> over = false;
  const int slept = sleeps();
  std::thread end([&] {
    EXPECT_EQ(peal_group_wait(group), PEAL_OK);
    over = true;
  });
  while (!over && sleeps() == slept) std::this_thread::yield();
  EXPECT_FALSE(over);
  for (const peal_submission& start : starts) cards[0].complete(start);
  end.join();
  for (peal_program* program : programs) EXPECT_EQ(peal_program_free(program), PEAL_OK);
}

// A mistake of the caller's is no failure of the card: the one exchange waits for the other.
TEST_F(ExchangeOfTwo, OneAtATime) {
  constexpr int kRounds = 200;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; i++) {
    threads.emplace_back([&] {
      const CardExchange exchange(*group);
      uint32_t all[2] = {7, 7};
      for (int round = 0; round < kRounds; round++)
        EXPECT_EQ(exchange.gather(all, all, sizeof(*all)), PEAL_OK) << peal_last_error_text();
    });
  }
  for (uint64_t round = 0; round < uint64_t{2} * kRounds; round++) {
    const peal_submission entry = cards[0].await_entry();
    EXPECT_EQ(entry.sequence, round);
    cards[0].complete(entry);
  }
  for (std::thread& each : threads) each.join();
}

// The card parks no more operations of a group than it says.
TEST_F(ExchangeOfTwo, WaitsUntilTheCardTakesOneMore) {
  std::vector<peal_submission> barriers(kFakeParked);
  for (peal_submission& barrier : barriers) {
    ASSERT_EQ(peal_ibarrier(group, nullptr), PEAL_OK);
    ASSERT_TRUE(cards[0].take(&barrier));
  }
  std::thread rank([&] {
    const CardExchange exchange(*group);
    uint32_t all[2] = {7, 7};
    EXPECT_EQ(exchange.gather(all, all, sizeof(*all)), PEAL_OK) << peal_last_error_text();
  });
  cards[0].await_sleeper();
  peal_submission entry = {};
  const bool early = cards[0].take(&entry);
  EXPECT_FALSE(early);
  for (const peal_submission& barrier : barriers) cards[0].complete(barrier);
  if (!early) entry = cards[0].await_entry();
  EXPECT_EQ(entry.sequence, kFakeParked);
  cards[0].complete(entry);
  rank.join();
}

TEST_F(ExchangeOfTwo, WaitsForAPlaceInTheRing) {
  while (peal_irecv(group, 1, 0, memory, 1, nullptr) == PEAL_OK) continue;
  for (uint32_t places = kFakeEntries - request_count(*context[0]); places > 0; places--) {
    peal_group* const other = make_fake_groups(context, nullptr)[0];
    const Lock lock(context[0]->mutex);
    Posting last = {};
    last.operation = PEAL_OPERATION_BARRIER;
    last.algorithm = PEAL_ALGORITHM_DISSEMINATION;
    ASSERT_EQ(submit_own(*other, last), PEAL_OK);
    ASSERT_EQ(ring_has_place(*context[0]), places > 1);
  }
  std::atomic<bool> over = false;
  std::thread rank([&] {
    const CardExchange exchange(*group);
    uint32_t all[2] = {7, 7};
    EXPECT_EQ(exchange.gather(all, all, sizeof(*all)), PEAL_OK) << peal_last_error_text();
    over = true;
  });
  while (!over && sleeps() == 0) std::this_thread::yield();
  while (!over) {
    peal_submission entry = {};
    if (cards[0].take(&entry)) cards[0].complete(entry);
    std::this_thread::yield();
  }
  rank.join();
}

// Its memory goes when the card lets go of it.
TEST_F(ExchangeOfTwo, LeavesMemoryThatTheCardHolds) {
  const size_t keys = cards[0].keys.size();
  const size_t regions = context[0]->memory.regions().size();
  for (const bool busy : {true, false}) {
    if (busy) cards[0].busy_keys = {cards[0].next_key};
    { const CardExchange exchange(*group); }
    EXPECT_EQ(cards[0].keys.size(), keys + (busy ? 1 : 0));
    EXPECT_EQ(context[0]->memory.regions().size(), regions) << "nobody is to find it";
    cards[0].busy_keys.clear();
  }
}

}  // namespace
}  // namespace peal::host
