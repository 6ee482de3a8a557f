// SPDX-License-Identifier: BSD-2-Clause
// Requests and completions, with the test in the card's place.
#include "hostlib/rings.h"

#include <gtest/gtest.h>

#include <thread>

#include "hostlib/context_pages.h"
#include "tests/unit/hostlib/one_group.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define PEAL_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif
#endif

namespace peal::host {
namespace {

class Rings : public OneGroup {
 protected:
  static bool is_done(peal_request* request) {
    int done = 0;
    peal_test(request, &done);
    return done != 0;
  }
};

TEST_F(Rings, OneOperation) {
  peal_request* request = post();
  const peal_submission entry = take();
  EXPECT_EQ(entry.operation, PEAL_OPERATION_BARRIER);
  EXPECT_EQ(entry.algorithm, PEAL_ALGORITHM_DISSEMINATION);
  EXPECT_EQ(entry.sequence, 0u);
  EXPECT_EQ(entry.member, group->member);
  EXPECT_FALSE(is_done(request));
  card.complete(entry);
  EXPECT_TRUE(is_done(request));
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  EXPECT_EQ(peal_request_card_ns(request), 1234u);
  EXPECT_EQ(peal_request_free(request), PEAL_OK);
  EXPECT_EQ(peal_request_free(request), PEAL_ERR_INVALID_ARGUMENT);
}

TEST_F(Rings, AllgatherNamesItsMemory) {
  void* memory = nullptr;
  ASSERT_EQ(peal_alloc(context, 4096, &memory), PEAL_OK);
  auto* bytes = static_cast<uint8_t*>(memory);
  peal_request* request = nullptr;
  ASSERT_EQ(peal_iallgather(group, bytes + 100, bytes + 200, 50, &request), PEAL_OK);
  peal_submission entry = take();
  EXPECT_EQ(entry.operation, PEAL_OPERATION_ALLGATHER);
  EXPECT_EQ(entry.send_offset, 100u);
  EXPECT_EQ(entry.receive_offset, 200u);
  EXPECT_EQ(entry.block_bytes, 50u);
  EXPECT_EQ(entry.flags, 0);
  EXPECT_EQ(entry.send_key, entry.receive_key);
  card.complete(entry);
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  peal_request_free(request);

  ASSERT_EQ(peal_iallgather(group, PEAL_IN_PLACE, bytes, 4096, &request), PEAL_OK);
  entry = take();
  EXPECT_EQ(entry.flags, PEAL_SUBMIT_IN_PLACE);
  EXPECT_EQ(entry.sequence, 1u);
  card.complete(entry);
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  peal_request_free(request);
}

TEST_F(Rings, RememberedRegistrationIsForgottenWhenItGoes) {
  std::vector<uint8_t> buffer(128);
  peal_memory* memory = nullptr;
  ASSERT_EQ(peal_register(context, buffer.data(), 128, PEAL_READ | PEAL_WRITE, &memory), PEAL_OK);
  peal_request* request = nullptr;
  ASSERT_EQ(peal_iallgather(group, buffer.data(), buffer.data() + 64, 64, &request), PEAL_OK);
  const peal_submission entry = take();
  card.complete(entry);
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  peal_request_free(request);
  card.busy_keys = {entry.send_key};
  EXPECT_EQ(peal_unregister(memory), PEAL_ERR_BUSY);
  ASSERT_EQ(peal_iallgather(group, buffer.data(), buffer.data() + 64, 64, &request), PEAL_OK);
  card.complete(take());
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  peal_request_free(request);
  card.busy_keys.clear();
  EXPECT_EQ(peal_unregister(memory), PEAL_OK);
  EXPECT_EQ(peal_iallgather(group, buffer.data(), buffer.data() + 64, 64, &request),
            PEAL_ERR_NOT_REGISTERED);
  EXPECT_TRUE(card.keys.empty());
}

// Whatever the card still uses: the connection's end is for it to see.
TEST_F(Rings, NothingStaysMappedWhenTheContextIsClosed) {
  void* memory = nullptr;
  ASSERT_EQ(peal_alloc(context, 4096, &memory), PEAL_OK);
  const size_t bytes = 8;
  peal_request* request = nullptr;
  ASSERT_EQ(peal_iallgatherv(group, PEAL_IN_PLACE, memory, &bytes, nullptr, &request), PEAL_OK);
  card.busy_keys = card.keys;
  EXPECT_GE(card.mapped.size(), 2u) << "the table as well";
  peal_close(context);
  context = nullptr;
  EXPECT_TRUE(card.mapped.empty());
}

TEST_F(Rings, CompletionsInAnyOrder) {
  peal_request* requests[4] = {post(), post(), post(), post()};
  peal_submission entries[4] = {take(), take(), take(), take()};
  for (const int i : {2, 0, 3, 1}) {
    EXPECT_FALSE(is_done(requests[i]));
    card.complete(entries[i]);
    EXPECT_TRUE(is_done(requests[i]));
  }
  for (peal_request* request : requests) EXPECT_EQ(peal_request_free(request), PEAL_OK);
}

TEST_F(Rings, WrapsAround) {
  for (uint64_t i = 0; i < 10 * kFakeEntries; i++) {
    peal_request* request = post();
    const peal_submission entry = take();
    EXPECT_EQ(entry.sequence, i);
    card.complete(entry);
    EXPECT_EQ(peal_wait(request), PEAL_OK);
    EXPECT_EQ(peal_request_free(request), PEAL_OK);
  }
}

TEST_F(Rings, NoMoreThanTheCardParks) {
  std::vector<peal_request*> requests;
  for (uint32_t i = 0; i < kFakeParked; i++) requests.push_back(post());
  peal_request* refused = nullptr;
  EXPECT_EQ(peal_ibarrier(group, &refused), PEAL_ERR_TOO_MANY);
  EXPECT_EQ(refused, nullptr);
  card.complete(take());  // one is enough, though nobody has looked at it yet
  requests.push_back(post());
  for (uint32_t i = 0; i < kFakeParked; i++) card.complete(take());
  for (peal_request* request : requests) {
    EXPECT_EQ(peal_wait(request), PEAL_OK);
    EXPECT_EQ(peal_request_free(request), PEAL_OK);
  }
}

TEST_F(Rings, RequestsThatAreNotFreedFillTheTable) {
  std::vector<peal_request*> requests;
  for (uint32_t i = 0; i < kFakeEntries - 1; i++) {
    requests.push_back(post());
    card.complete(take());
    EXPECT_EQ(peal_wait(requests.back()), PEAL_OK);
  }
  peal_request* refused = nullptr;
  EXPECT_EQ(peal_ibarrier(group, &refused), PEAL_ERR_TOO_MANY);
  EXPECT_EQ(peal_request_free(requests[3]), PEAL_OK);
  requests[3] = post();
  card.complete(take());
  for (peal_request* request : requests) {
    EXPECT_EQ(peal_wait(request), PEAL_OK);
    EXPECT_EQ(peal_request_free(request), PEAL_OK);
  }
}

// Other ranks wait for this rank's destroy, so it may not depend on what the caller has not freed.
TEST_F(Rings, DestroyNeedsNoFreeRequest) {
  peal_group* other = make_fake_group(context);
  std::vector<peal_request*> requests;
  peal_request* request = nullptr;
  while (peal_ibarrier(group, &request) == PEAL_OK) {
    card.complete(take());
    EXPECT_EQ(peal_wait(request), PEAL_OK);
    requests.push_back(request);
  }
  // Two at once, in threads of their own: neither waits for the other.
  std::thread first([&] { EXPECT_EQ(peal_group_destroy(group), PEAL_OK); });
  std::thread second([&] { EXPECT_EQ(peal_group_destroy(other), PEAL_OK); });
  peal_submission destroys[2] = {};
  for (peal_submission& destroy : destroys) {
    destroy = card.await_entry();
    EXPECT_EQ(destroy.operation, PEAL_OPERATION_DESTROY);
  }
  EXPECT_NE(destroys[0].cookie, destroys[1].cookie);
  EXPECT_NE(destroys[0].member, destroys[1].member);
  card.complete(destroys[1]);
  card.complete(destroys[0]);
  first.join();
  second.join();
  for (peal_request* each : requests) EXPECT_EQ(peal_request_free(each), PEAL_OK);
}

// One place of the ring is kept for a destroy;
// a second one waits until the card has taken something.
TEST_F(Rings, DestroyWaitsForAPlaceInTheRing) {
  peal_group* empty = make_fake_group(context);
  std::vector<peal_group*> others;
  uint32_t posted = 0;
  peal_request* request = nullptr;
  for (int i = 0; i < 4; i++) {
    others.push_back(make_fake_group(context));
    while (peal_ibarrier(others.back(), &request) == PEAL_OK) posted++;
  }
  EXPECT_EQ(posted, kFakeEntries - 1);
  std::thread first([&] { EXPECT_EQ(peal_group_destroy(group), PEAL_OK); });
  std::thread second([&] { EXPECT_EQ(peal_group_destroy(empty), PEAL_OK); });
  uint32_t destroys = 0;
  for (uint32_t i = 0; i < posted + 2; i++) {
    const peal_submission entry = card.await_entry();
    card.complete(entry);
    if (entry.operation == PEAL_OPERATION_DESTROY) destroys++;
  }
  EXPECT_EQ(destroys, 2u);
  first.join();
  second.join();
}

TEST_F(Rings, DoorbellOnlyForASleepingCard) {
  card.complete((post(), take()));
  EXPECT_EQ(card.doorbells, 0);
  card.set_sleeping(true);
  post();
  EXPECT_EQ(card.doorbells, 1);
  card.set_sleeping(false);
  post();
  EXPECT_EQ(card.doorbells, 1);
}

TEST_F(Rings, DeathNamesTheRank) {
  peal_request* request = post();
  card.complete(take(), PEAL_STATUS_PEER_DEAD, 5);
  EXPECT_EQ(peal_wait(request), PEAL_ERR_PEER_DEAD);
  EXPECT_EQ(peal_request_failed_rank(request), 5);
  EXPECT_EQ(peal_group_failed_rank(group), 5);
  EXPECT_STREQ(peal_last_error_text(), "barrier 0: a member of the group died: rank 5");
}

TEST_F(Rings, MismatchLeavesTheGroupAlone) {
  peal_request* request = post();
  card.complete(take(), PEAL_STATUS_MISMATCH, 2);
  EXPECT_EQ(peal_wait(request), PEAL_ERR_MISMATCH);
  EXPECT_EQ(peal_group_failed_rank(group), -1);
  post();
  EXPECT_EQ(take().sequence, 1u);
}

// The card has not taken a refused operation for the next of its group, so the library must not
// either.
TEST_F(Rings, RefusedSequenceIsUsedAgain) {
  card.complete((post(), take()));
  peal_request* refused = post();
  peal_request* behind = post();
  card.complete(take(), PEAL_STATUS_NO_RESOURCES);
  card.complete(take(), PEAL_STATUS_BAD_SEQUENCE);
  EXPECT_EQ(peal_wait(refused), PEAL_ERR_NO_RESOURCES);
  EXPECT_EQ(peal_wait(behind), PEAL_ERR_BAD_SEQUENCE);
  post();
  EXPECT_EQ(take().sequence, 1u);
}

TEST_F(Rings, StrayCompletionBreaksTheContext) {
  for (const uint64_t wrong : {uint64_t{1} << 32, uint64_t{0xffffffff}, uint64_t{3}}) {
    FakeCard other;
    peal_context* broken = open_fake(&other);
    peal_group* its = make_fake_group(broken);
    peal_request* request = nullptr;
    ASSERT_EQ(peal_ibarrier(its, &request), PEAL_OK);
    peal_submission entry = {};
    ASSERT_TRUE(other.take(&entry));
    entry.cookie += wrong;
    other.complete(entry);
    EXPECT_EQ(peal_wait(request), PEAL_ERR_CARD_ANSWER) << wrong;
    EXPECT_EQ(peal_ibarrier(its, &request), PEAL_ERR_CARD_ANSWER);
    peal_close(broken);
  }
}

TEST_F(Rings, ACompletionOfAnotherSequenceBreaksTheContext) {
  peal_request* request = post();
  peal_submission entry = take();
  entry.sequence++;
  card.complete(entry);
  EXPECT_EQ(peal_wait(request), PEAL_ERR_CARD_ANSWER);
}

// The place of a request that was freed serves another group, with the same sequence.
TEST_F(Rings, ALateCompletionDoesNotEndTheNextRequest) {
  peal_group* other = make_fake_group(context);
  peal_request* first = post();
  const peal_submission entry = take();
  card.complete(entry);
  EXPECT_EQ(peal_wait(first), PEAL_OK);
  EXPECT_EQ(peal_request_free(first), PEAL_OK);
  peal_request* second = nullptr;
  ASSERT_EQ(peal_ibarrier(other, &second), PEAL_OK);
  ASSERT_EQ(second, first);
  card.complete(entry);
  EXPECT_EQ(peal_wait(second), PEAL_ERR_CARD_ANSWER);
}

TEST_F(Rings, CompletionTwiceBreaksTheContext) {
  peal_request* first = post();
  peal_request* second = post();
  const peal_submission entry = take();
  card.complete(entry);
  EXPECT_EQ(peal_wait(first), PEAL_OK);
  card.complete(entry);
  EXPECT_EQ(peal_wait(second), PEAL_ERR_CARD_ANSWER);
}

// It is noticed while room is made for the next: that one would wait for ever.
TEST_F(Rings, ACardFoundWrongWhilePostingTakesNothingMore) {
  std::vector<peal_request*> requests;
  for (uint32_t i = 0; i < kFakeParked; i++) requests.push_back(post());
  const peal_submission entry = take();
  card.complete(entry);
  card.complete(entry);
  peal_request* refused = nullptr;
  EXPECT_EQ(peal_ibarrier(group, &refused), PEAL_ERR_CARD_ANSWER);
  EXPECT_EQ(refused, nullptr);
  EXPECT_EQ(peal_wait(requests[0]), PEAL_OK);
  EXPECT_EQ(peal_wait(requests[1]), PEAL_ERR_CARD_ANSWER);
}

TEST_F(Rings, UnknownStatusIsTheCardsFault) {
  peal_request* request = post();
  card.complete(take(), 999);
  EXPECT_EQ(peal_wait(request), PEAL_ERR_CARD_ANSWER);
}

TEST_F(Rings, ADestroyEndsWithTheCard) {
  std::thread destroys([&] { EXPECT_EQ(peal_group_destroy(group), PEAL_ERR_CARD_GONE); });
  card.await_entry();
  {
    const std::lock_guard<std::mutex> guard(card.mutex);
    card.connected = false;
  }
  destroys.join();
}

TEST_F(Rings, ClosedConnectionEndsEverything) {
  peal_request* done = post();
  peal_request* pending = post();
  card.complete(take());  // before it went
  {
    const std::lock_guard<std::mutex> guard(card.mutex);
    card.connected = false;
  }
  EXPECT_EQ(peal_wait(pending), PEAL_ERR_CARD_GONE);
  EXPECT_EQ(peal_wait(done), PEAL_OK);
  EXPECT_EQ(peal_barrier(group), PEAL_ERR_CARD_GONE);
}

// A card may be silent for five seconds of looking, ten intervals beside; not for twice three that
// have nothing to do with each other.
TEST_F(Rings, SilenceCountsFromWhenSomethingIsPending) {
  constexpr uint64_t kLookNs = 200'000'000;
  card.set_heartbeat_interval(1000);
  uint64_t now = 1;
  const auto look_for_three_seconds = [&] {
    for (int i = 0; i < 15; i++) check_card(*context, now += kLookNs);
  };
  for (int i = 0; i < 3; i++) {
    peal_request* request = post();
    look_for_three_seconds();
    card.complete(take());
    EXPECT_EQ(peal_wait(request), PEAL_OK) << "the card was alive all the time";
    EXPECT_EQ(peal_request_free(request), PEAL_OK);
  }
  peal_request* request = post();
  look_for_three_seconds();
  card.beat();
  look_for_three_seconds();
  EXPECT_EQ(context->broken, PEAL_OK) << "it has beaten meanwhile";
  EXPECT_EQ(card.ring.host->reset_epoch.value, 0u);
  look_for_three_seconds();
  EXPECT_EQ(peal_wait(request), PEAL_ERR_CARD_GONE);
  EXPECT_EQ(card.ring.host->reset_epoch.value, 1u) << "should it go on, it takes nothing more";
  EXPECT_FALSE(context->transport->connected()) << "nobody asks it for anything";
}

// Behind work that takes longer than the caches remember each line costs a miss.
TEST_F(Rings, WhatEveryOperationTouchesLiesOnTwoLines) {
  const auto* first = reinterpret_cast<const uint8_t*>(context);
  const auto ends = [&](const auto& member) {
    return reinterpret_cast<const uint8_t*>(&member) + sizeof(member) - first;
  };
  EXPECT_EQ(reinterpret_cast<uintptr_t>(context) % 64, 0u);
  EXPECT_LE(ends(context->ring), 64);
  EXPECT_LE(ends(context->owner), 128);
  EXPECT_LE(ends(context->requests), 128);
  EXPECT_LE(ends(context->free_requests), 128);
  EXPECT_LE(ends(context->completions_taken), 128);
  EXPECT_LE(ends(context->completed), 128);
  EXPECT_LE(ends(context->card_ns), 128);
  EXPECT_LE(ends(context->sleeper), 128);
  EXPECT_LE(ends(context->programs_ended), 128);
}

uintptr_t page_of(const void* memory) { return reinterpret_cast<uintptr_t>(memory) / 4096; }

TEST_F(Rings, WhatEveryOperationTouchesLiesOnOnePage) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(context) % 4096, 0u);
  EXPECT_EQ(page_of(group), page_of(context));
  peal_request* requests[8];  // none of which is freed before all are there
  for (peal_request*& each : requests) {
    each = post();
    card.complete(take());
    EXPECT_EQ(peal_wait(each), PEAL_OK);
    EXPECT_EQ(page_of(each + 1), page_of(context));
  }
  for (peal_request* each : requests) EXPECT_EQ(peal_request_free(each), PEAL_OK);
}

