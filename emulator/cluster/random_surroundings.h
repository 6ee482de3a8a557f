// SPDX-License-Identifier: BSD-2-Clause
// The surroundings of a random run of messages or programs: a wire that loses, repeats, reorders,
// delays and spoils, an engine that is slow or takes little. The seed says all of it.
#pragma once

#include <cstdint>

#include "emulator/cluster/cluster.h"

namespace peal::sim {

[[nodiscard]] ClusterOptions random_surroundings(uint64_t seed, uint32_t cards);

}  // namespace peal::sim
