// SPDX-License-Identifier: BSD-2-Clause
// The eight things that must always hold (the design's list), each as a run that would show it
// broken. The same runs serve the real firmware, where they must pass, and its mutants, where the
// named check must fail.
#pragma once

#include <array>

#include "emulator/cluster/run.h"

namespace peal::sim {

struct Invariant {
  int number;  // in the design, and of the mutation
  const char* name;
  const char* check;  // that finds it broken
  Report (*run)();
};

[[nodiscard]] const std::array<Invariant, 8>& invariants();

}  // namespace peal::sim
