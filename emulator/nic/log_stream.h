// SPDX-License-Identifier: BSD-2-Clause
// A stream for DPDK's log that waits for nobody: what cannot be written at once is dropped and
// counted, and the next line that can be is preceded by how many were lost. A pipe whose reader
// sleeps, or a terminal that was stopped, must not stop the cards.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/file_descriptor.h"

namespace peal::nic {

class LogStream {
 public:
  // Writes to a copy of `fd`. A pipe or a terminal is opened anew, because whether a write waits
  // belongs to what was opened, and that may be shared with other programs.
  explicit LogStream(int fd);
  ~LogStream();
  LogStream(const LogStream&) = delete;
  LogStream& operator=(const LogStream&) = delete;

  // For rte_openlog_stream(); null when there is none. One write for each flush.
  [[nodiscard]] std::FILE* file() const { return file_; }
  // Lines, or parts of a line, that were not written.
  [[nodiscard]] uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  // Serialised by the stream's lock.
  void write(const char* text, size_t bytes);
  bool write_at_once(const char* text, size_t bytes);

  FileDescriptor fd_;
  bool socket_ = false;
  bool never_waits_ = false;  // as it was opened
  std::vector<char> buffer_;
  std::FILE* file_ = nullptr;
  uint64_t unsaid_ = 0;  // of the dropped
  std::atomic<uint64_t> dropped_{0};
};

}  // namespace peal::nic
