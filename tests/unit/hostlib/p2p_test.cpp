// SPDX-License-Identifier: BSD-2-Clause
// Point-to-point: what each call writes into its submission entry, how requests end and what they
// say then, and what they have to do with the group's order: nothing.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/names.h"
#include "hostlib/rings.h"
#include "tests/unit/hostlib/fake_card.h"

namespace peal::host {
namespace {

constexpr uint32_t kSize = 3;
constexpr uint32_t kRank = 1;  // whose calls are looked at
constexpr size_t kBytes = 4096;
constexpr uint64_t kFar = 0x1234'5678'9abc;  // an offset at another rank

class Messages : public testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t rank = 0; rank < kSize; rank++) contexts[rank] = open_fake(&cards[rank]);
    group = make_group(0);
    ASSERT_NE(group, nullptr);
    void* allocated = nullptr;
    ASSERT_EQ(peal_alloc(context(), kBytes, &allocated), PEAL_OK);
    memory = static_cast<uint8_t*>(allocated);
  }
  void TearDown() override {
    for (peal_context* each : contexts) peal_close(each);
  }

  peal_group* make_group(unsigned flags) {
    const peal_group_params params = {sizeof(params), flags, PEAL_ALLGATHER_AUTO, nullptr};
    const std::vector<peal_group*> groups = make_fake_groups(contexts, &params);
    return groups.empty() ? nullptr : groups[kRank];
  }
  peal_context* context() { return contexts[kRank]; }
  FakeCard& card() { return cards[kRank]; }

  peal_submission take() {
    peal_submission taken = {};
    EXPECT_TRUE(card().take(&taken));
    return taken;
  }
  bool quiet() {
    peal_submission taken = {};
    return !card().take(&taken);
  }
  // The next entry that the card sees, as a line.
  std::string entry() {
    const peal_submission taken = take();
    card().complete(taken);
    std::string text = names::operation(taken.operation) + " " + names::algorithm(taken.algorithm);
    text += " rank " + std::to_string(static_cast<int32_t>(taken.root));
    if (taken.flags != 0) text += " flags " + std::to_string(taken.flags);
    if (taken.sequence != 0) text += " tag " + std::to_string(taken.sequence);
    text += " bytes " + std::to_string(taken.block_bytes);
    const auto side = [&](const char* name, uint32_t key, uint64_t offset) {
      if (key == 0 && offset == 0) return;
      text += std::string(" ") + name + " " + std::to_string(key) + "+" + std::to_string(offset);
    };
    side("send", taken.send_key, taken.send_offset);
    side("receive", taken.receive_key, taken.receive_offset);
    EXPECT_EQ(taken.member, group->member);
    return text;
  }
  std::string text_of(peal_request* request) {
    (void)peal_wait(request);
    return peal_last_error_text();
  }
  peal_request* send(uint64_t tag) {
    peal_request* request = nullptr;
    EXPECT_EQ(peal_isend(group, 2, tag, memory, 100, &request), PEAL_OK);
    return request;
  }
  peal_request* receive(uint64_t tag) {
    peal_request* request = nullptr;
    EXPECT_EQ(peal_irecv(group, 2, tag, memory, 100, &request), PEAL_OK);
    return request;
  }
  peal_statistics statistics() {
    peal_statistics read = {};
    read.struct_bytes = sizeof(read);
    EXPECT_EQ(peal_read_statistics(context(), &read), PEAL_OK);
    return read;
  }

  FakeCard cards[kSize];
  peal_context* contexts[kSize] = {};
  peal_group* group = nullptr;
  uint8_t* memory = nullptr;  // key 1
};

