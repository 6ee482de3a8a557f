// SPDX-License-Identifier: BSD-2-Clause
// A listening Unix socket under a path. A name that a killed process left is taken over; one that
// somebody listens on is not, even while he has only just bound it: whoever claims a name holds a
// lock on its folder from the first look until he listens.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/file_descriptor.h"

namespace peal::nic {

// What was tried, and what errno says of it.
std::string system_error(const std::string& what);

class UnixListener {
 public:
  UnixListener() = default;
  ~UnixListener() { close(); }
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  // `type` is SOCK_SEQPACKET or SOCK_STREAM, `mode` who may connect. The socket does not block.
  // Empty, or what was wrong and what to do.
  std::string listen(const std::string& path, int type, mode_t mode);
  // Takes the name away, if it is still ours. Connections go on arriving until close().
  void remove_name();
  // Also removes the name.
  void close();
  // Gives the descriptor up, for somebody else to close; the name is removed.
  int release();
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  std::string claim(int type, mode_t mode);

  std::string path_;
  FileDescriptor fd_;
  bool named_ = false;
  dev_t device_ = 0;  // what the name means while it is ours
  ino_t inode_ = 0;
};

}  // namespace peal::nic
