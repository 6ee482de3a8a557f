// SPDX-License-Identifier: BSD-2-Clause
// The lock of a context: one at a time, and whoever waits for it gets it.
#include "hostlib/mutex.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace peal::host {
namespace {

TEST(Mutex, IsTakenOnce) {
  Mutex mutex;
  EXPECT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

// The halves of giving it back: who waits is told of, and let in once it is woken.
TEST(Mutex, WhoeverWaitsIsToldOf) {
  Mutex mutex;
  mutex.lock();
  EXPECT_FALSE(mutex.release()) << "nobody waits";
  mutex.lock();
  std::thread waits([&] { const std::lock_guard guard(mutex); });
  bool told = mutex.release();
  while (!told && mutex.try_lock()) {  // until it sleeps, or was here
    std::this_thread::yield();
    told = mutex.release();
  }
  if (told) mutex.wake_one();
  waits.join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

// Each thread yields while it has the lock, so that the others find it taken, and sleep.
TEST(Mutex, OneAtATime) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 500;
  Mutex mutex;
  int inside = 0;
  int most = 0;
  int times = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTimes; i++) {
        const std::lock_guard guard(mutex);
        most = std::max(most, ++inside);
        if (i % 8 == 0) std::this_thread::yield();
        times++;
        inside--;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(times, kThreads * kTimes);
}

// All of them wait at once, and all are let in, though each that leaves wakes only one.
TEST(Mutex, EverybodyWhoWaitsGetsIt) {
  constexpr int kThreads = 6;
  for (int round = 0; round < 50; round++) {
    Mutex mutex;
    int in = 0;
    std::vector<std::thread> threads;
    {
      const std::lock_guard guard(mutex);
      for (int t = 0; t < kThreads; t++) {
        threads.emplace_back([&] {
          const std::lock_guard its(mutex);
          in++;
        });
      }
      std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(in, kThreads);
  }
}

// As the context's conditions use it: given up meanwhile, and taken again.
TEST(Mutex, IsGivenUpWhileAConditionIsAwaited) {
  Mutex mutex;
  std::condition_variable_any changed;
  int turn = 0;
  const auto take_turns = [&](int mine) {
    std::unique_lock lock(mutex);
    for (int i = 0; i < 100; i++) {
      changed.wait(lock, [&] { return turn % 2 == mine; });
      EXPECT_FALSE(mutex.try_lock());
      turn++;
      changed.notify_all();
    }
  };
  std::thread other([&] { take_turns(1); });
  take_turns(0);
  other.join();
  EXPECT_EQ(turn, 200);
}

}  // namespace
}  // namespace peal::host
