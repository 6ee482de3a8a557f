// SPDX-License-Identifier: BSD-2-Clause
// Prints the memory budget of the configured card; fails when it does not fit. Run by the build.
#include <cinttypes>
#include <cstdio>

#include "firmware/budget/memory_budget.h"

int main() {
  std::printf("card memory budget\n");
  for (const peal::MemoryTerm& term : peal::kMemoryTerms) {
    std::printf("  %-42s %8" PRIu64 " x %8" PRIu64 " = %12" PRIu64 "\n", term.name, term.count,
                term.bytes_each, term.count * term.bytes_each);
  }
  const uint64_t limit = CONFIG_CARD_MEMORY_BYTES;
  std::printf("  %-42s %34" PRIu64 "\n", "total, bytes", peal::memory_total());
  if (limit != 0) std::printf("  %-42s %34" PRIu64 "\n", "card, bytes", limit);
  if (peal::memory_fits()) return 0;
  std::fprintf(
      stderr,
      "the card's memory does not hold this configuration: %" PRIu64
      " bytes too many; lower a term above or raise CARD_MEMORY_BYTES (./peal menuconfig)\n",
      peal::memory_total() - limit);
  return 1;
}
