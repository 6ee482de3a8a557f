// SPDX-License-Identifier: BSD-2-Clause
// Closes descriptors where nobody waits for it. The last close of a client's socket throws away the
// messages that were never taken, and with them the descriptors they carry; one of those may be a
// socket that lingers, and then close() returns when its sender likes. The kernel does the same
// when it discards what recvmsg() had no room for, so a message with descriptors must stay in its
// queue until the queue itself goes, here.
//
// A close that is stuck costs a thread (detached_work.h). One that lingers ends when it is hurried;
// the others (a file whose server never takes what was written) end with the process. Whoever
// bounds the connections bounds the threads.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "emulator/nic/detached_work.h"

namespace peal::nic {

class Closer {
 public:
  // Takes the descriptor over. `closed` runs once it is closed, on a thread of the closer's, and
  // may outlive it. Never blocks.
  void close(int fd, std::function<void()> closed = {}) {
    work_.add([fd, closed = std::move(closed)] {
      ::close(fd);
      if (closed) closed();
    });
  }
  // Nothing lingers any longer. To be called now and then while something is pending.
  void hurry() {
    work_.retry();
    work_.interrupt();
  }
  // Descriptors taken over and not closed yet.
  [[nodiscard]] size_t pending() const { return work_.pending(); }

 private:
  DetachedWork work_;
};

}  // namespace peal::nic
