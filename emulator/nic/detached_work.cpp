// SPDX-License-Identifier: BSD-2-Clause
// Threads are made when all others are busy, and stay for what comes next.
#include "emulator/nic/detached_work.h"

#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace peal::nic {

struct DetachedWork::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::function<void()>> items;
  size_t pending = 0;  // items, and work under way
  size_t idle = 0;     // threads that wait for an item
  bool stopping = false;
};

DetachedWork::DetachedWork() : state_(std::make_shared<State>()) {}

DetachedWork::~DetachedWork() {
  const std::lock_guard lock(state_->mutex);
  state_->stopping = true;
  state_->wake.notify_all();
}

size_t DetachedWork::pending() const {
  const std::lock_guard lock(state_->mutex);
  return state_->pending;
}

void DetachedWork::add(std::function<void()> work) {
  const std::lock_guard lock(state_->mutex);
  state_->items.push_back(std::move(work));
  state_->pending++;
  if (state_->idle >= state_->items.size()) {
    state_->wake.notify_one();
    return;
  }
  // Signals are for the thread that runs the loop.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([state = state_] { DetachedWork::work(state); }).detach();
  } catch (const std::system_error&) {
    // No thread is to be had: one that comes back takes it.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void DetachedWork::work(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (true) {
    state->idle++;
    state->wake.wait(lock, [&] { return !state->items.empty() || state->stopping; });
    state->idle--;
    if (state->items.empty()) return;
    std::function<void()> item = std::move(state->items.front());
    state->items.pop_front();
    lock.unlock();
    item();
    item = nullptr;
    lock.lock();
    state->pending--;
  }
}

}  // namespace peal::nic
