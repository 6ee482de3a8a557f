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
#include <vector>

namespace peal::nic {
namespace {

int interrupt_signal() { return SIGRTMIN + 4; }

// Without SA_RESTART, so that the signal ends the call it arrives in.
bool ignore_interrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigemptyset(&action.sa_mask);
  return sigaction(interrupt_signal(), &action, nullptr) == 0;
}

}  // namespace

struct DetachedWork::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::function<void()>> items;
  std::vector<pthread_t> busy;  // threads with work under way
  size_t pending = 0;           // items, and work under way
  size_t idle = 0;              // threads that wait for an item
  bool stopping = false;
};

DetachedWork::DetachedWork(StartThread start_thread)
    : start_thread_(std::move(start_thread)), state_(std::make_shared<State>()) {}

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
  start_for_items();
}

void DetachedWork::retry() {
  const std::lock_guard lock(state_->mutex);
  if (state_->items.size() > state_->idle) start_for_items();
}

void DetachedWork::interrupt() {
  static const bool ignored = ignore_interrupts();
  const std::lock_guard lock(state_->mutex);
  if (!ignored) return;
  for (const pthread_t thread : state_->busy) pthread_kill(thread, interrupt_signal());
}

// Where no thread is to be had, one that comes back takes the work, or retry() starts one.
void DetachedWork::start_for_items() {
  try {
    start_thread_([state = state_] { work(state); });
  } catch (const std::system_error&) {
  }
}

void DetachedWork::start_detached(std::function<void()> body) {
  // Other signals are for the thread that runs the loop.
  sigset_t others;
  sigset_t before;
  sigfillset(&others);
  sigdelset(&others, interrupt_signal());
  pthread_sigmask(SIG_SETMASK, &others, &before);
  try {
    std::thread(std::move(body)).detach();
  } catch (const std::system_error&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
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
    state->busy.push_back(pthread_self());
    lock.unlock();
    item();
    item = nullptr;
    lock.lock();
    std::erase(state->busy, pthread_self());
    state->pending--;
  }
}

}  // namespace peal::nic
