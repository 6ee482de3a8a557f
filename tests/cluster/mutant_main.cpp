// SPDX-License-Identifier: BSD-2-Clause
// peal-mutant N: the firmware has deliberate fault N. Succeeds when the invariant's run finds it,
// by its own check.
#include <cstdio>
#include <cstdlib>

#include "firmware/base/mutation.h"
#include "tests/cluster/invariants.h"

peal::Mutation peal::present_mutation = peal::Mutation::kNone;

int main(int argc, char** argv) {
  const size_t number = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (number == 0 || number > peal::sim::invariants().size()) {
    std::fprintf(stderr, "usage: peal-mutant N, 1 to %zu\n", peal::sim::invariants().size());
    return 2;
  }
  peal::present_mutation = static_cast<peal::Mutation>(number);
  const peal::sim::Invariant& invariant = peal::sim::invariants()[number - 1];
  const peal::sim::Report report = invariant.run();
  const bool found = report.findings.contains(invariant.check);
  std::printf("mutation %d, %s: %s by '%s' (failed: %s)\n", invariant.number, invariant.name,
              found ? "found" : "NOT FOUND", invariant.check,
              report.ok ? "nothing" : report.failed_checks().c_str());
  for (const std::string& line : report.lines) std::printf("  %s\n", line.c_str());
  return found ? 0 : 1;
}
