// SPDX-License-Identifier: BSD-2-Clause
// What packets on an edge of a ring prove of those that were lost.
#include "firmware/collective/allgather/ring_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace peal::ring {
namespace {

std::string text_of(const Heard& heard) {
  return "farthest " + std::to_string(heard.farthest) + " lost " + std::to_string(heard.lost) +
         " fresh " + std::to_string(heard.fresh_first) + "-" + std::to_string(heard.fresh_end);
}

TEST(RingOrder, WhatIsNearerAndHasNotBeenPassedOnIsHeldBack) {
  EXPECT_EQ(held_back(1, 1), 0);
  EXPECT_EQ(held_back(6, 2), 4);
  EXPECT_EQ(held_back(255, 1), 254);
  EXPECT_EQ(held_back(256, 1), kManyHeldBack);
  EXPECT_EQ(held_back(1000, 1), kManyHeldBack);
}

TEST(RingOrder, WhatWasJumpedOverIsLostUnlessItIsHeldBack) {
  Heard heard = {};
  EXPECT_EQ(heard_first(heard, 1, 1, 0), 0u);
  EXPECT_EQ(heard_first(heard, 4, 2, 2), 0u);
  EXPECT_EQ(text_of(heard), "farthest 4 lost 0 fresh 0-0");
  EXPECT_EQ(heard_first(heard, 7, 3, 3), 1u);
  EXPECT_EQ(text_of(heard), "farthest 7 lost 1 fresh 5-7");
  EXPECT_EQ(heard_first(heard, 8, 4, 3), 0u);  // the same one
  heard.fresh_first = heard.fresh_end = 0;
  // One that was held back has been sent, and lost: nobody can say which.
  EXPECT_EQ(heard_first(heard, 9, 5, 2), 1u);
  EXPECT_EQ(text_of(heard), "farthest 9 lost 2 fresh 1-9");
  EXPECT_EQ(heard_first(heard, 12, 6, kManyHeldBack), 0u);
  EXPECT_EQ(text_of(heard), "farthest 12 lost 2 fresh 1-9");
}

TEST(RingOrder, ARepairMakesUpForOne) {
  Heard heard = {};
  heard_first(heard, 3, 1, 0);
  EXPECT_EQ(text_of(heard), "farthest 3 lost 2 fresh 1-3");
  heard_again(heard, 2);
  EXPECT_EQ(text_of(heard), "farthest 3 lost 1 fresh 1-3");
  // Of the end: it makes up for nothing that was known.
  heard_again(heard, 6);
  EXPECT_EQ(text_of(heard), "farthest 6 lost 1 fresh 1-3");
  // What was lost before the end shows as soon as another packet comes.
  EXPECT_EQ(heard_first(heard, 7, 4, 0), 2u);
  EXPECT_EQ(text_of(heard), "farthest 7 lost 3 fresh 1-7");
}

// A left neighbour that gets some blocks late, and an edge that loses a tenth of them.
class Edge {
 public:
  explicit Edge(uint32_t seed) : random_(seed) {
    const uint32_t ranks = 3 + draw(60);
    std::vector<uint32_t> late;
    for (uint32_t distance = 1; distance < ranks; distance++) {
      (draw(8) == 0 ? late : order_).push_back(distance);
    }
    for (const uint32_t each : late) {  // somewhere behind its place
      const auto place = std::lower_bound(order_.begin(), order_.end(), each) - order_.begin();
      const auto rest = static_cast<uint32_t>(order_.end() - order_.begin() - place);
      order_.insert(order_.begin() + place + draw(rest + 1), each);
    }
  }
  void run() {
    uint32_t end = 0;
    uint32_t come = 0;
    for (uint32_t sent = 1; sent <= order_.size(); sent++) {
      const uint32_t distance = order_[sent - 1];
      end = std::max(end, distance);
      if (draw(10) == 0) {
        lost_.insert(distance);
        continue;
      }
      heard_first(heard_, distance, ++come, held_back(end, sent));
      for (uint32_t i = heard_.fresh_first; i < heard_.fresh_end; i++) named_.insert(i);
      heard_.fresh_first = heard_.fresh_end = 0;
      const auto nearer = static_cast<uint32_t>(std::count_if(
          lost_.begin(), lost_.end(), [&](uint32_t each) { return each < heard_.farthest; }));
      ASSERT_LE(heard_.lost, nearer);
      if (end == heard_.farthest) {
        ASSERT_EQ(heard_.lost, nearer);
      }
    }
  }
  // Of those that a farther one has followed.
  [[nodiscard]] uint32_t lost() const { return count(false); }
  [[nodiscard]] uint32_t named() const { return count(true); }

 private:
  uint32_t draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  [[nodiscard]] uint32_t count(bool named) const {
    return static_cast<uint32_t>(std::count_if(lost_.begin(), lost_.end(), [&](uint32_t each) {
      return each < heard_.farthest && (!named || named_.contains(each));
    }));
  }

  std::minstd_rand random_;
  std::vector<uint32_t> order_;
  Heard heard_ = {};
  std::set<uint32_t> lost_;
  std::set<uint32_t> named_;
};

// What comes farther than all before says how many are lost, no more and no less; what comes later
// never says more than there are. Nearly all are named: not a late one that is lost together with
// others, of which the number alone is known, until silence asks for everything.
TEST(RingOrder, TheNumberOfTheLostIsRightWhateverTheOrder) {
  uint32_t lost = 0;
  uint32_t named = 0;
  for (uint32_t seed = 1; seed <= 2000; seed++) {
    Edge edge(seed);
    edge.run();
    if (HasFatalFailure()) FAIL() << "seed " << seed;
    lost += edge.lost();
    named += edge.named();
  }
  EXPECT_GT(lost, 4000u);
  EXPECT_GT(100 * named, 97 * lost) << named << " of " << lost;
}

}  // namespace
}  // namespace peal::ring
