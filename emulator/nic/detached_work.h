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
  DetachedWork();
  // Does not wait: what is stuck ends with the process.
  ~DetachedWork();
  DetachedWork(const DetachedWork&) = delete;
  DetachedWork& operator=(const DetachedWork&) = delete;

  // Done, and then destroyed, on a thread of its own, which may outlive us. Never blocks.
  void add(std::function<void()> work);
  // Added, and not done yet.
  [[nodiscard]] size_t pending() const;

 private:
  struct State;
  static void work(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace peal::nic
