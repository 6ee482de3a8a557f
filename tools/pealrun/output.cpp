// SPDX-License-Identifier: BSD-2-Clause
#include "tools/pealrun/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace peal::run {

// What cannot be opened again takes a small piece without waiting where poll(2) says so, if it is a
// pipe. A file never waits for a reader.
void Output::open() {
  struct stat it = {};
  const bool known = fstat(STDOUT_FILENO, &it) == 0;
  is_socket_ = known && S_ISSOCK(it.st_mode);
  if (known && (S_ISFIFO(it.st_mode) || isatty(STDOUT_FILENO) == 1))
    own_.reset(::open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  const bool whole = own_.valid() || is_socket_ || (known && S_ISREG(it.st_mode));
  piece_bytes_ = whole ? SIZE_MAX : PIPE_BUF;
}

void Output::add_line(uint32_t rank, std::string_view line) {
  if (gave_up_) return;
  text_.append("[").append(std::to_string(rank)).append("] ").append(line).append("\n");
}

void Output::write_some() {
  while (left() != 0) {
    pollfd wait = {descriptor(), POLLOUT, 0};
    if (poll(&wait, 1, 0) == 0) break;
    const size_t bytes = std::min(left(), piece_bytes_);
    const char* const data = text_.data() + sent_;
    const ssize_t taken = is_socket_ ? send(descriptor(), data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL)
                                     : write(descriptor(), data, bytes);
    if (taken > 0) {
      sent_ += static_cast<size_t>(taken);
    } else if (taken < 0 && errno == EAGAIN) {
      break;
    } else if (taken == 0 || errno != EINTR) {
      give_up();
    }
  }
  if (left() != 0 && sent_ < kFullBytes) return;
  text_.erase(0, sent_);
  sent_ = 0;
}

void Output::give_up() {
  gave_up_ = true;
  text_.clear();
  sent_ = 0;
}

}  // namespace peal::run
