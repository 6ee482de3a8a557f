// SPDX-License-Identifier: BSD-2-Clause
// Notices of what clients cause: which was refused or ended, and why. So there are few a second;
// how many were left out is said with the first of a later second. One thread.
#pragma once

#include <cstdint>
#include <string>

namespace peal::nic {

class NoticeLog {
 public:
  // One line of the log (log.h), at RTE_LOG_NOTICE.
  void write(const std::string& text, uint64_t now_ms);
  [[nodiscard]] uint64_t left_out() const { return left_out_; }

  static constexpr uint32_t kLinesPerSecond = 20;

 private:
  uint64_t second_ = 0;
  uint32_t lines_ = 0;  // in this second
  uint64_t left_out_ = 0;
  uint64_t unsaid_ = 0;  // of those
};

}  // namespace peal::nic
