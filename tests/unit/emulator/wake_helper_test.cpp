// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/wake_helper.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/support/asleep.h"

namespace peal::nic {
namespace {

using ::peal::test::is_asleep;

// Until something is written; the time limit only ends a test that has failed.
uint64_t read_event(int fd) {
  pollfd wait = {fd, POLLIN, 0};
  if (poll(&wait, 1, 60'000) != 1) return 0;
  uint64_t count = 0;
  return read(fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

TEST(WakeHelper, EveryRingIsFollowedByAWake) {
  WakeHelper helper;
  ASSERT_EQ(helper.start(), "");
  const int fd = eventfd(0, EFD_NONBLOCK);
  const WakeSlot slot = helper.add_eventfd(fd);
  ASSERT_NE(slot, kNoWakeSlot);
  const pid_t thread = ::peal::test::thread_named("peal-wake");
  ASSERT_NE(thread, 0);
  // Each wake is waited for, so the helper is lingering or parking at the next ring; at every
  // hundredth it is parked.
  for (int i = 0; i < 2000; i++) {
    while (i % 100 == 0 && !is_asleep(thread)) std::this_thread::yield();
    helper.ring(slot);
    ASSERT_GE(read_event(fd), 1u);
  }
  EXPECT_EQ(helper.wakes(), 2000u);
  EXPECT_GE(helper.unparks(), 19u);  // (A thread that starts may sleep before it parks.)
  helper.stop();
  close(fd);
}

TEST(WakeHelper, WakesAllWhoWaitOnAWord) {
  WakeHelper helper;
  ASSERT_EQ(helper.start(), "");
  alignas(64) uint32_t word = 0;
  const WakeSlot slot = helper.add_futex(&word);
  std::atomic<int> woken = 0;
  std::atomic<pid_t> sleepers[2] = {};
  const auto sleeper = [&](int which) {
    sleepers[which] = gettid();
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
      syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
    woken++;
  };
  std::thread first(sleeper, 0);
  std::thread second(sleeper, 1);
  for (const std::atomic<pid_t>& each : sleepers) {
    while (each == 0 || !is_asleep(each)) std::this_thread::yield();
  }
  __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
  helper.ring(slot);
  first.join();
  second.join();
  EXPECT_EQ(woken, 2);
  helper.stop();
}

TEST(WakeHelper, SlotsRunOutAndComeBack) {
  WakeHelper helper;
  uint32_t word = 0;
  for (uint32_t i = 0; i < WakeHelper::kSlots; i++) ASSERT_EQ(helper.add_futex(&word), i);
  EXPECT_EQ(helper.add_futex(&word), kNoWakeSlot);
  helper.remove(7);
  EXPECT_EQ(helper.add_futex(&word), 7u);
  helper.remove(kNoWakeSlot);  // of something that had none
}

TEST(WakeHelper, RemovedSlotIsSilent) {
  WakeHelper helper;
  ASSERT_EQ(helper.start(), "");
  const int fd = eventfd(0, EFD_NONBLOCK);
  const int other = eventfd(0, EFD_NONBLOCK);
  const WakeSlot slot = helper.add_eventfd(fd);
  const WakeSlot witness = helper.add_eventfd(other);
  helper.remove(slot);
  helper.ring(slot);
  helper.ring(witness);
  EXPECT_GE(read_event(other), 1u);  // the helper has looked at both
  uint64_t count = 0;
  EXPECT_EQ(read(fd, &count, sizeof(count)), -1);
  helper.stop();
  close(fd);
  close(other);
}

// An eventfd is shared with its guest, flags and all: it may let writers wait.
TEST(WakeHelper, AFullEventfdThatBlocksHoldsUpNobody) {
  WakeHelper helper;
  ASSERT_EQ(helper.start(), "");
  const int full = eventfd(0, EFD_CLOEXEC);
  const uint64_t most = ~uint64_t{0} - 1;
  ASSERT_EQ(write(full, &most, sizeof(most)), ssize_t{sizeof(most)});
  const int other = eventfd(0, EFD_NONBLOCK);
  const WakeSlot slot = helper.add_eventfd(full);
  const WakeSlot witness = helper.add_eventfd(other);
  for (int i = 0; i < 3; i++) {
    helper.ring(slot);
    helper.ring(witness);
    EXPECT_GE(read_event(other), 1u);
  }
  EXPECT_EQ(helper.blocked(), 1u);  // and is not tried again
  helper.remove(slot);
  helper.remove(witness);
  helper.stop();
  close(full);
  close(other);
}

}  // namespace
}  // namespace peal::nic
