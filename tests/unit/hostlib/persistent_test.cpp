// SPDX-License-Identifier: BSD-2-Clause
// Persistent requests: what each start posts, how they end, and what is left when they are gone.
#include "hostlib/persistent.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "hostlib/rings.h"
#include "tests/unit/hostlib/one_group.h"

namespace peal::host {
namespace {

constexpr size_t kBufferBytes = 5000;

class Persistent : public OneGroup {
 protected:
  void SetUp() override {
    OneGroup::SetUp();
    void* allocated = nullptr;
    ASSERT_EQ(peal_alloc(context, 4 * kBufferBytes, &allocated), PEAL_OK);
    memory = static_cast<uint8_t*>(allocated);
  }

  peal_request* broadcast() {
    peal_request* request = nullptr;
    EXPECT_EQ(peal_bcast_init(group, memory + 64, kBufferBytes, 0, &request), PEAL_OK);
    return request;
  }
  peal_request* barrier() {
    peal_request* request = nullptr;
    EXPECT_EQ(peal_barrier_init(group, &request), PEAL_OK);
    return request;
  }
  // Starts it, and is its card.
  peal_error run(peal_request* request, uint32_t status = 0) {
    EXPECT_EQ(peal_start(request), PEAL_OK);
    card.complete(take(), status);
    return peal_wait(request);
  }
  bool quiet() {
    peal_submission entry = {};
    return !card.take(&entry);
  }
  peal_statistics statistics() {
    peal_statistics read = {};
    read.struct_bytes = sizeof(read);
    EXPECT_EQ(peal_read_statistics(context, &read), PEAL_OK);
    return read;
  }

