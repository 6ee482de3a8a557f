// SPDX-License-Identifier: BSD-2-Clause
// A card's counters as JSON, by the names of abi/counters.h: the same text from peal-nic, its
// telemetry and peal-sim.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace peal::emulator {

// {"sent_data":1,...} of PEAL_COUNTER_COUNT values. Counters that are zero are there too.
nlohmann::ordered_json counters_json(const uint64_t* values);
// The name of counter `index`, or null.
const char* counter_name(uint32_t index);

}  // namespace peal::emulator
