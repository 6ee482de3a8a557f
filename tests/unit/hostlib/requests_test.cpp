// SPDX-License-Identifier: BSD-2-Clause
// Requests that are waited for together, or by nobody; statistics.
#include "hostlib/outcome.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/unit/hostlib/one_group.h"

namespace peal::host {
namespace {

class RequestsTest : public OneGroup {
 protected:
  peal_statistics statistics() {
    peal_statistics read = {};
    read.struct_bytes = sizeof(read);
    EXPECT_EQ(peal_read_statistics(context, &read), PEAL_OK);
    return read;
  }
  void lose_card() {
    const std::lock_guard<std::mutex> guard(card.mutex);
    card.connected = false;
  }
};

TEST_F(RequestsTest, AnyIsTheFirstOfTheListThatIsComplete) {
  peal_request* requests[] = {post(), nullptr, post(), post()};
  const peal_submission entries[] = {take(), take(), take()};
  size_t index = 0;
  EXPECT_EQ(peal_test_any(requests, 4, &index), PEAL_OK);
  EXPECT_EQ(index, PEAL_NO_INDEX);
  card.complete(entries[2]);
  card.complete(entries[1], PEAL_STATUS_MISMATCH, 7);
  EXPECT_EQ(peal_wait_any(requests, 4, UINT64_MAX, &index), PEAL_ERR_MISMATCH);
  EXPECT_EQ(index, 2u);
  EXPECT_EQ(peal_last_error_text(), std::string("barrier 1: ranks disagree: rank 7"));
  EXPECT_EQ(peal_request_free(requests[2]), PEAL_OK);
  requests[2] = nullptr;
  EXPECT_EQ(peal_test_any(requests, 4, &index), PEAL_OK);
  EXPECT_EQ(index, 3u);
  requests[3] = nullptr;
  EXPECT_EQ(peal_wait_any(requests, 4, 1000, &index), PEAL_ERR_TIMED_OUT);
  EXPECT_EQ(index, PEAL_NO_INDEX);
  requests[0] = nullptr;
  EXPECT_EQ(peal_wait_any(requests, 4, UINT64_MAX, &index), PEAL_OK);
  EXPECT_EQ(index, PEAL_NO_INDEX);
  EXPECT_EQ(peal_wait_any(nullptr, 0, UINT64_MAX, &index), PEAL_OK);
  index = 5;
  EXPECT_EQ(peal_wait_any(nullptr, 1, 0, &index), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(index, PEAL_NO_INDEX);
  EXPECT_EQ(peal_test_any(requests, 4, nullptr), PEAL_ERR_INVALID_ARGUMENT);
}

TEST_F(RequestsTest, AnyOfTwoContextsIsRefused) {
  FakeCard another_card;
  peal_context* another = open_fake(&another_card);
  peal_request* requests[] = {post(), nullptr};
  ASSERT_EQ(peal_ibarrier(make_fake_group(another), &requests[1]), PEAL_OK);
  size_t index = 0;
  EXPECT_EQ(peal_wait_any(requests, 2, UINT64_MAX, &index), PEAL_ERR_INVALID_ARGUMENT);
  peal_close(another);
}

TEST_F(RequestsTest, AnyIsWokenByAnyOfThem) {
  peal_request* requests[] = {post(), post()};
  take();
  const peal_submission second = take();
  std::thread completer([&] {
    card.await_sleeper();
    card.complete(second);
  });
  size_t index = 0;
  EXPECT_EQ(peal_wait_any(requests, 2, UINT64_MAX, &index), PEAL_OK);
  EXPECT_EQ(index, 1u);
  completer.join();
}

TEST_F(RequestsTest, AllAreWaitedForAndTheFirstFailureIsTold) {
  peal_request* requests[] = {post(), nullptr, post(), post()};
  card.complete(take());
  card.complete(take(), PEAL_STATUS_DMA_FAULT, 2);
  card.complete(take(), PEAL_STATUS_MISMATCH, 3);
  EXPECT_EQ(peal_wait_all(requests, 4), PEAL_ERR_DMA_FAULT);
  EXPECT_EQ(peal_last_error_text(),
            std::string("barrier 1: the card could not reach the memory: rank 2"));
  EXPECT_EQ(peal_wait_all(requests, 2), PEAL_OK);
  EXPECT_EQ(peal_wait_all(nullptr, 1), PEAL_ERR_INVALID_ARGUMENT);
}

TEST_F(RequestsTest, TheDetachedFreeThemselves) {
  for (int i = 0; i < 10 * static_cast<int>(kFakeEntries); i++) {
    ASSERT_EQ(peal_ibarrier(group, nullptr), PEAL_OK);
    card.complete(take());
  }
  EXPECT_EQ(peal_group_wait(group), PEAL_OK);
  EXPECT_EQ(statistics().requests, 0u);
}

TEST_F(RequestsTest, TheFirstFailureOfTheDetachedIsToldOnce) {
  for (int i = 0; i < 3; i++) ASSERT_EQ(peal_ibarrier(group, nullptr), PEAL_OK);
  card.complete(take());
  card.complete(take(), PEAL_STATUS_DMA_FAULT, 4);
  card.complete(take(), PEAL_STATUS_MISMATCH, 5);
  EXPECT_EQ(peal_group_wait(group), PEAL_ERR_DMA_FAULT);
  EXPECT_EQ(peal_last_error_text(),
            std::string("barrier 1: the card could not reach the memory: rank 4"));
  EXPECT_EQ(peal_group_wait(group), PEAL_OK);
}

TEST_F(RequestsTest, FreeingAPendingOneDetachesIt) {
  peal_request* request = post();
  EXPECT_EQ(peal_request_free(request), PEAL_OK);
  EXPECT_EQ(peal_request_free(request), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(statistics().requests, 1u);
  card.complete(take(), PEAL_STATUS_MISMATCH, 1);
  EXPECT_EQ(peal_group_wait(group), PEAL_ERR_MISMATCH);
  EXPECT_EQ(statistics().requests, 0u);
}

TEST_F(RequestsTest, ACardThatIsGoneFailsTheDetached) {
  ASSERT_EQ(peal_ibarrier(group, nullptr), PEAL_OK);
  lose_card();
  EXPECT_EQ(peal_group_wait(group), PEAL_ERR_CARD_GONE);
}

// Entries that the card had not seen before the abort name a group that it no longer knows.
TEST_F(RequestsTest, WhatAnAbortOvertookHasDiedLikeTheRest) {
  peal_request* request = post();
  std::thread late([&] {
    const peal_submission entry = card.await_entry();
    {
      std::unique_lock<std::mutex> lock(card.mutex);
      card.changed.wait(lock, [&] { return card.connected_members.empty(); });
    }
    card.complete(entry, PEAL_STATUS_BAD_GROUP);
  });
  EXPECT_EQ(peal_group_abort(group), PEAL_OK);
  late.join();
  EXPECT_EQ(peal_wait(request), PEAL_ERR_PEER_DEAD);
  EXPECT_EQ(peal_request_failed_rank(request), 0);
}

TEST_F(RequestsTest, AnAbortThatTheCardRefusesChangesNothing) {
  peal_request* request = post();
  card.refuse_abandon = PEAL_ERR_CARD_ANSWER;
  EXPECT_EQ(peal_group_abort(group), PEAL_ERR_CARD_ANSWER);
  card.refuse_abandon = PEAL_OK;
  card.complete(take());
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  EXPECT_EQ(peal_group_abort(group), PEAL_OK);
}

TEST_F(RequestsTest, PollingWithShortTimeOutsNoticesThatTheCardIsGone) {
  peal_request* request = post();
  lose_card();
  size_t index = 0;
  peal_error error = PEAL_ERR_TIMED_OUT;
  while (error == PEAL_ERR_TIMED_OUT) error = peal_wait_any(&request, 1, 0, &index);
  EXPECT_EQ(error, PEAL_ERR_CARD_GONE);
  EXPECT_EQ(peal_wait_for(request, 0), PEAL_ERR_CARD_GONE);
}

// Most tests look without the lock: they must miss neither a result nor the card's end.
TEST_F(RequestsTest, ManyTestsMissNothing) {
  for (uint32_t i = 0; i < 4 * kFakeEntries; i++) {
    peal_request* first = post();
    peal_request* second = post();
    int done = 1;
    for (int look = 0; look < 5; look++) {
      EXPECT_EQ(peal_test(second, &done), PEAL_OK);
      EXPECT_EQ(done, 0);
    }
    const peal_submission entries[] = {take(), take()};
    card.complete(entries[i % 2]);
    EXPECT_EQ(peal_test(second, &done), PEAL_OK);
    EXPECT_EQ(done, i % 2);
    card.complete(entries[1 - i % 2], PEAL_STATUS_PEER_DEAD, 0);
    EXPECT_EQ(peal_test(first, &done), i % 2 == 0 ? PEAL_OK : PEAL_ERR_PEER_DEAD);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(peal_test(second, &done), i % 2 == 0 ? PEAL_ERR_PEER_DEAD : PEAL_OK);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(peal_request_free(first), PEAL_OK);
    EXPECT_EQ(peal_request_free(second), PEAL_OK);
  }
}

TEST_F(RequestsTest, ManyTestsNoticeThatTheCardIsGone) {
  peal_request* request = post();
  lose_card();
  int done = 0;
  peal_error error = PEAL_OK;
  while (done == 0) error = peal_test(request, &done);
  EXPECT_EQ(error, PEAL_ERR_CARD_GONE);
}

// The request that was freed last is the next to be used.
TEST_F(RequestsTest, NothingIsLeftOfWhoeverHadItBefore) {
  peal_request* failed = post();
  card.complete(take(), PEAL_STATUS_PEER_DEAD, 0);
  EXPECT_EQ(peal_wait(failed), PEAL_ERR_PEER_DEAD);
  EXPECT_EQ(peal_request_failed_rank(failed), 0);
  EXPECT_EQ(peal_request_card_ns(failed), 1234u);
  EXPECT_EQ(peal_request_free(failed), PEAL_OK);
  peal_request* next = post();
  EXPECT_EQ(next, failed);
  EXPECT_EQ(peal_request_failed_rank(next), -1);
  EXPECT_EQ(peal_request_card_ns(next), 0u);
  card.complete(take());
  EXPECT_EQ(peal_wait(next), PEAL_OK);
}

TEST_F(RequestsTest, StatisticsSayWhatWasDone) {
  void* memory = nullptr;
  ASSERT_EQ(peal_alloc(context, 4096, &memory), PEAL_OK);
  card.set_sleeping(true);
  peal_request* request = post();
  card.set_sleeping(false);
  post();
  card.complete(take(), PEAL_STATUS_MISMATCH, 1);
  EXPECT_EQ(peal_wait(request), PEAL_ERR_MISMATCH);
  const peal_statistics read = statistics();
  EXPECT_EQ(read.posted, 2u);
  EXPECT_EQ(read.completed, 1u);
  EXPECT_EQ(read.failed, 1u);
  EXPECT_EQ(read.doorbells, 1u);
  EXPECT_EQ(read.card_ns, 1234u);
  EXPECT_EQ(read.groups, 1u);
  EXPECT_EQ(read.requests, 2u);
  EXPECT_EQ(read.regions, 1u);
  EXPECT_EQ(read.region_bytes, 4096u);
}

}  // namespace
}  // namespace peal::host
