// SPDX-License-Identifier: BSD-2-Clause
// DPDK telemetry: /peal/cards, /peal/counters,CARD and /peal/wire, for dpdk-telemetry.py and any
// monitoring that speaks to it.
#pragma once

#include <string>

#include "emulator/nic/nic_loops.h"

namespace peal::nic {

// The loops must outlive DPDK's telemetry thread, or be withdrawn first. Empty on success.
std::string offer_telemetry(const NicLoops& loops);
void withdraw_telemetry();

}  // namespace peal::nic