TEST_F(Rings, TheNextGroupHasThePlaceOfOneThatIsGone) {
  const auto destroy = [&](peal_group* gone) {
    std::thread caller([&] { EXPECT_EQ(peal_group_destroy(gone), PEAL_OK); });
    card.complete(card.await_entry());
    caller.join();
  };
  peal_group* elsewhere = make_fake_group(context);
  ASSERT_NE(elsewhere, nullptr);
  EXPECT_NE(page_of(elsewhere), page_of(context));
  destroy(group);
  group = make_fake_group(context);
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(page_of(group), page_of(context));
  destroy(elsewhere);
  elsewhere = make_fake_group(context);
  ASSERT_NE(elsewhere, nullptr);
  EXPECT_NE(page_of(elsewhere), page_of(context)) << "it is taken";
  destroy(elsewhere);
}

#ifdef PEAL_ADDRESS_SANITIZER
TEST_F(Rings, WhatAContextsMemoryDoesNotHoldIsPoisoned) {
  const peal_request* const behind = context->requests + request_count(*context);
  EXPECT_EQ(__asan_address_is_poisoned(behind - 1), 0);
  EXPECT_EQ(__asan_address_is_poisoned(behind), 1);
  const auto other = std::make_unique<peal_context>();
  EXPECT_EQ(__asan_address_is_poisoned(other.get()), 0);
  GroupPointer made = make_group(*other);
  const void* const place = made.get();
  EXPECT_EQ(page_of(place), page_of(other.get()));
  EXPECT_EQ(__asan_address_is_poisoned(place), 0);
  made.reset();
  EXPECT_EQ(__asan_address_is_poisoned(place), 1);
}
#endif

