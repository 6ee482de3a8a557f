// SPDX-License-Identifier: BSD-2-Clause
// For how long a loop stays awake for a host, by times and counts that it is told.
#include "emulator/nic/linger.h"

#include <gtest/gtest.h>

namespace peal::nic {
namespace {

constexpr TimeNs kUs = 1000;
constexpr TimeNs kLong = 10'000 * kUs;

class LingerTest : public testing::Test {
 protected:
  LingerTest() { linger_.set(kLong); }

  // A turn each microsecond, until it may sleep or `end`.
  TimeNs awake_until(TimeNs end, uint64_t ends) {
    for (; now_ < end; now_ += kUs) {
      if (!linger_.found_nothing(now_, ends)) break;
    }
    return now_;
  }

  Linger linger_;
  TimeNs now_ = 5'000'000'000;
};

TEST_F(LingerTest, BeforeAnyEndItDoesNot) { EXPECT_FALSE(linger_.found_nothing(now_, 0)); }

TEST_F(LingerTest, ForSoLongAfterAnEnd) {
  const TimeNs start = now_;
  EXPECT_EQ(awake_until(start + 2 * kLong, 1), start + kLong);
  EXPECT_FALSE(linger_.found_nothing(now_ + kUs, 1));
}

TEST_F(LingerTest, AfterTheLastEnd) {
  const TimeNs start = now_;
  EXPECT_EQ(awake_until(start + kLong / 2, 1), start + kLong / 2);
  EXPECT_EQ(awake_until(start + 3 * kLong, 2), start + kLong / 2 + kLong);
}

TEST_F(LingerTest, NotAtAllIfNotWanted) {
  linger_.set(0);
  EXPECT_FALSE(linger_.found_nothing(now_, 1));
}

// Somebody else had the processor: what lingers then is waited for.
TEST_F(LingerTest, NotWhereOthersUseTheProcessor) {
  EXPECT_TRUE(linger_.found_nothing(now_, 1));
  now_ += Linger::kLostNs + 1;
  EXPECT_FALSE(linger_.found_nothing(now_, 1));
  EXPECT_EQ(linger_.lost(), 1u);
  now_ += kUs;
  EXPECT_FALSE(linger_.found_nothing(now_, 2)) << "it is believed for a while";
  linger_.slept();
  now_ += Linger::kSharedNs;
  EXPECT_TRUE(linger_.found_nothing(now_, 3));
}

// What has come meanwhile does not hide it.
TEST_F(LingerTest, ATurnThatWorksMayHaveBeenLostToo) {
  EXPECT_TRUE(linger_.found_nothing(now_, 1));
  now_ += Linger::kLostNs + 1;
  linger_.worked(now_);
  EXPECT_EQ(linger_.lost(), 1u);
  now_ += kUs;
  EXPECT_FALSE(linger_.found_nothing(now_, 2));
}

// A turn that comes after work or a sleep was not lost.
TEST_F(LingerTest, WorkAndSleepMayTakeLong) {
  EXPECT_TRUE(linger_.found_nothing(now_, 1));
  now_ += kUs;
  linger_.worked(now_);
  now_ += 2 * Linger::kLostNs;
  EXPECT_TRUE(linger_.found_nothing(now_, 1));
  linger_.slept();
  now_ += 2 * Linger::kLostNs;
  EXPECT_TRUE(linger_.found_nothing(now_, 1));
  now_ += Linger::kLostNs;
  EXPECT_TRUE(linger_.found_nothing(now_, 1)) << "and this is no longer than it may be";
  EXPECT_EQ(linger_.lost(), 0u);
}

}  // namespace
}  // namespace peal::nic
