// SPDX-License-Identifier: BSD-2-Clause
// Random runs of what is no scenario of collectives (emulator/cluster/scenario_random.h): messages
// among collectives, and programs. A kind and a seed say everything.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/cluster/observer.h"

namespace peal::sim {

enum class RandomKind : uint8_t { kCollectives, kMessages, kPrograms };

struct RandomRun {
  std::string description;  // one line
  std::string problems;     // "" when all is well
  bool only_stuck = false;  // something never ended, and nothing else was wrong
  uint64_t packets = 0;     // sent
  uint64_t lost = 0;
  uint64_t trace_hash = 0;
};

// Of messages or programs. The observer may be null.
[[nodiscard]] RandomRun run_random(RandomKind kind, uint64_t seed, Observer* observer = nullptr);
// The same twice, the second time unobserved; that both are alike is looked at, too.
[[nodiscard]] RandomRun run_random_twice(RandomKind kind, uint64_t seed,
                                         Observer* observer = nullptr);

}  // namespace peal::sim