TEST_F(Messages, TheEntryOfEachCall) {
  EXPECT_EQ(peal_isend(group, 2, 77, memory + 8, 100, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "send none rank 2 tag 77 bytes 100 send 1+8");
  EXPECT_EQ(peal_irecv(group, 0, 78, memory + 9, 101, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "receive none rank 0 tag 78 bytes 101 receive 1+9");
  EXPECT_EQ(peal_irecv(group, 0, PEAL_ANY_TAG, memory + 9, 101, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "receive none rank 0 flags 2 bytes 101 receive 1+9");
  EXPECT_EQ(peal_put(group, 2, memory + 1, 50, 99, kFar, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "put none rank 2 bytes 50 send 1+1 receive 99+20015998343868");
  EXPECT_EQ(peal_get(group, 1, memory + 1, 50, 99, kFar, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "get none rank 1 bytes 50 send 99+20015998343868 receive 1+1");
  EXPECT_EQ(peal_fence(group, 0, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "fence none rank 0 bytes 0");
  EXPECT_EQ(peal_fence(group, PEAL_ALL_RANKS, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "fence none rank -1 bytes 0");
}

TEST_F(Messages, NothingNeedsNoBuffer) {
  EXPECT_EQ(peal_isend(group, 2, 1, nullptr, 0, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "send none rank 2 tag 1 bytes 0");
  EXPECT_EQ(peal_irecv(group, 2, 1, nullptr, 0, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "receive none rank 2 tag 1 bytes 0");
  EXPECT_EQ(peal_put(group, 2, nullptr, 0, 99, kFar, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "put none rank 2 bytes 0");
  EXPECT_EQ(peal_get(group, 2, nullptr, 0, 99, kFar, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "get none rank 2 bytes 0");
}

TEST_F(Messages, WhatIsWrongIsSaidByNameAndRank) {
  peal_request* request = nullptr;
  const auto expect = [&](peal_error got, peal_error wanted, const std::string& text) {
    EXPECT_EQ(got, wanted) << text;
    EXPECT_EQ(peal_last_error_text(), text);
    EXPECT_EQ(request, nullptr);
    request = reinterpret_cast<peal_request*>(this);  // so that each call must say so itself
  };
  expect(peal_isend(nullptr, 2, 1, memory, 1, &(request = nullptr)), PEAL_ERR_INVALID_ARGUMENT,
         "peal_isend: group is null");
  expect(peal_isend(group, 3, 1, memory, 1, &request), PEAL_ERR_BAD_RANK,
         "send to rank 3: the group has the ranks 0 to 2");
  expect(peal_irecv(group, PEAL_ALL_RANKS, 1, memory, 1, &request), PEAL_ERR_BAD_RANK,
         "receive from all ranks: the group has the ranks 0 to 2");
  expect(peal_fence(group, 3, &request), PEAL_ERR_BAD_RANK,
         "fence to rank 3: the group has the ranks 0 to 2");
  expect(peal_isend(group, 2, PEAL_ANY_TAG, memory, 1, &request), PEAL_ERR_INVALID_ARGUMENT,
         "send to rank 2: PEAL_ANY_TAG is the tag of no message");
  expect(peal_get(group, 0, nullptr, 8, 1, 0, &request), PEAL_ERR_INVALID_ARGUMENT,
         "get from rank 0: the buffer of 8 bytes is null");
  EXPECT_EQ(peal_put(group, 2, memory + kBytes - 4, 8, 1, 0, &request), PEAL_ERR_BAD_BOUNDS);
  EXPECT_TRUE(std::string(peal_last_error_text()).starts_with("put to rank 2: the own buffer 0x"));
  EXPECT_EQ(request, nullptr);
  uint8_t stranger[8] = {};
  EXPECT_EQ(peal_irecv(group, 2, 1, stranger, 8, nullptr), PEAL_ERR_NOT_REGISTERED);
  EXPECT_TRUE(
      std::string(peal_last_error_text()).starts_with("receive from rank 2: the receive buffer"));
  peal_memory* readable = nullptr;
  ASSERT_EQ(peal_register(context(), stranger, 8, PEAL_READ, &readable), PEAL_OK);
  EXPECT_EQ(peal_irecv(group, 2, 1, stranger, 8, nullptr), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(peal_get(group, 2, stranger, 8, 1, 0, nullptr), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(peal_isend(group, 2, 1, stranger, 8, nullptr), PEAL_OK);
  EXPECT_EQ(peal_put(group, 2, stranger, 8, 1, 0, nullptr), PEAL_OK);
  size_t received = 99;
  EXPECT_EQ(peal_recv(nullptr, 0, 1, memory, 1, &received), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(received, 0u);
  EXPECT_EQ(peal_send(nullptr, 0, 1, memory, 1), PEAL_ERR_INVALID_ARGUMENT);
}

TEST_F(Messages, OfAGroupThatRegistersTheyDo) {
  peal_group* registers = make_group(PEAL_GROUP_REGISTER);
  uint8_t stranger[64] = {};
  EXPECT_EQ(peal_irecv(registers, 2, 1, stranger, 64, nullptr), PEAL_OK);
  const peal_submission first = take();
  EXPECT_NE(first.receive_key, 0u);
  EXPECT_EQ(peal_irecv(registers, 2, 1, stranger + 16, 8, nullptr), PEAL_OK);
  const peal_submission second = take();
  EXPECT_EQ(second.receive_key, first.receive_key);
  EXPECT_EQ(second.receive_offset, 16u);
  // Another rank may not write what was registered to be read.
  EXPECT_EQ(peal_isend(registers, 2, 1, stranger, 64, nullptr), PEAL_OK);
  EXPECT_NE(take().send_key, first.receive_key);
}

TEST_F(Messages, AReceiveSaysWhichMessageItGot) {
  peal_request* request = receive(PEAL_ANY_TAG);
  EXPECT_EQ(peal_request_tag(request), PEAL_ANY_TAG);
  EXPECT_EQ(peal_request_bytes(request), 0u);
  card().complete_message(take(), 60, 1234);
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  EXPECT_EQ(peal_request_tag(request), 1234u);
  EXPECT_EQ(peal_request_bytes(request), 60u);
  EXPECT_EQ(peal_request_card_ns(request), 1234u);
  EXPECT_EQ(peal_request_free(request), PEAL_OK);

  request = send(5);
  card().complete_message(take(), 100);
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  EXPECT_EQ(peal_request_tag(request), 5u);
  EXPECT_EQ(peal_request_bytes(request), 100u);
  EXPECT_EQ(peal_request_free(request), PEAL_OK);

  // Of whoever has that request next nothing is left.
  peal_request* barrier = nullptr;
  ASSERT_EQ(peal_ibarrier(group, &barrier), PEAL_OK);
  EXPECT_EQ(barrier, request);
  EXPECT_EQ(peal_request_bytes(barrier), 0u);
  card().complete(take());
  EXPECT_EQ(peal_wait(barrier), PEAL_OK);
  EXPECT_EQ(peal_request_bytes(barrier), 0u);
  EXPECT_EQ(peal_request_tag(barrier), 0u);
  EXPECT_EQ(peal_request_bytes(nullptr), 0u);
  EXPECT_EQ(peal_request_tag(nullptr), 0u);
}

TEST_F(Messages, HowTheyFailIsSaidWithRankAndTag) {
  peal_request* truncated = receive(7);
  card().complete_message(take(), 500, 7, PEAL_STATUS_TRUNCATED);
  EXPECT_EQ(text_of(truncated),
            "receive from rank 2, tag 7: the message is longer than the receive: 500 bytes");
  EXPECT_EQ(peal_request_bytes(truncated), 500u);
  peal_request* any = receive(PEAL_ANY_TAG);
  card().complete(take(), PEAL_STATUS_PEER_DEAD, 0);
  EXPECT_EQ(text_of(any), "receive from rank 2, any tag: a member of the group died: rank 0");
  EXPECT_EQ(peal_group_failed_rank(group), 0);
  peal_request* put = nullptr;
  ASSERT_EQ(peal_put(group, 2, memory, 8, 99, 0, &put), PEAL_OK);
  card().complete(take(), PEAL_STATUS_BAD_BOUNDS, 2);
  EXPECT_EQ(text_of(put), "put to rank 2: the range leaves its registered memory: rank 2");
  EXPECT_EQ(peal_request_failed_rank(put), 2);
  EXPECT_EQ(peal_request_bytes(put), 0u);
  peal_request* fence = nullptr;
  ASSERT_EQ(peal_fence(group, PEAL_ALL_RANKS, &fence), PEAL_OK);
  card().complete(take(), PEAL_STATUS_CLOSED);
  EXPECT_EQ(text_of(fence), "fence to all ranks: the group was destroyed");
  // Detached: the group says it, as often as it is asked for the first time.
  EXPECT_EQ(peal_get(group, 0, memory, 8, 99, 0, nullptr), PEAL_OK);
  card().complete(take(), PEAL_STATUS_BAD_KEY, 0);
  EXPECT_EQ(peal_group_wait(group), PEAL_ERR_BAD_KEY);
  EXPECT_EQ(std::string(peal_last_error_text()),
            "get from rank 0: the card knows no such memory key of this context: rank 0");
  EXPECT_EQ(peal_group_wait(group), PEAL_OK);
}

// As many as the context has requests, whatever a group's order has room for; and collectives have
// all of theirs besides.
TEST_F(Messages, AreNotAmongTheGroupsOperations) {
  std::vector<peal_request*> requests;
  for (uint32_t i = 0; i < kFakeParked + 2; i++) requests.push_back(receive(i));
  peal_request* barriers[kFakeParked] = {};
  for (peal_request*& each : barriers) ASSERT_EQ(peal_ibarrier(group, &each), PEAL_OK);
  peal_request* more = nullptr;
  EXPECT_EQ(peal_ibarrier(group, &more), PEAL_ERR_TOO_MANY);
  for (uint32_t i = 0; i < kFakeParked + 2; i++) EXPECT_EQ(take().sequence, i);
  std::vector<peal_submission> entries;
  for (uint64_t i = 0; i < kFakeParked; i++) {
    entries.push_back(take());
    EXPECT_EQ(entries.back().sequence, i);
  }
  for (const peal_submission& each : entries) card().complete(each);
  EXPECT_EQ(peal_wait_all(barriers, kFakeParked), PEAL_OK);
  EXPECT_EQ(group->outstanding, 0u);
  EXPECT_EQ(group->unordered, kFakeParked + 2);
  for (peal_request* each : barriers) EXPECT_EQ(peal_request_free(each), PEAL_OK);
}

// One that is refused does not set the group's sequence back, nor does it keep it from that.
TEST_F(Messages, LeaveTheGroupsSequenceAlone) {
  peal_request* pending = receive(900);
  const peal_submission last = take();
  peal_request* barrier = nullptr;
  ASSERT_EQ(peal_ibarrier(group, &barrier), PEAL_OK);
  card().complete(take());
  EXPECT_EQ(peal_wait(barrier), PEAL_OK);
  peal_request* refused = send(0);
  card().complete(take(), PEAL_STATUS_TOO_MANY);
  EXPECT_EQ(peal_wait(refused), PEAL_ERR_TOO_MANY);
  ASSERT_EQ(peal_ibarrier(group, &barrier), PEAL_OK);
  const peal_submission bad = take();
  EXPECT_EQ(bad.sequence, 1u);
  card().complete(bad, PEAL_STATUS_BAD_FLAGS);
  EXPECT_EQ(peal_wait(barrier), PEAL_ERR_BAD_FLAGS);
  ASSERT_EQ(peal_ibarrier(group, &barrier), PEAL_OK);
  EXPECT_EQ(take().sequence, 1u);
  card().complete_message(last, 8, 900);
  EXPECT_EQ(peal_wait(pending), PEAL_OK);
}

TEST_F(Messages, FillTheTableOfRequestsAndSayWhy) {
  std::vector<peal_request*> requests;
  for (uint32_t i = 0; i + 1 < kFakeEntries; i++) requests.push_back(receive(i));
  peal_request* more = nullptr;
  EXPECT_EQ(peal_irecv(group, 2, 1, memory, 1, &more), PEAL_ERR_TOO_MANY);
  EXPECT_EQ(more, nullptr);
  const peal_submission first = take();
  EXPECT_EQ(peal_request_free(requests[0]), PEAL_OK);  // detached: nobody has to look at it
  card().complete_message(first, 1, 0);
  EXPECT_EQ(peal_irecv(group, 2, 1, memory, 1, &more), PEAL_OK);
  EXPECT_EQ(more, requests[0]);
  EXPECT_EQ(statistics().posted, kFakeEntries);
  EXPECT_EQ(statistics().completed, 1u);
}

// A completion with another tag than was posted is not the card's answer to this request.
TEST_F(Messages, AnAnswerWithAnotherTagIsTheCardsFailure) {
  peal_request* request = receive(7);
  peal_submission entry = take();
  entry.sequence = 8;
  card().complete_message(entry, 1, 8);
  EXPECT_EQ(peal_wait(request), PEAL_ERR_CARD_ANSWER);
}

TEST_F(Messages, TheGroupWaitsForThem) {
  EXPECT_EQ(peal_isend(group, 2, 1, memory, 8, nullptr), PEAL_OK);
  const peal_submission sent = take();
  std::thread destroys([&] { EXPECT_EQ(peal_group_destroy(group), PEAL_OK); });
  card().await_sleeper();
  EXPECT_TRUE(quiet());  // no destroy before that
  card().complete_message(sent, 8);
  const peal_submission destroy = card().await_entry();
  EXPECT_EQ(destroy.operation, PEAL_OPERATION_DESTROY);
  EXPECT_EQ(destroy.sequence, 0u);
  card().complete(destroy);
  destroys.join();
}

TEST_F(Messages, BlockingCallsReturnWhatCame) {
  size_t received = 0;
  peal_error error = PEAL_OK;
  std::thread receives([&] { error = peal_recv(group, 0, 3, memory, 100, &received); });
  peal_submission entry = card().await_entry();
  EXPECT_EQ(entry.sequence, 3u);
  card().complete_message(entry, 200, 3, PEAL_STATUS_TRUNCATED);
  receives.join();
  EXPECT_EQ(error, PEAL_ERR_TRUNCATED);
  EXPECT_EQ(received, 200u);
  std::thread sends([&] { error = peal_send(group, 0, 4, memory, 100); });
  entry = card().await_entry();
  card().complete_message(entry, 100);
  sends.join();
  EXPECT_EQ(error, PEAL_OK);
  EXPECT_EQ(statistics().requests, 0u);
}

TEST_F(Messages, OfAnAbortedGroupTheyEndAsOfADeadRank) {
  peal_request* request = receive(1);
  const peal_submission entry = take();
  std::thread aborts([&] { EXPECT_EQ(peal_group_abort(group), PEAL_OK); });
  {
    std::unique_lock<std::mutex> lock(card().mutex);
    card().changed.wait(lock, [&] { return card().connected_members.empty(); });
  }
  card().complete(entry, PEAL_STATUS_BAD_GROUP);
  aborts.join();
  EXPECT_EQ(peal_wait(request), PEAL_ERR_PEER_DEAD);
  EXPECT_EQ(peal_request_failed_rank(request), static_cast<int>(kRank));
}

TEST_F(Messages, EndWithTheCard) {
  peal_request* request = receive(1);
  {
    const std::lock_guard<std::mutex> guard(card().mutex);
    card().connected = false;
  }
  EXPECT_EQ(peal_wait(request), PEAL_ERR_CARD_GONE);
  EXPECT_EQ(peal_isend(group, 2, 1, memory, 8, nullptr), PEAL_ERR_CARD_GONE);
  EXPECT_EQ(group->unordered, 0u);
}

TEST_F(Messages, MemoryIsNamedForWhicheverWayItHas) {
  static uint8_t page[256];
  uint32_t key = 0;
  uint64_t offset = 0;
  peal_memory* readable = nullptr;
  peal_memory* writable = nullptr;
  ASSERT_EQ(peal_register(context(), page, 256, PEAL_WRITE, &writable), PEAL_OK);
  ASSERT_EQ(peal_register(context(), page + 16, 128, PEAL_READ, &readable), PEAL_OK);
  EXPECT_EQ(peal_memory_name(context(), page + 20, 100, &key, &offset), PEAL_OK);
  EXPECT_EQ(offset, 20u);  // others may put there, though it was registered first
  ASSERT_EQ(peal_unregister(writable), PEAL_OK);
  EXPECT_EQ(peal_memory_name(context(), page + 20, 100, &key, &offset), PEAL_OK);
  EXPECT_EQ(offset, 4u);
  EXPECT_EQ(peal_memory_name(context(), page + 20, 200, &key, &offset), PEAL_ERR_BAD_BOUNDS);
  EXPECT_EQ(peal_memory_name(context(), page, 8, &key, &offset), PEAL_ERR_NOT_REGISTERED);
  EXPECT_EQ(peal_memory_name(context(), page, 8, nullptr, &offset), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_unregister(readable), PEAL_OK);
}

}  // namespace
}  // namespace peal::host
