// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/base/ranks.h"

#include <gtest/gtest.h>

namespace peal::test {
namespace {

TEST(Ranks, LogarithmsOfAllGroupSizes) {
  for (uint32_t n = 1; n <= 1024; n++) {
    EXPECT_GE(1u << ceil_log2(n), n);
    if (n > 1) {
      EXPECT_LT(1u << (ceil_log2(n) - 1), n);
    }
    EXPECT_LE(1u << floor_log2(n), n);
    EXPECT_GT(2u << floor_log2(n), n);
  }
}

TEST(Ranks, PlusAndMinusGoRound) {
  for (uint32_t n : {1u, 2u, 3u, 7u, 8u, 1000u, 1024u}) {
    for (uint32_t rank = 0; rank < n; rank++) {
      for (uint32_t distance : {0u, 1u, n / 2, n - 1, n}) {
        EXPECT_EQ(plus(rank, distance, n), (rank + distance) % n);
        EXPECT_EQ(minus(plus(rank, distance, n), distance, n), rank);
      }
    }
  }
}

TEST(Ranks, PeerEntryFindsExactlyThePowersOfTwo) {
  for (uint32_t n : {2u, 3u, 5u, 8u, 13u, 64u}) {
    for (uint32_t rank = 0; rank < n; rank++) {
      for (uint32_t other = 0; other < n; other++) {
        bool is_peer = false;
        for (uint32_t distance = 1; distance < n; distance *= 2) {
          is_peer = is_peer || (rank + distance) % n == other || (other + distance) % n == rank;
        }
        const uint32_t entry = peer_entry(rank, other, n);
        ASSERT_EQ(entry != kNoPeer, is_peer) << n << " " << rank << " " << other;
        if (!is_peer) continue;
        const uint32_t distance = 1u << entry / 2;
        ASSERT_LT(entry, 2 * ceil_log2(n));
        ASSERT_EQ(entry % 2 == 0 ? plus(rank, distance, n) : minus(rank, distance, n), other);
      }
    }
  }
}

TEST(Ranks, AnEntryIsRepeatedWhereTheRankIsFoundInAnother) {
  for (uint32_t n = 2; n <= 130; n++) {
    for (uint32_t entry = 0; entry < 2 * ceil_log2(n); entry++) {
      const uint32_t distance = 1u << entry / 2;
      const Rank other = entry % 2 == 0 ? plus(0, distance, n) : minus(0, distance, n);
      EXPECT_EQ(is_repeated_entry(entry, n), peer_entry(0, other, n) != entry) << n << " " << entry;
    }
  }
}

}  // namespace
}  // namespace peal::test
