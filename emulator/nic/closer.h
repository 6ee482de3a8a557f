// SPDX-License-Identifier: BSD-2-Clause
// Closes descriptors where nobody waits for it. The last close of a client's socket throws away the
// messages that were never taken, and with them the descriptors they carry; one of those may be a
// socket that lingers, and then close() returns when its sender likes. The kernel does the same
// when it discards what recvmsg() had no room for, so a message with descriptors must stay in its
// queue until the queue itself goes, here.
//
// A close that is stuck costs a thread. Whoever bounds the connections bounds the threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace peal::nic {

class Closer {
 public:
  Closer();
  // Does not wait: what is stuck ends with the process, whose exit lingers for nobody.
  ~Closer();
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;

  // Takes the descriptor over. `closed` runs once it is closed, on a thread of the closer's, and
  // may outlive it. Never blocks.
  void close(int fd, std::function<void()> closed = {});
  // Descriptors taken over and not closed yet.
  [[nodiscard]] size_t pending() const;

 private:
  struct State;
  static void work(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace peal::nic
