// SPDX-License-Identifier: BSD-2-Clause
// Places for tables: of one operation each, and back when it is over, however it ends.
#include "hostlib/part_tables.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "hostlib/rings.h"
#include "tests/support/asleep.h"
#include "tests/unit/hostlib/one_group.h"

namespace peal::host {
namespace {

TEST(PartTables, EveryTableIsForOneOperation) {
  std::vector<peal_part> memory(3 * 8);
  const peal_request user = {};
  PartTables tables(user);
  EXPECT_FALSE(tables.made());
  EXPECT_EQ(PartTables::bytes_of(3, 8), memory.size() * sizeof(peal_part));
  tables.make({reinterpret_cast<uint8_t*>(memory.data()), PartTables::bytes_of(3, 8), 7}, 3, 8);
  EXPECT_TRUE(tables.made());
  EXPECT_EQ(tables.key(), 7u);
  std::set<uint64_t> pending;
  const auto find = [&]() -> PartTables::Table& {
    return tables.find([&](const peal_request& whose, uint64_t cookie) {
      EXPECT_EQ(&whose, &user);
      return pending.count(cookie) != 0;
    });
  };
  for (uint32_t i = 0; i < 3; i++) {
    EXPECT_EQ(tables.index_of(find()), i);
    EXPECT_EQ(tables.index_of(find()), i) << "looking takes nothing";
    EXPECT_EQ(tables.offset(i), i * 8 * 16);
    EXPECT_EQ(tables.at(i), memory.data() + i * size_t{8});
    find().cookie = 100 + i;
    pending.insert(100 + i);
  }
  pending.erase(101);
  EXPECT_EQ(tables.index_of(find()), 1u);
  find().cookie = 200;
  pending = {100, 101, 200};
  EXPECT_EQ(tables.index_of(find()), 2u) << "its last user is who counts";
}

// A group of one rank; its tables have two parts, one of them for what it sends.
class GroupsTables : public OneGroup {
 protected:
  void SetUp() override {
    OneGroup::SetUp();
    void* allocated = nullptr;
    ASSERT_EQ(peal_alloc(context, 4096, &allocated), PEAL_OK);
    memory = static_cast<uint8_t*>(allocated);
  }

  peal_error post_v(peal_request** request, size_t offset = 0) {
    return peal_iallgatherv(group, PEAL_IN_PLACE, memory, &bytes, &offset, request);
  }
  peal_request* posted_v(size_t offset = 0) {
    peal_request* request = nullptr;
    EXPECT_EQ(post_v(&request, offset), PEAL_OK) << peal_last_error_text();
    return request;
  }
  void end(peal_request* request, uint32_t status = PEAL_STATUS_OK) {
    card.complete(take(), status);
    peal_wait(request);
    EXPECT_EQ(peal_request_free(request), PEAL_OK);
  }

  size_t places_of_as_many_as_there_may_be() {
    std::set<uint64_t> offsets;
    for (uint32_t i = 0; i < kFakeParked; i++) {
      posted_v();
      offsets.insert(take().parts_offset);
    }
    return offsets.size();
  }

