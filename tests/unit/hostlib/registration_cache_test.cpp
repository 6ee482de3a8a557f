// SPDX-License-Identifier: BSD-2-Clause
// The cache over a card that gives out keys.
#include "hostlib/registration_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "tests/unit/hostlib/fake_card.h"

namespace peal::host {
namespace {

class Registrations : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(card.unknown_keys, 0); }
  // The key, or 0 and the error.
  uint32_t take(uintptr_t address, size_t bytes, uint32_t access = PEAL_READ, uint32_t keep = 0) {
    Region region;
    error = cache.take(*transport, {reinterpret_cast<const void*>(address), bytes, access, keep},
                       &region);
    if (error != PEAL_OK) return 0;
    EXPECT_TRUE(region.covers(address, bytes));
    EXPECT_EQ(region.access & access, access);
    return region.key;
  }

  FakeCard card;
  std::unique_ptr<Transport> transport = make_fake_transport(&card);
  RegistrationCache cache;
  peal_error error = PEAL_OK;
};

TEST_F(Registrations, TheSameBufferIsRegisteredOnce) {
  const uint32_t key = take(0x1000, 100);
  EXPECT_EQ(take(0x1000, 100), key);
  EXPECT_EQ(take(0x1010, 20), key);
  EXPECT_EQ(card.registrations, 1);
  EXPECT_NE(take(0x1000, 101), key);
  EXPECT_NE(take(0x1000, 100, PEAL_WRITE), key);
}

TEST_F(Registrations, ABufferThatGrowsLeavesOne) {
  for (size_t bytes = 1; bytes <= 64; bytes++) ASSERT_NE(take(0x1000, bytes), 0u);
  EXPECT_EQ(card.keys.size(), 1u);
  // For writing it is another one, which does for reading too where it says so.
  const uint32_t both = take(0x1000, 64, PEAL_READ | PEAL_WRITE);
  EXPECT_EQ(card.keys, std::set<uint32_t>({both}));
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
  EXPECT_EQ(card.keys, std::set<uint32_t>({first, third, fourth}));
  EXPECT_NE(take(0x2000, 1), second);
  EXPECT_FALSE(card.keys.contains(third));
}

TEST_F(Registrations, WhatIsInUseOrNeededByTheSameCallStays) {
  cache.set_limit(2);
  const uint32_t first = take(0x1000, 1);
  const uint32_t second = take(0x2000, 1);
  const uint32_t third = take(0x3000, 1, PEAL_READ, first);
  EXPECT_EQ(card.keys, std::set<uint32_t>({first, third}));
  EXPECT_NE(second, third);
  card.busy_keys = {first, third};
  const uint32_t fourth = take(0x4000, 1);  // more than the limit, for as long as all are busy
  EXPECT_EQ(card.keys, std::set<uint32_t>({first, third, fourth}));
  card.busy_keys.clear();
  const uint32_t fifth = take(0x5000, 1);
  EXPECT_EQ(card.keys, std::set<uint32_t>({fourth, fifth}));
}

TEST_F(Registrations, WhatIsHeldStaysUntilAllHaveLetGoOfIt) {
  cache.set_limit(2);
  const uint32_t first = take(0x1000, 1);
  const uint32_t second = take(0x2000, 1);
  HeldKeys keys;
  {
    HeldKeys others;
    for (const uint32_t key : {first, second, 0u, 99u}) others.hold(cache, key);
    keys.hold(cache, first);
    keys.hold(cache, first);
    const uint32_t third = take(0x3000, 1);  // more than the limit, for as long as all are held
    EXPECT_EQ(card.keys, std::set<uint32_t>({first, second, third}));
  }
  const uint32_t covering = take(0x1000, 64);
  EXPECT_TRUE(card.keys.contains(first)) << "a start names it";
  EXPECT_FALSE(card.keys.contains(second));
  EXPECT_EQ(take(0x1000, 1, PEAL_READ), covering) << "the last that covers it serves";
}

// Memory that left is not looked up any more, whoever holds what it was; and goes when nobody does.
TEST_F(Registrations, WhatIsHeldMayDepart) {
  cache.watch(card.departures);
  cache.set_limit(2);
  uint32_t first = 0;
  {
    HeldKeys keys;
    first = take(0x1000, 1);
    keys.hold(cache, first);
    card.depart(first);
    EXPECT_NE(take(0x1000, 1), first);
    EXPECT_TRUE(card.keys.contains(first));
    (void)take(0x2000, 1);
    EXPECT_TRUE(card.keys.contains(first)) << "where one has to go, it is another";
  }
  const uint32_t last = take(0x3000, 1);
  EXPECT_FALSE(card.keys.contains(first));
  EXPECT_TRUE(card.keys.contains(last));
}

TEST_F(Registrations, ACardWithoutRoomGetsSome) {
  card.keys_max = 2;
  (void)take(0x1000, 1);
  (void)take(0x2000, 1);
  EXPECT_NE(take(0x3000, 1), 0u);
  EXPECT_EQ(card.keys.size(), 2u);
  card.busy_keys = card.keys;
  EXPECT_EQ(take(0x4000, 1), 0u);
  EXPECT_EQ(error, PEAL_ERR_NO_RESOURCES);
  EXPECT_STREQ(peal_last_error_text(), "no key left");
  EXPECT_EQ(card.keys.size(), 2u);
}

// Pages that the process has unmapped are another buffer's when something is mapped there again.
TEST_F(Registrations, WhatWasUnmappedIsRegisteredAnew) {
  cache.watch(*transport->departures());
  const uint32_t old = take(0x1000, 4096);
  const uint32_t other = take(0x9000, 4096);
  const uint64_t before = cache.departures();
  card.depart(old);
  card.depart(4711);  // a registration of the user's own
  EXPECT_NE(cache.departures(), before);
  const uint32_t anew = take(0x1000, 4096);
  EXPECT_NE(anew, old);
  EXPECT_FALSE(card.keys.contains(old));
  EXPECT_EQ(take(0x9000, 4096), other);
  EXPECT_EQ(take(0x1000, 4096), anew);
  // One that an operation still uses is not looked up any more, and goes when that is over.
  card.busy_keys = {anew};
  card.depart(anew);
  const uint32_t last = take(0x1000, 4096);
  EXPECT_NE(last, anew);
  EXPECT_TRUE(card.keys.contains(anew));
  card.busy_keys.clear();
  EXPECT_EQ(take(0x1000, 4096), last);
  EXPECT_EQ(card.keys, std::set<uint32_t>({other, last}));
}

}  // namespace
}  // namespace peal::host
