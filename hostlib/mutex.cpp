// SPDX-License-Identifier: BSD-2-Clause
// What happens where the lock is not free; see mutex.h.
#include "hostlib/mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace peal::host {

// Whoever has slept cannot know whether others still do, and leaves it wanted.
void Mutex::wait() {
  while (state_.exchange(kWanted, std::memory_order_acquire) != kFree) {
    // Returns at once where it is not wanted any more, and may return for nothing.
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, kWanted, nullptr, nullptr, 0);
  }
}

void Mutex::wake_one() { syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

}  // namespace peal::host
