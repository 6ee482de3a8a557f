// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/notice_log.h"

#include "emulator/nic/log.h"

namespace peal::nic {

void NoticeLog::write(const std::string& text, uint64_t now_ms) {
  if (now_ms / 1000 != second_) {
    second_ = now_ms / 1000;
    lines_ = 0;
    if (unsaid_ > 0) log(RTE_LOG_NOTICE, std::to_string(unsaid_) + " notices were left out");
    unsaid_ = 0;
  }
  if (lines_ >= kLinesPerSecond) {
    left_out_++;
    unsaid_++;
    return;
  }
  lines_++;
  log(RTE_LOG_NOTICE, text);
}

}  // namespace peal::nic
