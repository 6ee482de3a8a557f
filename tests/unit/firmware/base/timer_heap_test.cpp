// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/base/timer_heap.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace peal::test {
namespace {

class TimerHeapTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kCapacity = 64;
  std::vector<Timer*> places = std::vector<Timer*>(kCapacity);
  std::vector<Timer> timers = std::vector<Timer>(kCapacity);
  TimerHeap heap{places.data(), kCapacity, 0};
};

TEST_F(TimerHeapTest, EmptyHasNoDeadline) {
  EXPECT_EQ(heap.earliest(), kNever);
  EXPECT_EQ(heap.pop_due(kNever - 1), nullptr);
}

TEST_F(TimerHeapTest, PopsEarliestFirstAndOnlyWhatIsDue) {
  heap.arm(timers[0], 30);
  heap.arm(timers[1], 10);
  heap.arm(timers[2], 20);
  EXPECT_EQ(heap.earliest(), 10u);
  EXPECT_EQ(heap.pop_due(9), nullptr);
  EXPECT_EQ(heap.pop_due(20), &timers[1]);
  EXPECT_EQ(heap.pop_due(20), &timers[2]);
  EXPECT_EQ(heap.pop_due(20), nullptr);
  EXPECT_EQ(heap.earliest(), 30u);
}

TEST_F(TimerHeapTest, ArmingAgainMovesTheDeadlineBothWays) {
  heap.arm(timers[0], 10);
  heap.arm(timers[1], 20);
  heap.arm(timers[0], 30);
  EXPECT_EQ(heap.pop_due(kNever - 1), &timers[1]);
  heap.arm(timers[0], 5);
  EXPECT_EQ(heap.earliest(), 5u);
  EXPECT_EQ(heap.count, 1u);
}

TEST_F(TimerHeapTest, ArmNoLaterKeepsTheEarlier) {
  heap.arm_no_later(timers[0], 10);
  heap.arm_no_later(timers[0], 20);
  EXPECT_EQ(heap.earliest(), 10u);
  heap.arm_no_later(timers[0], 5);
  EXPECT_EQ(heap.earliest(), 5u);
}

TEST_F(TimerHeapTest, DisarmingTakesOutFromAnywhereAndTwiceIsNothing) {
  for (uint32_t i = 0; i < 5; i++) heap.arm(timers[i], 10 + i);
  heap.disarm(timers[2]);
  heap.disarm(timers[2]);
  heap.disarm(timers[0]);
  heap.disarm(timers[4]);
  EXPECT_EQ(heap.pop_due(100), &timers[1]);
  EXPECT_EQ(heap.pop_due(100), &timers[3]);
  EXPECT_EQ(heap.pop_due(100), nullptr);
}

// Against an ordered map, through many random changes (one seed, our own generator).
TEST_F(TimerHeapTest, AgreesWithAnOrderedMap) {
  std::map<Timer*, TimeNs> model;
  uint64_t random = 88172645463325252u;
  const auto next = [&] {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random;
  };
  for (int step = 0; step < 20'000; step++) {
    Timer* timer = &timers[next() % kCapacity];
    const TimeNs deadline = next() % 1000;
    switch (next() % 4) {
      case 0:
      case 1:
        heap.arm(*timer, deadline);
        model[timer] = deadline;
        break;
      case 2:
        heap.disarm(*timer);
        model.erase(timer);
        break;
      default: {
        TimeNs earliest = kNever;
        for (const auto& [unused, when] : model) earliest = std::min(earliest, when);
        ASSERT_EQ(heap.earliest(), earliest);
        if (Timer* due = heap.pop_due(deadline)) {
          ASSERT_EQ(model.at(due), earliest);
          model.erase(due);
        } else {
          ASSERT_GT(earliest, deadline);
        }
      }
    }
    ASSERT_EQ(heap.count, model.size());
  }
}

}  // namespace
}  // namespace peal::test
