// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/liveness.h"

#include <gtest/gtest.h>

namespace peal::host {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kInterval = 100 * kMs;

TEST(Liveness, BeatingCardLives) {
  Liveness liveness;
  for (uint64_t i = 0; i < 1000; i++) EXPECT_FALSE(liveness.silent(i / 2, kInterval, i * 50 * kMs));
}

TEST(Liveness, SilenceIsDeathAfterTenIntervalsAndFiveSeconds) {
  Liveness liveness;
  uint64_t now = 0;
  EXPECT_FALSE(liveness.silent(7, kInterval, now));
  while (now <= 6000 * kMs) {
    EXPECT_FALSE(liveness.silent(7, kInterval, now)) << now;
    now += 50 * kMs;
  }
  EXPECT_TRUE(liveness.silent(7, kInterval, now));
}

TEST(Liveness, TimeNotLookedAtDoesNotCount) {
  Liveness liveness;
  EXPECT_FALSE(liveness.silent(7, kInterval, 0));
  // Stopped for an hour, with the card.
  EXPECT_FALSE(liveness.silent(7, kInterval, 3'600'000 * kMs));
  EXPECT_FALSE(liveness.silent(7, kInterval, 7'200'000 * kMs));
}

TEST(Liveness, ForgetStartsAgain) {
  Liveness liveness;
  for (uint64_t now = 0; now < 5900 * kMs; now += 50 * kMs) liveness.silent(7, kInterval, now);
  liveness.forget();
  EXPECT_FALSE(liveness.silent(7, kInterval, 10'000 * kMs));
}

}  // namespace
}  // namespace peal::host
