// SPDX-License-Identifier: BSD-2-Clause
// Scenarios from seeds: clusters of 1 to 40 cards, several members per card, overlapping groups,
// mixed operations, skew, faults and accidents. The seed is all one needs to run the same again.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/cluster/scenario.h"

namespace peal::sim {

struct RandomLimits {
  uint32_t cards = 40;         // most cards
  uint64_t packets = 200'000;  // roughly, so that a run stays short
  uint64_t memory_bytes = 128 << 20;
  bool accidents = true;
  bool faults = true;
};

[[nodiscard]] Scenario random_scenario(uint64_t seed, const RandomLimits& limits);
// One line: how many cards, groups, ranks and operations, and what goes wrong.
[[nodiscard]] std::string describe(const Scenario& scenario);

}  // namespace peal::sim
