// SPDX-License-Identifier: BSD-2-Clause
// Makes the system calls that wake hosts, on a thread of its own, because such a call costs the
// caller 10 µs and more when the sleeper is on another core. The loop sets a flag; the helper looks
// at the flags, stays awake for a moment after work, then parks.
// Only unparking it costs the loop a system call.
//
// An eventfd that a guest shares is the guest's too: it may fill the counter and let writers wait.
// So a write is interrupted after a moment, and whoever made one wait is woken no more.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "emulator/nic/host_interface.h"

namespace peal::nic {

class WakeHelper {
 public:
  explicit WakeHelper(uint32_t slots = kSlots);
  ~WakeHelper() { stop(); }
  WakeHelper(const WakeHelper&) = delete;
  WakeHelper& operator=(const WakeHelper&) = delete;

  // Empty, or what went wrong.
  std::string start();
  void stop();
  // After start(): the processors it may use. Not the loop's, which does not give way; best are
  // those of the hosts, where it wakes those that sleep on the same one without an interrupt across
  // processors. Without any it stays where it is.
  void run_on(const std::vector<int>& cpus);

  // Writes 1 to a duplicate of the eventfd at each ring.
  // kNoWakeSlot when there is no slot or descriptor left.
  WakeSlot add_eventfd(int fd);
  // Wakes all who wait on this futex word, in any process. The word may go once the slot has: a
  // wake that comes too late wakes nobody, and writes nothing.
  WakeSlot add_futex(uint32_t* word);
  // Afterwards the helper begins no more wakes of this slot.
  void remove(WakeSlot slot);

  // From the loop. Several rings may become one wake-up, which happens after the last of them.
  void ring(WakeSlot slot) {
    pending_[slot / kBits].fetch_or(uint64_t{1} << (slot % kBits), std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_relaxed) != 0) unpark();
  }

  [[nodiscard]] uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t unparks() const { return unparks_.load(std::memory_order_relaxed); }
  // Eventfds given up because a write to them had to wait.
  [[nodiscard]] uint64_t blocked() const { return blocked_.load(std::memory_order_relaxed); }

  static constexpr uint32_t kSlots = 512;

 private:
  static constexpr uint32_t kBits = 64;

  struct Target {
    int fd = -1;
    uint32_t* word = nullptr;
    bool used = false;
    bool leaving = false;  // removed while it was being woken: the helper closes it
  };

  WakeSlot add(Target target);
  void clear(Target& target);
  void run();
  bool serve();
  bool wake(WakeSlot slot);
  bool write_soon(int fd);
  void park();
  void unpark();

  uint32_t slots_;
  std::unique_ptr<std::atomic<uint64_t>[]> pending_;  // a bit per slot
  std::mutex mutex_;  // never held during a system call that may wait
  std::unique_ptr<Target[]> targets_;
  WakeSlot serving_ = kNoWakeSlot;
  std::atomic<uint32_t> high_words_{0};  // of pending_; slots behind them are unused
  std::atomic<uint32_t> parked_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> wakes_{0};
  std::atomic<uint64_t> unparks_{0};
  std::atomic<uint64_t> blocked_{0};
  timer_t timer_{};  // interrupts the helper; its own
  bool has_timer_ = false;
  std::thread thread_;
};

// Not private: the word lies in memory shared with other processes.
void futex_wake_all(uint32_t* word);

}  // namespace peal::nic
