// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/notice_log.h"

#include <poll.h>
#include <unistd.h>

#include <climits>

namespace peal::nic {

void NoticeLog::write(const std::string& text, uint64_t now_ms) {
  if (now_ms / 1000 != second_) {
    second_ = now_ms / 1000;
    lines_ = 0;
  }
  // A pipe that is ready takes this many bytes at once.
  const std::string line = ("peal-nic: " + text).substr(0, PIPE_BUF - 1) + "\n";
  pollfd ready = {fd_, POLLOUT, 0};
  if (lines_ >= kLinesPerSecond || poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) {
    dropped_++;
    return;
  }
  lines_++;
  [[maybe_unused]] const ssize_t written = ::write(fd_, line.data(), line.size());
}

}  // namespace peal::nic
