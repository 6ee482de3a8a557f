// SPDX-License-Identifier: BSD-2-Clause
// The helper's life: serve, linger, park. Parking is the same handshake as in the rings: say that
// you sleep, fence, look again.
#include "emulator/nic/wake_helper.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>

namespace peal::nic {
namespace {

constexpr auto kLinger = std::chrono::microseconds(50);

void futex_wait(std::atomic<uint32_t>* word, uint32_t value) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

}  // namespace

void futex_wake_all(uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void WakeHelper::start() {
  thread_ = std::thread([this] { run(); });
}

void WakeHelper::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  unpark();
  thread_.join();
  for (Target& target : targets_) {
    if (target.fd >= 0) close(target.fd);
    target = Target{};
  }
}

WakeSlot WakeHelper::add(Target target) {
  const std::lock_guard lock(mutex_);
  for (uint32_t i = 0; i < kSlots; i++) {
    if (targets_[i].used) continue;
    targets_[i] = target;
    targets_[i].used = true;
    pending_[i].store(false, std::memory_order_relaxed);
    if (i >= high_) high_ = i + 1;
    return i;
  }
  if (target.fd >= 0) close(target.fd);
  return kNoWakeSlot;
}

WakeSlot WakeHelper::add_eventfd(int fd) {
  Target target;
  target.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return target.fd < 0 ? kNoWakeSlot : add(target);
}

WakeSlot WakeHelper::add_futex(uint32_t* word) {
  Target target;
  target.word = word;
  return add(target);
}

void WakeHelper::remove(WakeSlot slot) {
  if (slot >= kSlots) return;
  const std::lock_guard lock(mutex_);
  if (targets_[slot].fd >= 0) close(targets_[slot].fd);
  targets_[slot] = Target{};
  while (high_ > 0 && !targets_[high_ - 1].used) high_--;
}

bool WakeHelper::serve() {
  bool any = false;
  const std::lock_guard lock(mutex_);
  for (uint32_t i = 0; i < high_; i++) {
    if (!pending_[i].load(std::memory_order_relaxed) ||
        !pending_[i].exchange(false, std::memory_order_acq_rel))
      continue;
    const Target& target = targets_[i];
    if (!target.used) continue;
    any = true;
    wakes_.fetch_add(1, std::memory_order_relaxed);
    if (target.word != nullptr) {
      futex_wake_all(target.word);
    } else {
      const uint64_t one = 1;
      // A counter that is full is readable already: nothing is lost (the descriptor is
      // non-blocking).
      [[maybe_unused]] const ssize_t written = write(target.fd, &one, sizeof(one));
    }
  }
  return any;
}

void WakeHelper::park() {
  parked_.store(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (serve() || stopping_.load()) {
    parked_.store(0);
    return;
  }
  while (parked_.load() == 1) futex_wait(&parked_, 1);
}

void WakeHelper::unpark() {
  if (parked_.exchange(0) == 0) return;
  unparks_.fetch_add(1, std::memory_order_relaxed);
  syscall(SYS_futex, &parked_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void WakeHelper::run() {
  using Clock = std::chrono::steady_clock;
  auto until = Clock::now();
  while (!stopping_.load()) {
    if (serve()) {
      until = Clock::now() + kLinger;
    } else if (Clock::now() < until) {
      sched_yield();
    } else {
      park();
      until = Clock::now() + kLinger;
    }
  }
}

}  // namespace peal::nic
