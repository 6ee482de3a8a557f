// SPDX-License-Identifier: BSD-2-Clause
// Linked with a firmware that has one deliberate fault: succeeds when the invariant's run finds it,
// by its own check.
#include <cstdio>

#include "tests/cluster/invariants.h"

int main() {
  const peal::sim::Invariant& invariant = peal::sim::invariants()[MUTATION - 1];
  const peal::sim::Report report = invariant.run();
  const bool found = report.findings.contains(invariant.check);
  std::printf("mutation %d, %s: %s by '%s' (failed: %s)\n", invariant.number, invariant.name,
              found ? "found" : "NOT FOUND", invariant.check,
              report.ok ? "nothing" : report.failed_checks().c_str());
  for (const std::string& line : report.lines) std::printf("  %s\n", line.c_str());
  return found ? 0 : 1;
}
