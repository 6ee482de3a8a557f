// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/detached_work.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

namespace peal::nic {
namespace {

// The threads may outlive the test's own frame: what they touch is shared with them.
TEST(DetachedWork, IsDoneBesideWhatIsStuckThoughAddedWithIt) {
  const auto let_go = std::make_shared<std::promise<void>>();
  const std::shared_future<void> stuck = let_go->get_future().share();
  DetachedWork work;
  for (int i = 0; i < 50; i++) {
    work.add([] {});
    // All that are not stuck wait for work then.
    while (work.pending() != static_cast<size_t>(i)) std::this_thread::yield();
    const auto done = std::make_shared<std::promise<void>>();
    work.add([stuck] { stuck.wait(); });
    work.add([done] { done->set_value(); });
    done->get_future().wait();
    while (work.pending() != static_cast<size_t>(i) + 1) std::this_thread::yield();
  }
  let_go->set_value();
}

// Mostly before its thread has begun.
TEST(DetachedWork, IsDoneThoughItsOwnerIsGone) {
  constexpr int kItems = 50;
  const auto done = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < kItems; i++) {
    DetachedWork work;
    work.add([done] { ++*done; });
  }
  while (*done != kItems) std::this_thread::yield();
}

// And nothing is added that would bring a thread along.
TEST(DetachedWork, IsDoneOnceThereIsAThread) {
  int starts = 0;
  DetachedWork work([&starts](std::function<void()> body) {
    if (++starts < 3) throw std::system_error(EAGAIN, std::generic_category());
    std::thread(std::move(body)).detach();
  });
  const auto done = std::make_shared<std::promise<void>>();
  work.add([done] { done->set_value(); });
  EXPECT_EQ(work.pending(), 1u);
  work.retry();
  EXPECT_EQ(work.pending(), 1u);
  work.retry();
  done->get_future().wait();
  while (work.pending() != 0) std::this_thread::yield();
  work.retry();
  EXPECT_EQ(starts, 3);
}

TEST(DetachedWork, ItsCallsAreInterrupted) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  DetachedWork work;
  const auto error = std::make_shared<std::promise<int>>();
  work.add([error, end = ends[0]] {
    char byte = 0;
    error->set_value(read(end, &byte, 1) < 0 ? errno : 0);
  });
  std::future<int> result = error->get_future();
  while (work.pending() != 0) {
    work.interrupt();
    std::this_thread::yield();
  }
  EXPECT_EQ(result.get(), EINTR);
  for (const int end : ends) close(end);
}

}  // namespace
}  // namespace peal::nic
