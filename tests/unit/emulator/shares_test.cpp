// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/shares.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <random>

namespace peal::nic {
namespace {

uint64_t take_all(SharedPool& pool, UserIndex user) {
  uint64_t taken = 0;
  while (pool.take(user, 1)) taken++;
  return taken;
}

TEST(SharedPool, AUserAloneMayHaveAll) {
  SharedPool pool(Share::of(32, 0, 1), 2);
  EXPECT_EQ(take_all(pool, 0), 32u);
  EXPECT_EQ(pool.refused(), 1u);
  EXPECT_FALSE(pool.take(1, 1));
  pool.give(0, 3);
  EXPECT_EQ(take_all(pool, 1), 3u);
  EXPECT_EQ(pool.used(), 32u);
}

TEST(SharedPool, EachIsSureOfItsPartWhoeverComesFirst) {
  SharedPool pool(Share::of(32, 0, 4), 4);
  EXPECT_EQ(take_all(pool, 2), 32u - 3 * 4);
  for (const UserIndex user : {0u, 1u, 3u}) EXPECT_EQ(take_all(pool, user), 4u);
  EXPECT_EQ(pool.used(), 32u);
}

TEST(SharedPool, AUsersMost) {
  SharedPool pool(Share::of(32, 5, 2), 2);
  EXPECT_EQ(take_all(pool, 0), 5u);
  EXPECT_FALSE(pool.take(0, ~uint64_t{0}));
  pool.give(0, 2);
  EXPECT_FALSE(pool.take(0, 3));
  EXPECT_TRUE(pool.take(0, 2));
  EXPECT_EQ(take_all(pool, 1), 5u);
}

// Whatever was taken and given before, a user gets what it is sure of.
TEST(SharedPool, SureAfterAnyHistory) {
  constexpr uint64_t kSize = 1000;
  constexpr uint32_t kUsers = 3;
  const Share share = Share::of(kSize, 0, kUsers);
  std::mt19937 random(5);
  SharedPool pool(share, kUsers);
  uint64_t used[kUsers] = {};
  int refused_in_part = 0;
  for (int step = 0; step < 100'000; step++) {
    const UserIndex user = random() % kUsers;
    const uint64_t amount = random() % 80;
    if (random() % 5 < 2) {
      const uint64_t given = std::min<uint64_t>(amount, used[user]);
      pool.give(user, given);
      used[user] -= given;
    } else if (pool.take(user, amount)) {
      used[user] += amount;
    } else {
      refused_in_part++;
      ASSERT_GT(used[user] + amount, share.sure);
    }
    ASSERT_LE(used[0] + used[1] + used[2], kSize);
  }
  EXPECT_GT(refused_in_part, 100);
}

TEST(Shares, WhoIsServed) {
  Shares alone({}, 1, 100, 1 << 20);
  EXPECT_TRUE(alone.user(geteuid()));
  EXPECT_TRUE(alone.user(0));
  EXPECT_FALSE(alone.user(54321));
  EXPECT_FALSE(alone.serves_others());
  ShareOptions options;
  options.admitted = {54321, 54321};
  Shares others(options, 1, 100, 1 << 20);
  ASSERT_TRUE(others.user(54321));
  EXPECT_NE(others.user(54321), others.user(geteuid()));
  EXPECT_TRUE(others.serves_others());
}

class AccountTest : public ::testing::Test {
 protected:
  static std::shared_ptr<Shares> make(ShareOptions options = {}) {
    return std::make_shared<Shares>(options, 2, 100, uint64_t{64} << 20);
  }
};

TEST_F(AccountTest, OneConnectionHasNotAll) {
  const auto shares = make();
  Account account(shares, 0);
  Account other(shares, 0);
  uint64_t keys = 0;
  while (account.take_key(0)) keys++;
  EXPECT_EQ(keys, unsigned{CONFIG_MEMORY_KEYS} * 3 / 4);
  EXPECT_TRUE(other.take_key(0));
  uint64_t groups = 0;
  while (account.take_group(0)) groups++;
  EXPECT_EQ(groups, unsigned{CONFIG_CARD_MEMBERS} * 3 / 4);
  EXPECT_TRUE(other.take_group(0));
  EXPECT_TRUE(account.take_memory(uint64_t{48} << 20));
  EXPECT_FALSE(account.take_memory(1));
  EXPECT_TRUE(other.take_memory(uint64_t{16} << 20));
  account.give_memory(1);
  EXPECT_TRUE(account.take_memory(1));
  EXPECT_EQ(
      shares->counters_json().dump(),
      "{\"refused_user_connections\":0,\"refused_user_contexts\":0,\"refused_user_groups\":0,"
      "\"refused_user_keys\":0,\"refused_user_memory\":0,\"refused_user_files\":0,\"refused_"
      "connection_groups\":1,"
      "\"refused_connection_keys\":1,\"refused_connection_memory\":1,\"memory_bytes\":67108864}");
}

// They are as many as all cards have keys and windows.
TEST_F(AccountTest, FilesRunOutBeforeMemoryDoes) {
  const auto shares = make();
  Account account(shares, 0);
  uint64_t files = 0;
  while (account.take_shared_memory(1)) files++;
  EXPECT_EQ(files, 2u * (CONFIG_MEMORY_KEYS + CONFIG_CONTEXTS));
  EXPECT_EQ(shares->memory().used(), files);
  EXPECT_EQ(shares->counters_json()["refused_user_files"], 1u);
  EXPECT_TRUE(account.take_memory(1));
  account.give_shared_memory(1);
  EXPECT_TRUE(account.take_shared_memory(1));
}

TEST_F(AccountTest, UsersLimitsAreOfAllItsConnections) {
  ShareOptions options;
  options.user_contexts = 2;
  options.user_groups = 2;
  options.user_keys = 2;
  options.user_memory_bytes = 8192;
  const auto shares = make(options);
  Account first(shares, 0);
  Account second(shares, 0);
  for (Account* const account : {&first, &second}) {
    EXPECT_TRUE(account->take_context(0));
    EXPECT_TRUE(account->take_group(0));
    EXPECT_TRUE(account->take_key(0));
    EXPECT_TRUE(account->take_memory(4096));
  }
  EXPECT_FALSE(first.take_context(0));
  EXPECT_FALSE(first.take_group(0));
  EXPECT_FALSE(first.take_key(0));
  EXPECT_FALSE(first.take_memory(1));
  EXPECT_TRUE(first.take_context(1));  // of another card
  second.give_context(0);
  second.give_group(0);
  second.give_key(0);
  second.give_memory(4096);
  EXPECT_TRUE(first.take_context(0));
  EXPECT_TRUE(first.take_group(0));
  EXPECT_TRUE(first.take_key(0));
  EXPECT_TRUE(first.take_memory(4096));
}

}  // namespace
}  // namespace peal::nic
