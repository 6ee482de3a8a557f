// SPDX-License-Identifier: BSD-2-Clause
// Does what may block for ever where nobody waits for it.
//
// Work that is stuck costs a thread. Whoever bounds the work bounds the threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace peal::nic {

class DetachedWork {
 public:
  // A thread that does this and ends; throws std::system_error where none is to be had.
  using StartThread = std::function<void(std::function<void()>)>;

  explicit DetachedWork(StartThread start_thread = start_detached);
  // Does not wait: what is stuck ends with the process.
  ~DetachedWork();
  DetachedWork(const DetachedWork&) = delete;
  DetachedWork& operator=(const DetachedWork&) = delete;

  // Done, and then destroyed, on a thread of its own, which may outlive us. Never blocks.
  void add(std::function<void()> work);
  // A thread for work that none was to be had for. To be called now and then.
  void retry();
  // Ends the system calls that work is in, where a signal can.
  void interrupt();
  // Added, and not done yet.
  [[nodiscard]] size_t pending() const;

 private:
  struct State;
  static void start_detached(std::function<void()> body);
  static void work(const std::shared_ptr<State>& state);
  void start_for_items();

  StartThread start_thread_;
  std::shared_ptr<State> state_;
};

}  // namespace peal::nic
