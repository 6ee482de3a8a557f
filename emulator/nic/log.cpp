// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/log.h"

#include <climits>

RTE_LOG_REGISTER(peal_log_type, peal, NOTICE)

namespace peal::nic {

void log(uint32_t level, const std::string& text) {
  const std::string line = ("peal-nic: " + text).substr(0, PIPE_BUF - 1);
  rte_log(level, static_cast<uint32_t>(peal_log_type), "%s\n", line.c_str());
}

}  // namespace peal::nic
