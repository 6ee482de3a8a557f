// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/log_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <string>

namespace peal::nic {
namespace {

// More than a line that can be written at once.
constexpr size_t kBufferBytes = 2 * PIPE_BUF;

int open_anew(int fd) {
  const std::string name = "/proc/self/fd/" + std::to_string(fd);
  return open(name.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

}  // namespace

LogStream::LogStream(int fd) : buffer_(kBufferBytes) {
  struct stat status = {};
  if (fstat(fd, &status) != 0) return;
  socket_ = S_ISSOCK(status.st_mode);
  // A file opened anew would be written from its beginning; and a file never waits for a reader.
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) fd_.reset(open_anew(fd));
  never_waits_ = fd_.valid();
  if (!never_waits_) fd_.reset(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!fd_.valid()) return;
  cookie_io_functions_t functions = {};
  functions.write = [](void* cookie, const char* text, size_t bytes) -> ssize_t {
    static_cast<LogStream*>(cookie)->write(text, bytes);
    return static_cast<ssize_t>(bytes);  // the stream must not fail
  };
  file_ = fopencookie(this, "w", functions);
  if (file_ != nullptr) setvbuf(file_, buffer_.data(), _IOFBF, buffer_.size());
}

LogStream::~LogStream() {
  if (file_ != nullptr) std::fclose(file_);
}

void LogStream::write(const char* text, size_t bytes) {
  if (unsaid_ > 0) {
    const std::string lost =
        "peal-nic: " + std::to_string(unsaid_) + " lines were lost here, which nobody read\n";
    if (write_at_once(lost.data(), lost.size())) unsaid_ = 0;
  }
  if (unsaid_ == 0 && write_at_once(text, bytes)) return;
  unsaid_++;
  dropped_.fetch_add(1, std::memory_order_relaxed);
}

bool LogStream::write_at_once(const char* text, size_t bytes) {
  if (socket_) return send(fd_.get(), text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
  // A pipe that is ready takes PIPE_BUF bytes.
  pollfd ready = {fd_.get(), POLLOUT, 0};
  if (!never_waits_ && (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0)) return false;
  return ::write(fd_.get(), text, bytes) > 0;
}

}  // namespace peal::nic
