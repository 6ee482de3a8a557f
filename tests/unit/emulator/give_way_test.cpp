// SPDX-License-Identifier: BSD-2-Clause
// When a loop gives way to ranks, by times and counts that it is told.
#include "emulator/nic/give_way.h"

#include <gtest/gtest.h>

namespace peal::nic {
namespace {

constexpr TimeNs kLook = GiveWay::kLookOnNs;

GiveWay looking() {
  GiveWay give_way;
  give_way.set_look_on(kLook);
  return give_way;
}

TEST(GiveWay, WithoutALookAtOnce) {
  GiveWay give_way;
  EXPECT_TRUE(give_way.found_nothing(1000, 0));
  EXPECT_TRUE(give_way.found_nothing(1001, 0));
}

TEST(GiveWay, LooksOnForAMoment) {
  GiveWay give_way = looking();
  EXPECT_FALSE(give_way.found_nothing(1000, 0));
  EXPECT_FALSE(give_way.found_nothing(1000 + kLook - 1, 0));
  EXPECT_TRUE(give_way.found_nothing(1000 + kLook, 0));
}

TEST(GiveWay, LooksOnAnewWhenItIsBack) {
  GiveWay give_way = looking();
  EXPECT_FALSE(give_way.found_nothing(1000, 0));
  EXPECT_TRUE(give_way.found_nothing(1000 + kLook, 0));
  EXPECT_FALSE(give_way.found_nothing(90'000, 0));
  EXPECT_FALSE(give_way.found_nothing(90'000 + kLook - 1, 0));
  EXPECT_TRUE(give_way.found_nothing(90'000 + kLook, 0));
}

// Work takes nothing from it, and gives nothing to it: who has a little to do again and again gives
// way, too.
TEST(GiveWay, LooksOnForNoLongerInAll) {
  GiveWay give_way = looking();
  EXPECT_FALSE(give_way.found_nothing(1000, 0));
  EXPECT_FALSE(give_way.found_nothing(1000 + kLook / 2, 0));
  give_way.worked(1000 + kLook / 2);
  EXPECT_FALSE(give_way.found_nothing(50'000, 0));
  EXPECT_FALSE(give_way.found_nothing(50'000 + kLook / 2 - 1, 0));
  EXPECT_TRUE(give_way.found_nothing(50'000 + kLook / 2, 0));
}

TEST(GiveWay, EachLookBeforeWorkIsTakenOff) {
  GiveWay give_way = looking();
  for (const TimeNs at : {1000u, 11'000u, 21'000u}) {
    EXPECT_FALSE(give_way.found_nothing(at, 0)) << at;
    give_way.worked(at + kLook / 3);
  }
  EXPECT_TRUE(give_way.found_nothing(31'000, 0));
}

TEST(GiveWay, AtOnceToWhomItHasTold) {
  GiveWay give_way = looking();
  EXPECT_FALSE(give_way.found_nothing(1000, 0));
  give_way.worked(1100);
  EXPECT_TRUE(give_way.found_nothing(1500, 2));
  // They were told of the same ends before: what is next is waited for.
  EXPECT_FALSE(give_way.found_nothing(9000, 2));
  EXPECT_TRUE(give_way.found_nothing(9100, 3));
}

// Also when it was in a look (an end without a turn that did something).
TEST(GiveWay, AnEndCutsALookShort) {
  GiveWay give_way = looking();
  EXPECT_FALSE(give_way.found_nothing(1000, 0));
  EXPECT_TRUE(give_way.found_nothing(1001, 1));
  EXPECT_FALSE(give_way.found_nothing(1002, 1));
  EXPECT_TRUE(give_way.found_nothing(1002 + kLook, 1));
}

}  // namespace
}  // namespace peal::nic
