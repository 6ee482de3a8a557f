// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/random_surroundings.h"

#include "emulator/common/random.h"

namespace peal::sim {

ClusterOptions random_surroundings(uint64_t seed, uint32_t cards) {
  ClusterOptions options;
  options.cards = cards;
  options.seed = seed;
  emulator::Random random(seed ^ 0x6d657373);
  if (random.below(4) != 0) {
    const double much = random.below(5) == 0 ? 0.25 : 0.04;
    options.faults.loss = much;
    options.faults.duplicate = random.below(2) == 0 ? much : 0;
    options.faults.reorder = random.below(2) == 0 ? 2 * much : 0;
    options.faults.delay = random.below(4) == 0 ? much : 0;
    options.faults.corrupt = random.below(2) == 0 ? much / 2 : 0;
  }
  options.costs.dma_jitter_ns = random.below(3) == 0 ? 2000 : 0;
  if (random.below(6) == 0) options.dma_per_card = 4;
  return options;
}

}  // namespace peal::sim
