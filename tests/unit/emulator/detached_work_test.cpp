// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/detached_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

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

}  // namespace
}  // namespace peal::nic
