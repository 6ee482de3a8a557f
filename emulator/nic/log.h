// SPDX-License-Identifier: BSD-2-Clause
// What peal-nic says of itself, to whoever runs it: through DPDK's log, as type "peal". Before EAL
// has started too. From any thread.
#pragma once

#include <rte_log.h>

#include <cstdint>
#include <string>

namespace peal::nic {

// One line, with "peal-nic: " in front; the level is RTE_LOG_*. A line that is too long for a pipe
// to take at once loses its end.
void log(uint32_t level, const std::string& text);

}  // namespace peal::nic