  uint8_t* memory = nullptr;
};

TEST_F(Persistent, EachStartIsOneEntryOfItsOwnGroup) {
  peal_request* request = broadcast();
  EXPECT_TRUE(quiet());
  std::vector<uint64_t> cookies;
  for (uint64_t start = 0; start < 3; start++) {
    ASSERT_EQ(peal_start(request), PEAL_OK);
    const peal_submission entry = take();
    EXPECT_TRUE(quiet());
    EXPECT_EQ(entry.operation, PEAL_OPERATION_BROADCAST);
    EXPECT_EQ(entry.algorithm, PEAL_ALGORITHM_BINOMIAL);
    EXPECT_NE(entry.member, group->member);
    EXPECT_EQ(card.connected_members.count(entry.member), 1u);
    EXPECT_EQ(entry.sequence, start);
    EXPECT_EQ(entry.block_bytes, kBufferBytes);
    EXPECT_EQ(entry.send_offset, 64u);
    cookies.push_back(entry.cookie);
    card.complete(entry);
    EXPECT_EQ(peal_wait(request), PEAL_OK);
  }
  EXPECT_NE(cookies[0], cookies[1]);
  EXPECT_NE(cookies[1], cookies[2]);
}

TEST_F(Persistent, RequestsHaveSequencesOfTheirOwn) {
  peal_request* first = barrier();
  peal_request* second = barrier();
  ASSERT_EQ(run(second), PEAL_OK);
  ASSERT_EQ(peal_start(second), PEAL_OK);
  ASSERT_EQ(peal_start(first), PEAL_OK);
  peal_request* plain = post();
  const peal_submission of_second = take();
  const peal_submission of_first = take();
  const peal_submission of_group = take();
  EXPECT_EQ(of_second.sequence, 1u);
  EXPECT_EQ(of_first.sequence, 0u);
  EXPECT_EQ(of_group.sequence, 0u);
  EXPECT_NE(of_second.member, of_first.member);
  card.complete(of_group);
  card.complete(of_first);
  EXPECT_EQ(peal_wait(plain), PEAL_OK);
  EXPECT_EQ(peal_wait(first), PEAL_OK);
  int done = 1;
  EXPECT_EQ(peal_test(second, &done), PEAL_OK);
  EXPECT_EQ(done, 0);
}

TEST_F(Persistent, OneThatIsInactiveIsComplete) {
  peal_request* request = barrier();
  int done = 0;
  size_t index = 0;
  EXPECT_EQ(peal_test(request, &done), PEAL_OK);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  EXPECT_EQ(peal_wait_for(request, 0), PEAL_OK);
  EXPECT_EQ(peal_wait_any(&request, 1, UINT64_MAX, &index), PEAL_OK);
  EXPECT_EQ(index, PEAL_NO_INDEX);
  EXPECT_EQ(peal_wait_all(&request, 1), PEAL_OK);
}

TEST_F(Persistent, AnyNamesAnEndOnce) {
  peal_request* requests[] = {barrier(), barrier()};
  ASSERT_EQ(peal_startall(requests, 2), PEAL_OK);
  const peal_submission first = take();
  card.complete(take());
  size_t index = 0;
  EXPECT_EQ(peal_wait_any(requests, 2, UINT64_MAX, &index), PEAL_OK);
  EXPECT_EQ(index, 1u);
  EXPECT_EQ(peal_test_any(requests, 2, &index), PEAL_OK);
  EXPECT_EQ(index, PEAL_NO_INDEX);
  card.complete(first);
  EXPECT_EQ(peal_wait_any(requests, 2, UINT64_MAX, &index), PEAL_OK);
  EXPECT_EQ(index, 0u);
}

TEST_F(Persistent, IsBusyUntilSomebodyHasSeenItsEnd) {
  peal_request* request = barrier();
  ASSERT_EQ(peal_start(request), PEAL_OK);
  EXPECT_EQ(peal_start(request), PEAL_ERR_BUSY);
  card.complete(take());
  size_t none = 0;
  peal_request* other = post();
  EXPECT_EQ(peal_test_any(&other, 1, &none), PEAL_OK);  // takes the completion
  EXPECT_EQ(peal_start(request), PEAL_ERR_BUSY);
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  EXPECT_EQ(peal_start(request), PEAL_OK);
}

TEST_F(Persistent, MayBeStartedAgainAfterAnError) {
  peal_request* request = broadcast();
  EXPECT_EQ(run(request, PEAL_STATUS_BAD_KEY), PEAL_ERR_BAD_KEY);
  EXPECT_EQ(peal_wait(request), PEAL_OK);  // said once
  ASSERT_EQ(peal_start(request), PEAL_OK);
  const peal_submission again = take();
  EXPECT_EQ(again.sequence, 0u);  // what was refused does not count
  card.complete(again, PEAL_STATUS_MISMATCH, 0);
  EXPECT_EQ(peal_wait(request), PEAL_ERR_MISMATCH);
  EXPECT_EQ(peal_request_failed_rank(request), 0);
  ASSERT_EQ(peal_start(request), PEAL_OK);
  EXPECT_EQ(take().sequence, 1u);
}

TEST_F(Persistent, WaitAllSaysHowTheFirstFailed) {
  peal_request* requests[] = {barrier(), barrier(), barrier()};
  ASSERT_EQ(peal_startall(requests, 3), PEAL_OK);
  card.complete(take());
  card.complete(take(), PEAL_STATUS_MISMATCH, 5);
  card.complete(take(), PEAL_STATUS_DMA_FAULT);
  EXPECT_EQ(peal_wait_all(requests, 3), PEAL_ERR_MISMATCH);
  EXPECT_EQ(peal_last_error_text(), std::string("barrier 0: ranks disagree: rank 5"));
  EXPECT_EQ(peal_startall(requests, 3), PEAL_OK);
}

TEST_F(Persistent, AllAreStartedOrNone) {
  peal_request* plain = post();
  take();
  peal_request* request = barrier();
  peal_request* busy = barrier();
  ASSERT_EQ(peal_start(busy), PEAL_OK);
  take();
  peal_request* with_plain[] = {request, plain};
  EXPECT_EQ(peal_startall(with_plain, 2), PEAL_ERR_INVALID_ARGUMENT);
  peal_request* with_null[] = {request, nullptr};
  EXPECT_EQ(peal_startall(with_null, 2), PEAL_ERR_INVALID_ARGUMENT);
  peal_request* with_busy[] = {request, busy};
  EXPECT_EQ(peal_startall(with_busy, 2), PEAL_ERR_BUSY);
  EXPECT_TRUE(quiet());
  peal_request* twice[] = {request, request};
  EXPECT_EQ(peal_startall(twice, 2), PEAL_ERR_BUSY);
  EXPECT_STREQ(peal_last_error_text(), "peal_startall: it stands twice in the list");
  EXPECT_TRUE(quiet());
  EXPECT_EQ(peal_startall(&request, 1), PEAL_OK);  // it is none of that list any more
  take();
  EXPECT_EQ(peal_start(plain), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_start(nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_startall(nullptr, 1), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_startall(nullptr, 0), PEAL_OK);
}

TEST_F(Persistent, FreeingEndsItsGroupWithoutWaiting) {
  const uint32_t before = statistics().requests;
  peal_request* request = barrier();
  ASSERT_EQ(run(request), PEAL_OK);
  EXPECT_EQ(statistics().groups, 2u);
  ASSERT_EQ(peal_request_free(request), PEAL_OK);
  EXPECT_EQ(peal_request_free(request), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_start(request), PEAL_ERR_INVALID_ARGUMENT);
  const peal_submission destroy = take();
  EXPECT_EQ(destroy.operation, PEAL_OPERATION_DESTROY);
  EXPECT_NE(destroy.member, group->member);
  EXPECT_EQ(destroy.sequence, 1u);
  EXPECT_EQ(statistics().groups, 2u);
  card.complete(destroy);
  peal_request* next = barrier();
  EXPECT_EQ(statistics().groups, 2u);
  EXPECT_EQ(statistics().requests, before + 1);
  EXPECT_EQ(context->groups.size(), 2u);
  EXPECT_EQ(run(next), PEAL_OK);
}

// A request that was a group's end is another's now, and need never have been started.
TEST_F(Persistent, FreeingEndsItsGroupWhateverTheRequestWasBefore) {
  ASSERT_EQ(peal_request_free(barrier()), PEAL_OK);
  card.complete(take());
  peal_request* next = barrier();
  ASSERT_EQ(peal_request_free(next), PEAL_OK);
  const peal_submission destroy = take();
  EXPECT_EQ(destroy.operation, PEAL_OPERATION_DESTROY);
  EXPECT_NE(destroy.member, group->member);
  card.complete(destroy);
  EXPECT_EQ(run(barrier()), PEAL_OK);
  EXPECT_EQ(context->groups.size(), 2u);
}

// What the group has registered by itself each start names again, whatever else is registered.
TEST_F(Persistent, RegistrationsOfItsBuffersStay) {
  group->flags |= PEAL_GROUP_REGISTER;
  uint8_t mine[64] = {};
  peal_request* request = nullptr;
  ASSERT_EQ(peal_bcast_init(group, mine, 16, 0, &request), PEAL_OK);
  peal_request* wide = nullptr;
  ASSERT_EQ(peal_ibcast(group, mine, sizeof(mine), 0, &wide), PEAL_OK);
  card.complete(take());
  ASSERT_EQ(peal_wait(wide), PEAL_OK);
  ASSERT_EQ(peal_start(request), PEAL_OK);
  const peal_submission start = take();
  EXPECT_TRUE(card.keys.contains(start.send_key));
  card.complete(start);
  ASSERT_EQ(peal_wait(request), PEAL_OK);
  ASSERT_EQ(peal_request_free(request), PEAL_OK);
  card.complete(take());
  EXPECT_EQ(statistics().requests, 1u);
  // Nobody holds it any more.
  ASSERT_EQ(peal_ibcast(group, mine + 16, sizeof(mine) - 16, 0, nullptr), PEAL_OK);
  ASSERT_EQ(peal_ibcast(group, mine, sizeof(mine), 0, nullptr), PEAL_OK);
  uint8_t more[128];
  context->cache.set_limit(2);
  ASSERT_EQ(peal_ibcast(group, more, sizeof(more), 0, nullptr), PEAL_OK);
  EXPECT_FALSE(card.keys.contains(start.send_key));
}

// What was thrown away or mapped anew between two starts is other memory, though at the same place.
TEST_F(Persistent, ABufferThatDepartedIsNamedAnew) {
  group->flags |= PEAL_GROUP_REGISTER;
  uint8_t mine[64] = {};
  ASSERT_EQ(peal_ibcast(group, mine, sizeof(mine), 0, nullptr), PEAL_OK);  // one that covers them
  card.complete(take());
  peal_request* request = nullptr;
  ASSERT_EQ(peal_allgather_init(group, mine + 8, mine + 32, 16, &request), PEAL_OK);
  ASSERT_EQ(peal_start(request), PEAL_OK);
  const peal_submission before = take();
  card.complete(before);
  ASSERT_EQ(peal_wait(request), PEAL_OK);
  card.depart(4711);  // somebody else's
  ASSERT_EQ(peal_start(request), PEAL_OK);
  const peal_submission same = take();
  card.complete(same);
  ASSERT_EQ(peal_wait(request), PEAL_OK);
  EXPECT_EQ(same.send_key, before.send_key);
  EXPECT_EQ(same.receive_key, before.receive_key);

  card.depart(before.receive_key);
  const int registrations = card.registrations;
  for (int start = 0; start < 2; start++) {
    ASSERT_EQ(peal_start(request), PEAL_OK);
    const peal_submission anew = take();
    EXPECT_EQ(anew.send_key, before.send_key);
    EXPECT_NE(anew.receive_key, before.receive_key);
    EXPECT_TRUE(card.keys.contains(anew.receive_key));
    EXPECT_EQ(card.registered.address + anew.receive_offset,
              reinterpret_cast<uintptr_t>(mine + 32));
    EXPECT_EQ(card.registered.bytes, 16u) << "what lies beside it may be gone";
    card.complete(anew);
    ASSERT_EQ(peal_wait(request), PEAL_OK);
  }
  EXPECT_EQ(card.registrations, registrations + 1);
  // What it named before is given back.
  card.depart(4711);
  ASSERT_EQ(run(request), PEAL_OK);
  EXPECT_FALSE(card.keys.contains(before.receive_key));
}

// It is held as what departed was; and nothing beside it is registered, though that would do.
TEST_F(Persistent, WhatIsNamedAnewStaysUntilTheRequestIsGone) {
  group->flags |= PEAL_GROUP_REGISTER;
  uint8_t mine[64] = {};
  ASSERT_EQ(peal_ibcast(group, mine, sizeof(mine), 0, nullptr), PEAL_OK);
  card.complete(take());
  peal_request* request = nullptr;
  ASSERT_EQ(peal_bcast_init(group, mine, 16, 0, &request), PEAL_OK);
  EXPECT_EQ(card.registered.bytes, 16u);
  const auto start = [&] {
    EXPECT_EQ(peal_start(request), PEAL_OK);
    const peal_submission entry = take();
    card.complete(entry);
    EXPECT_EQ(peal_wait(request), PEAL_OK);
    return entry.send_key;
  };
  const auto use_others = [&] {
    for (size_t at = 16; at < sizeof(mine); at += 16) {
      ASSERT_EQ(peal_ibcast(group, mine + at, 16, 0, nullptr), PEAL_OK);
      card.complete(take());
    }
  };
  const uint32_t before = start();
  for (const uint32_t key : std::set(card.keys)) card.depart(key);
  const uint32_t anew = start();
  EXPECT_NE(anew, before);
  context->cache.set_limit(2);
  use_others();
  EXPECT_TRUE(card.keys.contains(anew));
  EXPECT_EQ(start(), anew);
  ASSERT_EQ(peal_request_free(request), PEAL_OK);
  card.complete(take());
  EXPECT_EQ(statistics().requests, 0u);
  use_others();
  EXPECT_FALSE(card.keys.contains(anew));
}

TEST_F(Persistent, GroupsForgetWhatGaveWayToWhatIsNamedAnew) {
  group->flags |= PEAL_GROUP_REGISTER;
  uint8_t mine[64] = {};
  peal_request* request = nullptr;
  ASSERT_EQ(peal_bcast_init(group, mine, 16, 0, &request), PEAL_OK);
  card.depart(context->cache.map().regions().front().key);
  context->cache.set_limit(2);
  const auto use_another = [&] {
    EXPECT_EQ(peal_ibcast(group, mine + 32, 16, 0, nullptr), PEAL_OK);
    const peal_submission entry = take();
    card.complete(entry);
    return entry.send_key;
  };
  const uint32_t other = use_another();
  ASSERT_EQ(run(request), PEAL_OK);
  EXPECT_FALSE(card.keys.contains(other));
  EXPECT_TRUE(card.keys.contains(use_another()));
}

TEST_F(Persistent, WhatCannotBeNamedAnewIsNotStarted) {
  group->flags |= PEAL_GROUP_REGISTER;
  uint8_t mine[64] = {};
  peal_request* request = nullptr;
  ASSERT_EQ(peal_bcast_init(group, mine, sizeof(mine), 0, &request), PEAL_OK);
  ASSERT_EQ(peal_start(request), PEAL_OK);
  const peal_submission before = take();
  card.complete(before);
  ASSERT_EQ(peal_wait(request), PEAL_OK);
  card.depart(before.send_key);
  card.keys_max = 0;
  EXPECT_EQ(peal_start(request), PEAL_ERR_NO_RESOURCES);
  peal_request* with_another[] = {barrier(), request};
  EXPECT_EQ(peal_startall(with_another, 2), PEAL_ERR_NO_RESOURCES);
  EXPECT_TRUE(quiet());
  card.keys_max = 1000;
  ASSERT_EQ(peal_start(request), PEAL_OK);
  const peal_submission anew = take();
  EXPECT_NE(anew.send_key, before.send_key);
  EXPECT_EQ(anew.sequence, 1u);
  card.complete(anew);
  EXPECT_EQ(peal_wait(request), PEAL_OK);
}

TEST_F(Persistent, FreedWhileUnderWayItEndsByItself) {
  const uint32_t before = statistics().requests;
  peal_request* request = broadcast();
  ASSERT_EQ(peal_start(request), PEAL_OK);
  ASSERT_EQ(peal_request_free(request), PEAL_OK);
  const peal_submission start = take();
  EXPECT_TRUE(quiet());
  card.complete(start, PEAL_STATUS_MISMATCH, 0);
  EXPECT_EQ(statistics().requests, before + 1);
  peal_request* next = barrier();  // takes the completion
  const peal_submission destroy = take();
  EXPECT_EQ(destroy.operation, PEAL_OPERATION_DESTROY);
  EXPECT_EQ(destroy.member, start.member);
  card.complete(destroy);
  EXPECT_EQ(run(next), PEAL_OK);
  EXPECT_EQ(statistics().requests, before + 1);
}

TEST_F(Persistent, FreedWhileUnderWayItsPlaceComesBack) {
  for (uint32_t i = 0; i < 3 * kFakeEntries; i++) {
    peal_request* request = broadcast();
    ASSERT_NE(request, nullptr);
    ASSERT_EQ(peal_start(request), PEAL_OK);
    ASSERT_EQ(peal_request_free(request), PEAL_OK);
    card.complete(take());
    peal_request* plain = post();  // takes the completion before it posts, where there is no room
    int done = 0;
    ASSERT_EQ(peal_test(plain, &done), PEAL_OK);
    std::vector<peal_submission> entries = {take(), take()};
    for (const peal_submission& entry : entries) card.complete(entry);
    EXPECT_EQ(peal_wait(plain), PEAL_OK);
    EXPECT_EQ(peal_request_free(plain), PEAL_OK);
  }
  EXPECT_LE(context->groups.size(), 2u);
}

TEST_F(Persistent, NeverMoreThanHavePlacesInTheRing) {
  std::vector<peal_request*> requests;
  for (uint32_t i = 0; i + 1 < kFakeEntries; i++) requests.push_back(barrier());
  const size_t members = card.reserved.size();
  peal_request* beyond = nullptr;
  EXPECT_EQ(peal_barrier_init(group, &beyond), PEAL_ERR_TOO_MANY);
  EXPECT_EQ(beyond, nullptr);
  EXPECT_EQ(card.reserved.size(), members);
  ASSERT_EQ(peal_startall(requests.data(), requests.size()), PEAL_OK);
  for (size_t i = 0; i < requests.size(); i++) card.complete(take());
  ASSERT_EQ(peal_wait_all(requests.data(), requests.size()), PEAL_OK);
  // All destroys at once: each has the place of the request that it ends.
  for (peal_request* request : requests) ASSERT_EQ(peal_request_free(request), PEAL_OK);
  for (size_t i = 0; i < requests.size(); i++) {
    const peal_submission entry = take();
    EXPECT_EQ(entry.operation, PEAL_OPERATION_DESTROY);
    card.complete(entry);
  }
  EXPECT_EQ(run(barrier()), PEAL_OK);
  EXPECT_EQ(context->groups.size(), 2u);
}

TEST_F(Persistent, WhatIsRefusedLeavesNothingBehind) {
  const size_t members = card.reserved.size();
  const size_t keys = card.keys.size();
  const uint32_t requests = statistics().requests;
  peal_request* request = nullptr;
  EXPECT_EQ(peal_bcast_init(group, memory, kBufferBytes, 1, &request), PEAL_ERR_BAD_ROOT);
  EXPECT_EQ(peal_bcast_init(group, nullptr, kBufferBytes, 0, &request), PEAL_ERR_INVALID_ARGUMENT);
  uint8_t mine[16] = {};
  EXPECT_EQ(peal_bcast_init(group, mine, sizeof(mine), 0, &request), PEAL_ERR_NOT_REGISTERED);
  card.refuse_connect = PEAL_ERR_NO_RESOURCES;
  const size_t bytes[] = {100};
  EXPECT_EQ(peal_allgatherv_init(group, memory, memory + 100, bytes, nullptr, &request),
            PEAL_ERR_NO_RESOURCES);
  card.refuse_reserve = PEAL_ERR_NO_RESOURCES;
  EXPECT_EQ(peal_allgatherv_init(group, memory, memory + 100, bytes, nullptr, &request),
            PEAL_ERR_NO_RESOURCES);
  EXPECT_EQ(request, nullptr);
  EXPECT_EQ(peal_barrier_init(nullptr, &request), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_barrier_init(group, nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(card.reserved.size(), members);
  EXPECT_EQ(card.keys.size(), keys);
  EXPECT_EQ(statistics().requests, requests);
  EXPECT_EQ(statistics().groups, 1u);
}

TEST_F(Persistent, PartsAreWrittenOnce) {
  size_t bytes[] = {700};
  const size_t offsets[] = {32};
  peal_request* request = nullptr;
  ASSERT_EQ(peal_alltoallv_init(group, memory, bytes, nullptr, memory + kBufferBytes, bytes,
                                offsets, &request),
            PEAL_OK);
  bytes[0] = 1;  // read before the call returned
  const size_t keys = card.keys.size();
  for (int start = 0; start < 2; start++) {
    ASSERT_EQ(peal_start(request), PEAL_OK);
    const peal_submission entry = take();
    EXPECT_EQ(entry.operation, PEAL_OPERATION_ALLTOALLV);
    const PartTables& tables = context->groups.back()->part_tables;
    EXPECT_EQ(entry.parts_key, tables.key());
    EXPECT_EQ(entry.parts_offset, 0u);
    EXPECT_EQ(tables.at(0)[0].bytes, 700u);
    EXPECT_EQ(tables.at(0)[1].bytes, 700u);
    EXPECT_EQ(tables.at(0)[1].offset, kBufferBytes + 32);
    card.complete(entry);
    ASSERT_EQ(peal_wait(request), PEAL_OK);
  }
  EXPECT_EQ(card.keys.size(), keys);
}

TEST_F(Persistent, TheProgramOfARequestThatIsGoneIsGivenBack) {
  peal_request* request = barrier();
  auto& persistent = *request->persistent;
  ASSERT_EQ(peal_program_create(0, 1, nullptr, &persistent.programs[0]), PEAL_OK);
  persistent.group->users = 2;  // as in a company
  ASSERT_EQ(peal_request_free(request), PEAL_OK);
  EXPECT_TRUE(context->ended_programs.empty());
  EXPECT_FALSE(context->programs_ended);
}

TEST_F(Persistent, OfACardThatIsGoneNothingIsStarted) {
  peal_request* request = barrier();
  ASSERT_EQ(peal_start(request), PEAL_OK);
  {
    const std::lock_guard<std::mutex> guard(card.mutex);
    card.connected = false;
  }
  EXPECT_EQ(peal_wait(request), PEAL_ERR_CARD_GONE);
  EXPECT_EQ(peal_start(request), PEAL_ERR_CARD_GONE);
  EXPECT_EQ(peal_request_free(request), PEAL_OK);
  EXPECT_EQ(peal_barrier_init(group, &request), PEAL_ERR_CARD_GONE);
  EXPECT_EQ(statistics().requests, 0u);
}

// A group whose persistent requests were programs, all of them gone, while others' requests are as
// many as there may be.
class PersistentCompany : public Persistent {
 protected:
  void SetUp() override {
    Persistent::SetUp();
    company = make_fake_group(context);
    ASSERT_NE(company, nullptr);
    company->users = 1;
    group->company = company;
    while (context->free_requests != nullptr) requests.push_back(barrier());
  }

  // Ends it as its card.
  void end(const peal_submission& entry) {
    EXPECT_EQ(entry.operation, PEAL_OPERATION_DESTROY);
    EXPECT_EQ(entry.member, company->member);
    card.complete(entry);
  }

  peal_group* company = nullptr;
  std::vector<peal_request*> requests;
};

TEST_F(PersistentCompany, EndsWithItsGroup) {
  ASSERT_EQ(peal_group_abort(group), PEAL_OK);
  const uint32_t groups = statistics().groups;
  end(take());
  EXPECT_TRUE(quiet());
  EXPECT_EQ(statistics().groups, groups - 1);
  EXPECT_EQ(statistics().requests, requests.size());
  // Whoever makes a request forgets it.
  group = make_fake_group(context);
  const size_t kept = context->groups.size();
  peal_request* beyond = nullptr;
  EXPECT_EQ(peal_barrier_init(group, &beyond), PEAL_ERR_TOO_MANY);
  EXPECT_EQ(context->groups.size(), kept - 1);
}

TEST_F(PersistentCompany, WaitsForAPlaceInTheRing) {
  ASSERT_EQ(peal_startall(requests.data(), requests.size()), PEAL_OK);
  ASSERT_EQ(submit_destroy(*make_fake_group(context)), PEAL_OK);
  ASSERT_FALSE(ring_has_place(*context));
  std::thread aborts([&] { EXPECT_EQ(peal_group_abort(group), PEAL_OK); });
  card.await_sleeper();
  for (size_t i = 0; i <= requests.size(); i++) card.complete(card.await_entry());
  end(card.await_entry());
  aborts.join();
}

TEST_F(PersistentCompany, EndsWithTheCard) {
  break_context(*context, PEAL_ERR_CARD_GONE);
  EXPECT_EQ(peal_group_destroy(group), PEAL_ERR_CARD_GONE);
  EXPECT_TRUE(has_ended(*company));
}

TEST_F(Persistent, OutlivesTheGroupItWasMadeOf) {
  peal_request* request = broadcast();
  card.refuse_abandon = PEAL_OK;
  ASSERT_EQ(peal_group_abort(group), PEAL_OK);
  EXPECT_EQ(run(request), PEAL_OK);
}

}  // namespace
}  // namespace peal::host
