// SPDX-License-Identifier: BSD-2-Clause
// Names come from the X macro of abi/counters.h, so that a new counter appears by itself.
#include "emulator/common/counters_json.h"

#include <nlohmann/json.hpp>

#include "abi/counters.h"

namespace peal::emulator {
namespace {

constexpr const char* kNames[] = {
#define PEAL_COUNTER_NAME(symbol, name, text) name,
    PEAL_COUNTERS(PEAL_COUNTER_NAME)
#undef PEAL_COUNTER_NAME
};
static_assert(sizeof(kNames) / sizeof(kNames[0]) == PEAL_COUNTER_COUNT);

}  // namespace

const char* counter_name(uint32_t index) {
  return index < PEAL_COUNTER_COUNT ? kNames[index] : nullptr;
}

nlohmann::ordered_json counters_json(const uint64_t* values) {
  nlohmann::ordered_json counters;
  for (uint32_t i = 0; i < PEAL_COUNTER_COUNT; i++) counters[kNames[i]] = values[i];
  return counters;
}

}  // namespace peal::emulator
