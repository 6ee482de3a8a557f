// SPDX-License-Identifier: BSD-2-Clause
// The cache over a transport that only gives out keys.
#include "hostlib/registration_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

#include "hostlib/administration.h"
#include "peal/peal.h"

namespace peal::host {
namespace {

// A card with so many keys; pages leave it when the test says so.
class Keys final : public Transport {
 public:
  [[nodiscard]] const Window& window() const override { return window_; }
  peal_error allocate(size_t, Allocation*) override { return PEAL_ERR_SYSTEM; }
  peal_error release(const Allocation&) override { return PEAL_ERR_SYSTEM; }
  peal_error ask(const peal_admin_command& command, peal_admin_reply* reply) override {
    *reply = {};
    uint32_t status = PEAL_STATUS_OK;
    if (command.opcode == PEAL_ADMIN_REGISTER_MEMORY) {
      registered++;
      if (live.size() >= room) {
        status = PEAL_STATUS_NO_RESOURCES;
      } else {
        reply->u.register_memory.key = ++last;
        live.insert(last);
      }
    } else if (command.opcode == PEAL_ADMIN_UNREGISTER_MEMORY) {
      const uint32_t key = command.u.unregister_memory.key;
      status = busy.contains(key) ? PEAL_STATUS_BUSY : PEAL_STATUS_OK;
      if (status == PEAL_STATUS_OK) {
        EXPECT_EQ(live.erase(key), 1u) << key;
      }
    }
    reply->status = status;
    return verdict(command, *reply);
  }
  void ring_doorbell() override {}
  uint32_t sleep_token() override { return 0; }
  void sleep(uint32_t, int) override {}
  void wake() override {}
  bool connected() override { return true; }
  void leave_to_parent() noexcept override {}
  bool next_departed(uint32_t* key) override {
    if (gone.empty()) return false;
    *key = gone.front();
    gone.pop_front();
    return true;
  }

  void depart(uint32_t key) {
    gone.push_back(key);
    left++;
  }

  size_t room = 1000;
  uint32_t last = 0;
  int registered = 0;
  std::set<uint32_t> live;
  std::set<uint32_t> busy;
  std::deque<uint32_t> gone;
  std::atomic<uint64_t> left = 0;

 private:
  Window window_;
};

class Registrations : public ::testing::Test {
 protected:
  // The key, or 0 and the error.
  uint32_t take(uintptr_t address, size_t bytes, uint32_t access = PEAL_READ, uint32_t keep = 0) {
    Region region;
    error =
        cache.take(keys, {reinterpret_cast<const void*>(address), bytes, access, keep}, &region);
    if (error != PEAL_OK) return 0;
    EXPECT_TRUE(region.covers(address, bytes));
    EXPECT_EQ(region.access & access, access);
    return region.key;
  }

  Keys keys;
  RegistrationCache cache;
  peal_error error = PEAL_OK;
};

TEST_F(Registrations, TheSameBufferIsRegisteredOnce) {
  const uint32_t key = take(0x1000, 100);
  EXPECT_EQ(take(0x1000, 100), key);
  EXPECT_EQ(take(0x1010, 20), key);
  EXPECT_EQ(keys.registered, 1);
  EXPECT_NE(take(0x1000, 101), key);
  EXPECT_NE(take(0x1000, 100, PEAL_WRITE), key);
}

TEST_F(Registrations, ABufferThatGrowsLeavesOne) {
  for (size_t bytes = 1; bytes <= 64; bytes++) ASSERT_NE(take(0x1000, bytes), 0u);
  EXPECT_EQ(keys.live.size(), 1u);
  // For writing it is another one, which does for reading too where it says so.
  const uint32_t both = take(0x1000, 64, PEAL_READ | PEAL_WRITE);
  EXPECT_EQ(keys.live, std::set<uint32_t>({both}));
}

TEST_F(Registrations, WhatWasUsedLongestAgoGoes) {
  cache.set_limit(3);
  const uint32_t first = take(0x1000, 1);
  const uint32_t second = take(0x2000, 1);
  const uint32_t third = take(0x3000, 1);
  EXPECT_EQ(take(0x1000, 1), first);
  const uint64_t before = cache.version();
  const uint32_t fourth = take(0x4000, 1);
  EXPECT_NE(cache.version(), before) << "who remembers the second must look again";
  EXPECT_EQ(keys.live, std::set<uint32_t>({first, third, fourth}));
  EXPECT_NE(take(0x2000, 1), second);
  EXPECT_FALSE(keys.live.contains(third));
}

TEST_F(Registrations, WhatIsInUseOrNeededByTheSameCallStays) {
  cache.set_limit(2);
  const uint32_t first = take(0x1000, 1);
  const uint32_t second = take(0x2000, 1);
  const uint32_t third = take(0x3000, 1, PEAL_READ, first);
  EXPECT_EQ(keys.live, std::set<uint32_t>({first, third}));
  EXPECT_NE(second, third);
  keys.busy = {first, third};
  const uint32_t fourth = take(0x4000, 1);  // more than the limit, for as long as all are busy
  EXPECT_EQ(keys.live, std::set<uint32_t>({first, third, fourth}));
  keys.busy.clear();
  const uint32_t fifth = take(0x5000, 1);
  EXPECT_EQ(keys.live, std::set<uint32_t>({fourth, fifth}));
}

TEST_F(Registrations, ACardWithoutRoomGetsSome) {
  keys.room = 2;
  (void)take(0x1000, 1);
  (void)take(0x2000, 1);
  EXPECT_NE(take(0x3000, 1), 0u);
  EXPECT_EQ(keys.live.size(), 2u);
  keys.busy = keys.live;
  EXPECT_EQ(take(0x4000, 1), 0u);
  EXPECT_EQ(error, PEAL_ERR_NO_RESOURCES);
  EXPECT_EQ(keys.live.size(), 2u);
}

// Pages that the process has unmapped are another buffer's when something is mapped there again.
TEST_F(Registrations, WhatWasUnmappedIsRegisteredAnew) {
  cache.watch(keys.left);
  const uint32_t old = take(0x1000, 4096);
  const uint32_t other = take(0x9000, 4096);
  const uint64_t before = cache.departures();
  keys.depart(old);
  keys.depart(4711);  // a registration of the user's own
  EXPECT_NE(cache.departures(), before);
  const uint32_t anew = take(0x1000, 4096);
  EXPECT_NE(anew, old);
  EXPECT_FALSE(keys.live.contains(old));
  EXPECT_EQ(take(0x9000, 4096), other);
  EXPECT_EQ(take(0x1000, 4096), anew);
  // One that an operation still uses is not looked up any more, whatever becomes of it.
  keys.busy = {anew};
  keys.depart(anew);
  EXPECT_NE(take(0x1000, 4096), anew);
}

}  // namespace
}  // namespace peal::host
