// SPDX-License-Identifier: BSD-2-Clause
// How the control thread gets something done on the loop: one call at a time, handed over and
// waited for. The loop looks at one word per turn, and makes no system call to answer unless the
// waiter sleeps. Who waits says so, fences, and looks again; who answers answers, fences, and looks
// for a waiter. (Fences, for a user-mode emulator of arm64 may let a load-acquire pass the
// store-release before it, which the architecture forbids.)
#pragma once

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "emulator/nic/host_interface.h"

namespace peal::nic {

template <typename Call>
class LoopCall {
 public:
  explicit LoopCall(LoopServices& loop) : loop_(loop) {}

  // Empty-handed on failure: out of descriptors.
  bool open() {
    request_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    answer_fd_ = eventfd(0, EFD_CLOEXEC);
    if (request_fd_ < 0 || answer_fd_ < 0 || !loop_.watch(request_fd_)) return false;
    answer_slot_ = loop_.add_wake_eventfd(answer_fd_);
    return answer_slot_ != kNoWakeSlot;
  }

  ~LoopCall() {
    if (answer_slot_ != kNoWakeSlot) loop_.remove_wake(answer_slot_);
    if (request_fd_ >= 0) {
      loop_.unwatch(request_fd_);
      close(request_fd_);
    }
    if (answer_fd_ >= 0) close(answer_fd_);
  }
  LoopCall(const LoopCall&) = delete;
  LoopCall& operator=(const LoopCall&) = delete;

  // Control thread: false when the loop has closed. Otherwise the call was carried out.
  bool run(Call* call) {
    call_.store(call, std::memory_order_release);
    const uint64_t one = 1;
    if (write(request_fd_, &one, sizeof(one)) < 0) return false;
    for (int spins = 0; spins < kSpins; spins++) {
      if (answered(call)) return !closed_.load(std::memory_order_acquire);
      sched_yield();
    }
    waiting_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    while (!answered(call)) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = read(answer_fd_, &count, sizeof(count));
    }
    waiting_.store(false, std::memory_order_relaxed);
    return !closed_.load(std::memory_order_acquire);
  }

  // Loop: the call that waits, or null.
  Call* pending() const { return call_.load(std::memory_order_acquire); }
  void answer() {
    call_.store(nullptr, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (waiting_.load(std::memory_order_relaxed)) loop_.ring(answer_slot_);
  }
  // Loop: no call is answered from now on.
  void close_calls() {
    closed_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(answer_fd_, &one, sizeof(one));
  }

 private:
  static constexpr int kSpins = 64;

  bool answered(Call* call) const {
    return call_.load(std::memory_order_acquire) != call || closed_.load(std::memory_order_acquire);
  }

  LoopServices& loop_;
  std::atomic<Call*> call_{nullptr};
  std::atomic<bool> waiting_{false};
  std::atomic<bool> closed_{false};
  int request_fd_ = -1;
  int answer_fd_ = -1;
  WakeSlot answer_slot_ = kNoWakeSlot;
};

}  // namespace peal::nic
