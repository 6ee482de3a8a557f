// SPDX-License-Identifier: BSD-2-Clause
// A thread that serves, and another that stands by. The one that serves may do what might block, if
// it says so before and after: when it is found blocked the other serves in its place, and a new
// one stands by. Who comes back too late ends, or stands by where nobody does. So a loop that polls
// may make a system call at once, where handing it to a thread on another processor takes longer
// than the call, and is held up by none of them for longer than a look of the other.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

namespace peal::nic {

class Relay {
 public:
  enum class Part : uint8_t { kServes, kStandsBy };
  // Whoever has been away for one to two of these, and is blocked, is relieved.
  static constexpr auto kPatience = std::chrono::milliseconds(1);
  // With those that are away. When all but one are, nobody stands by.
  static constexpr uint32_t kThreads = 32;

  Relay() = default;
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Returns when a call of `serve` has returned true. It is called on one thread at a time, none of
  // them the caller's, which is free to take signals; where it returns false its thread was
  // relieved, and it is called on the other one. `place` is called by each thread before it takes
  // that part. False: some thread is away and has not come back; then this object, `serve` and
  // `place` must stay as long as the process.
  bool run(const std::function<bool()>& serve, const std::function<void(Part)>& place);

  // --- the thread that serves ---
  // Somebody stands by.
  [[nodiscard]] bool may_leave() const { return ready_.load(std::memory_order_relaxed); }
  // What follows, up to back(), may block, and touches nothing that belongs to who serves. Returns
  // what back() wants.
  [[nodiscard]] uint64_t leave();
  // False: the other one serves now. The caller returns from `serve`, and touches nothing besides.
  [[nodiscard]] bool back(uint64_t left);

  // Who stands by looks no more: nobody had left for a while. Any thread.
  [[nodiscard]] bool rests() const { return resting_.load(std::memory_order_relaxed) != 0; }
  // So many times the one was relieved by the other. Any thread.
  [[nodiscard]] uint64_t reliefs() const { return reliefs_.load(std::memory_order_relaxed); }

 private:
  bool start(Part part);
  void live(Part part);
  bool stand_by();
  void rest(uint64_t seen);
  void wake_who_rests();

  const std::function<bool()>* serve_ = nullptr;
  const std::function<void(Part)>* place_ = nullptr;
  // Grows by one when who serves leaves, and when somebody serves again, whichever of the two: odd
  // in between.
  std::atomic<uint64_t> away_{0};
  std::atomic<pid_t> serving_{0};  // the thread's number
  std::atomic<bool> ready_{false};
  std::atomic<bool> over_{false};
  std::atomic<uint32_t> resting_{0};
  std::atomic<uint32_t> living_{0};
  std::atomic<uint64_t> reliefs_{0};
};

}  // namespace peal::nic
