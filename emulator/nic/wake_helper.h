// SPDX-License-Identifier: BSD-2-Clause
// Makes the system calls that wake hosts, on a thread of its own, because such a call costs the
// caller 10 µs and more when the sleeper is on another core. The loop sets a flag; the helper looks
// at the flags, stays awake for a moment after work, then parks. Only unparking it costs the loop a
// system call.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "emulator/nic/host_interface.h"

namespace peal::nic {

class WakeHelper {
 public:
  WakeHelper() = default;
  ~WakeHelper() { stop(); }
  WakeHelper(const WakeHelper&) = delete;
  WakeHelper& operator=(const WakeHelper&) = delete;

  void start();
  void stop();

  // Writes 1 to a duplicate of the eventfd at each ring. kNoWakeSlot when there is no slot or
  // descriptor left.
  WakeSlot add_eventfd(int fd);
  // Wakes all who wait on this futex word, in any process. The word must outlive the slot.
  WakeSlot add_futex(uint32_t* word);
  // Afterwards the helper touches neither descriptor nor word.
  void remove(WakeSlot slot);

  // From the loop. Several rings may become one wake-up, which happens after the last of them.
  void ring(WakeSlot slot) {
    pending_[slot].store(true, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_relaxed) != 0) unpark();
  }

  [[nodiscard]] uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t unparks() const { return unparks_.load(std::memory_order_relaxed); }

  static constexpr uint32_t kSlots = 512;

 private:
  struct Target {
    int fd = -1;
    uint32_t* word = nullptr;
    bool used = false;
  };

  WakeSlot add(Target target);
  void run();
  bool serve();
  void park();
  void unpark();

  std::array<std::atomic<bool>, kSlots> pending_{};
  std::mutex mutex_;  // targets and high_
  std::array<Target, kSlots> targets_;
  uint32_t high_ = 0;  // slots at and above it are unused
  std::atomic<uint32_t> parked_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> wakes_{0};
  std::atomic<uint64_t> unparks_{0};
  std::thread thread_;
};

// Not private: the word lies in memory shared with other processes.
void futex_wake_all(uint32_t* word);

}  // namespace peal::nic