  uint8_t* memory = nullptr;
  size_t bytes = 10;
};

TEST_F(GroupsTables, TheFirstCallBringsTheMemoryOfAll) {
  EXPECT_EQ(card.keys, std::set<uint32_t>{1});
  end(post());
  EXPECT_EQ(card.keys.size(), 1u) << "who never calls it has none";
  end(posted_v());
  EXPECT_EQ(card.keys, (std::set<uint32_t>{1, 2}));
  EXPECT_EQ(group->part_tables.memory().mapped_bytes, kFakeParked * 2 * sizeof(peal_part));
  end(posted_v());
  EXPECT_EQ(card.keys.size(), 2u);
}

TEST_F(GroupsTables, WhatIsOutstandingKeepsItsOwn) {
  std::vector<peal_request*> requests;
  std::set<uint64_t> offsets;
  for (size_t i = 0; i < kFakeParked; i++) requests.push_back(posted_v(100 * i));
  peal_request* refused = nullptr;
  EXPECT_EQ(post_v(&refused), PEAL_ERR_TOO_MANY);
  EXPECT_STREQ(peal_last_error_text(),
               "6 operations of this group are outstanding, the card's limit");
  EXPECT_EQ(refused, nullptr);
  std::vector<peal_submission> entries;
  for (size_t i = 0; i < kFakeParked; i++) {
    entries.push_back(take());
    offsets.insert(entries[i].parts_offset);
    EXPECT_EQ(entries[i].parts_key, 2u);
    const auto* parts = reinterpret_cast<const peal_part*>(group->part_tables.memory().address +
                                                           entries[i].parts_offset);
    EXPECT_EQ(parts->offset, 100 * i);
    EXPECT_EQ(parts->bytes, 10u);
  }
  EXPECT_EQ(offsets.size(), size_t{kFakeParked});
  // One that is over is enough, though nobody has looked at it yet; the next takes its place.
  card.complete(entries[3]);
  requests.push_back(posted_v(1000));
  const peal_submission next = take();
  EXPECT_EQ(next.parts_offset, entries[3].parts_offset);
  entries[3] = next;
  for (const peal_submission& entry : entries) card.complete(entry);
  for (peal_request* request : requests) {
    EXPECT_EQ(peal_wait(request), PEAL_OK);
    EXPECT_EQ(peal_request_free(request), PEAL_OK);
  }
}

// As often as would use up all places, if any way of ending kept its own.
TEST_F(GroupsTables, EveryEndGivesItBack) {
  for (uint32_t i = 0; i < 3 * kFakeParked; i++) {
    end(posted_v(), PEAL_STATUS_OK);
    end(posted_v(), PEAL_STATUS_BAD_OPCODE);
    end(posted_v(), PEAL_STATUS_DMA_FAULT);
    end(posted_v(), PEAL_STATUS_PEER_DEAD);
    EXPECT_EQ(post_v(nullptr), PEAL_OK);  // detached from the first
    card.complete(take());
    peal_request* let_go = posted_v();  // and later
    EXPECT_EQ(peal_request_free(let_go), PEAL_OK);
    card.complete(take(), PEAL_STATUS_MISMATCH);
    EXPECT_EQ(peal_group_wait(group), PEAL_ERR_MISMATCH);
  }
  EXPECT_EQ(places_of_as_many_as_there_may_be(), size_t{kFakeParked});
}

TEST_F(GroupsTables, ASleepingCardHearsOfTheSameCallAgain) {
  end(posted_v());
  EXPECT_EQ(card.doorbells, 0);
  card.set_sleeping(true);
  peal_request* request = posted_v();
  EXPECT_EQ(card.doorbells, 1);
  card.set_sleeping(false);
  end(request);
  end(posted_v());
  EXPECT_EQ(card.doorbells, 1);
}

// What is posted again is as new: its place in the group's order, and whom its end is told.
TEST_F(GroupsTables, TheSameCallAgainIsAnotherOperation) {
  std::set<uint64_t> cookies;
  for (uint64_t i = 0; i < 5; i++) {
    peal_request* request = posted_v();
    const peal_submission entry = take();
    EXPECT_EQ(entry.sequence, i);
    EXPECT_EQ(entry.member, group->member);
    EXPECT_TRUE(cookies.insert(entry.cookie).second);
    card.complete(entry);
    EXPECT_EQ(peal_wait(request), PEAL_OK);
    EXPECT_EQ(peal_request_free(request), PEAL_OK);
  }
}

TEST_F(GroupsTables, WhoeverHasTheLockIsAwaited) {
  end(posted_v());
  context->mutex.lock();
  std::atomic<pid_t> caller = 0;
  std::atomic<bool> over = false;
  std::thread posts([&] {
    caller = gettid();
    end(posted_v());
    over = true;
  });
  while (!over && (caller == 0 || !test::is_asleep(caller))) std::this_thread::yield();
  EXPECT_FALSE(over);
  peal_submission none = {};
  EXPECT_FALSE(card.take(&none));
  context->mutex.unlock();
  posts.join();
}

// The ring is full of what the card has not taken: nothing was posted, and no place is lost.
TEST_F(GroupsTables, WhatCouldNotBePostedGivesItBack) {
  end(posted_v());
  std::vector<peal_group*> others;
  for (uint32_t i = 0; i < 5; i++) others.push_back(make_fake_group(context));
  for (uint32_t i = 0; i < kFakeEntries - 2; i++) {
    EXPECT_EQ(peal_ibarrier(others[i % 3], nullptr), PEAL_OK);
  }
  std::thread first([&] { EXPECT_EQ(peal_group_destroy(others[3]), PEAL_OK); });
  std::thread second([&] { EXPECT_EQ(peal_group_destroy(others[4]), PEAL_OK); });
  const auto full = [&] {
    const std::lock_guard guard(context->mutex);
    return !ring_has_place(*context);
  };
  while (!full()) std::this_thread::yield();
  for (uint32_t i = 0; i < 3 * kFakeParked; i++) EXPECT_EQ(post_v(nullptr), PEAL_ERR_TOO_MANY);
  EXPECT_STREQ(peal_last_error_text(), "the submission ring of 16 entries is full");
  peal_request* refused = context->requests;
  EXPECT_EQ(post_v(&refused), PEAL_ERR_TOO_MANY);
  EXPECT_EQ(refused, nullptr);
  for (uint32_t i = 0; i < kFakeEntries; i++) card.complete(take());
  first.join();
  second.join();
  EXPECT_EQ(places_of_as_many_as_there_may_be(), size_t{kFakeParked});
}

TEST_F(GroupsTables, TheMemoryGoesWithTheGroup) {
  end(posted_v());
  std::thread destroys([&] { EXPECT_EQ(peal_group_destroy(group), PEAL_OK); });
  const peal_submission destroy = card.await_entry();
  EXPECT_EQ(card.keys.size(), 2u) << "not before the card has let go of the group";
  card.complete(destroy);
  destroys.join();
  EXPECT_EQ(card.keys, std::set<uint32_t>{1});
}

// The operation is pending, so the card may read the table; then it still does so for a while.
TEST_F(GroupsTables, AnAbortWaitsForWhoeverReadsIt) {
  peal_request* request = posted_v();
  const peal_submission entry = take();
  std::thread aborts([&] { EXPECT_EQ(peal_group_abort(group), PEAL_OK); });
  {
    std::unique_lock<std::mutex> lock(card.mutex);
    card.changed.wait(lock, [&] { return card.reserved.empty(); });
    EXPECT_EQ(card.keys.size(), 2u);
    card.busy_keys = {2};
  }
  card.complete(entry, PEAL_STATUS_PEER_DEAD, 0);
  aborts.join();
  EXPECT_EQ(peal_wait(request), PEAL_ERR_PEER_DEAD);
  EXPECT_EQ(card.keys.size(), 2u);
  card.busy_keys.clear();
  EXPECT_EQ(peal_group_abort(make_fake_group(context)), PEAL_OK);
  EXPECT_EQ(card.keys, std::set<uint32_t>{1});
}

TEST_F(GroupsTables, TheCardGoes) {
  peal_request* request = posted_v();
  {
    const std::lock_guard<std::mutex> guard(card.mutex);
    card.connected = false;
  }
  EXPECT_EQ(peal_wait(request), PEAL_ERR_CARD_GONE);
  EXPECT_EQ(post_v(&request), PEAL_ERR_CARD_GONE);
}

TEST_F(GroupsTables, ClosingUnmapsThem) {
  end(posted_v());
  peal_close(context);
  EXPECT_TRUE(card.mapped.empty());
  context = open_fake(&card);
}

}  // namespace
}  // namespace peal::host
