// SPDX-License-Identifier: BSD-2-Clause
// The hopping tree for every group size and origin: everybody is reached once, parents and hops
// agree, and the paper's example is the paper's.
#include "firmware/collective/hopping.h"

#include <gtest/gtest.h>

#include <vector>

namespace peal::test {
namespace {

// Follows all hops from the origin; how often each rank is reached.
std::vector<int> arrivals(uint32_t ranks, uint32_t origin) {
  std::vector<int> count(ranks, 0);
  std::vector<uint32_t> at{origin};
  while (!at.empty()) {
    const uint32_t rank = at.back();
    at.pop_back();
    const uint32_t place = hopping::place(rank, origin, ranks);
    for (uint32_t hop = hopping::first_leaving_hop(place); place + (1u << hop) < ranks; hop++) {
      const uint32_t to = plus(rank, 1u << hop, ranks);
      EXPECT_EQ(hopping::arriving_hop(hopping::place(to, origin, ranks)), hop);
      count[to]++;
      at.push_back(to);
    }
  }
  return count;
}

TEST(Hopping, ReachesEverybodyOnceForEverySizeAndOrigin) {
  for (uint32_t ranks = 1; ranks <= 70; ranks++) {
    for (uint32_t origin = 0; origin < ranks; origin++) {
      const auto count = arrivals(ranks, origin);
      for (uint32_t rank = 0; rank < ranks; rank++) {
        ASSERT_EQ(count[rank], rank == origin ? 0 : 1) << ranks << " " << origin << " " << rank;
      }
    }
  }
  for (const uint32_t ranks : {511u, 512u, 1000u, 1023u, 1024u}) {
    const auto count = arrivals(ranks, ranks / 3);
    for (uint32_t rank = 0; rank < ranks; rank++) ASSERT_EQ(count[rank], rank == ranks / 3 ? 0 : 1);
  }
}

TEST(Hopping, PlacesGoRoundTheOrigin) {
  EXPECT_EQ(hopping::place(3, 3, 8), 0u);
  EXPECT_EQ(hopping::place(2, 3, 8), 7u);
  EXPECT_EQ(hopping::place(0, 6, 7), 1u);
}

// Origin 0 of 8: 0 sends to 1, 2, 4; 1 to 3, 5; 2 to 6; 3 to 7.
TEST(Hopping, TreeOfEight) {
  const uint32_t hops[8] = {0, 0, 1, 1, 2, 2, 2, 2};
  const uint32_t parents[8] = {0, 0, 0, 1, 0, 1, 2, 3};
  for (uint32_t place = 1; place < 8; place++) {
    EXPECT_EQ(hopping::arriving_hop(place), hops[place]);
    EXPECT_EQ(place - (1u << hopping::arriving_hop(place)), parents[place]);
  }
}

TEST(Hopping, LeavingHopsAreThoseThatLeadToAPlace) {
  for (uint32_t ranks = 1; ranks <= 70; ranks++) {
    for (uint32_t place = 0; place < ranks; place++) {
      uint32_t hops = 0;
      for (uint32_t hop = hopping::first_leaving_hop(place); place + (1u << hop) < ranks; hop++) {
        hops |= 1u << hop;
      }
      ASSERT_EQ(hopping::leaving_hops(place, ranks), hops) << ranks << " " << place;
    }
  }
}

}  // namespace
}  // namespace peal::test