TEST_F(Rings, AWaitTakesNoMoreThanItsOwn) {
  peal_request* first = post();
  peal_request* second = post();
  peal_request* third = post();
  for (int i = 0; i < 3; i++) card.complete(take());
  EXPECT_EQ(peal_wait(second), PEAL_OK);
  EXPECT_EQ(context->ring.completion_head, 2u) << "what is before it comes first";
  EXPECT_EQ(peal_wait(first), PEAL_OK);
  EXPECT_EQ(context->ring.completion_head, 2u) << "it was over already";
  EXPECT_EQ(peal_wait(third), PEAL_OK);
  EXPECT_EQ(context->ring.completion_head, 3u);
  for (peal_request* each : {first, second, third}) EXPECT_EQ(peal_request_free(each), PEAL_OK);
}

TEST_F(Rings, ATestTakesNoMoreThanItsOwn) {
  peal_request* first = post();
  peal_request* second = post();
  for (int i = 0; i < 2; i++) card.complete(take());
  int done = 0;
  EXPECT_EQ(peal_test(first, &done), PEAL_OK);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(context->ring.completion_head, 1u);
  EXPECT_EQ(context->tested_ticks, 0u) << "the card was there, and is not looked after";
  EXPECT_EQ(peal_test(second, &done), PEAL_OK);
  EXPECT_EQ(done, 1);
  for (peal_request* each : {first, second}) EXPECT_EQ(peal_request_free(each), PEAL_OK);
}

