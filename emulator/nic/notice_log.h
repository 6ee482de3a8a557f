// SPDX-License-Identifier: BSD-2-Clause
// Lines for whoever runs the cards: which client was refused or ended, and why. A client can cause
// them, so there are few a second, and nothing waits for a reader of standard error. One thread.
#pragma once

#include <cstdint>
#include <string>

namespace peal::nic {

class NoticeLog {
 public:
  // To `fd`, with "peal-nic: " in front; dropped when it would block or there were many.
  explicit NoticeLog(int fd) : fd_(fd) {}
  void write(const std::string& text, uint64_t now_ms);
  [[nodiscard]] uint64_t dropped() const { return dropped_; }

  static constexpr uint32_t kLinesPerSecond = 20;

 private:
  int fd_;
  uint64_t second_ = 0;
  uint32_t lines_ = 0;  // in this second
  uint64_t dropped_ = 0;
};

}  // namespace peal::nic
