// SPDX-License-Identifier: BSD-2-Clause
// The lock of a context. Every call takes it, nearly always finds it free, and does little more
// than that: so taking it is one exchange here and giving it back another, where std::mutex
// executes 70 instructions (decision 0027). Three states and a futex, after Drepper, "Futexes are
// tricky".
#pragma once

#include <atomic>
#include <cstdint>

namespace peal::host {

// As std::mutex: neither recursive nor fair; for std::lock_guard and std::unique_lock.
class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() {
    if (!try_lock()) [[unlikely]]
      wait();
  }
  bool try_lock() {
    uint32_t free = kFree;
    return state_.compare_exchange_strong(free, kTaken, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void unlock() {
    if (release()) [[unlikely]]
      wake_one();
  }

  // The two halves of unlock(): whether somebody may sleep for it, who is to be woken then.
  [[nodiscard]] bool release() {
    return state_.exchange(kFree, std::memory_order_release) == kWanted;
  }
  [[gnu::cold]] void wake_one();

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kTaken = 1;
  static constexpr uint32_t kWanted = 2;  // taken, and somebody may sleep for it

  // Takes it after that.
  [[gnu::cold]] void wait();

  std::atomic<uint32_t> state_ = kFree;
};

}  // namespace peal::host