TEST_F(Rings, ATestThatFindsNothingSaysThatItLooked) {
  peal_request* request = post();
  int done = 1;
  EXPECT_EQ(peal_test(request, &done), PEAL_OK);
  EXPECT_EQ(done, 0);
  EXPECT_NE(context->tested_ticks, 0u) << "so the next one needs no lock";
  card.complete(take());
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  EXPECT_EQ(peal_request_free(request), PEAL_OK);
}

TEST_F(Rings, TheCardHearsHowFarWasReadWithTheNextPost) {
  const uint64_t& told = context->ring.host->indices.completion_head;
  peal_request* first = post();
  card.complete(take());
  EXPECT_EQ(peal_wait(first), PEAL_OK);
  EXPECT_EQ(peal_request_free(first), PEAL_OK);
  EXPECT_EQ(told, 0u) << "a line and a page less to touch";
  peal_request* second = post();
  EXPECT_EQ(told, 1u);
  card.complete(take());
  EXPECT_EQ(peal_wait(second), PEAL_OK);
  EXPECT_EQ(peal_request_free(second), PEAL_OK);
}

TEST_F(Rings, CountersComeInParts) {
  std::vector<uint64_t> values(40, 0);
  size_t count = 0;
  EXPECT_EQ(peal_counters(context, values.data(), values.size(), &count), PEAL_OK);
  EXPECT_EQ(count, 40u);
  for (uint64_t i = 0; i < 40; i++) EXPECT_EQ(values[i], i);
  values.assign(40, 77);
  EXPECT_EQ(peal_counters(context, values.data(), 33, &count), PEAL_OK);
  EXPECT_EQ(count, 40u);
  EXPECT_EQ(values[32], 32u);
  EXPECT_EQ(values[33], 77u);
}

}  // namespace
}  // namespace peal::host
