// SPDX-License-Identifier: BSD-2-Clause
// The measuring loop, the same for every side.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/peal-perf/side.h"

namespace peal::perf {

struct Round {
  std::vector<double> latency_us;  // per iteration: max(end) - min(start) over the ranks
  std::vector<double> period_us;   // from one end to the next, on rank 0
  bool verified = true;
};

// Runs `warmup` and then `iterations` operations on `side`. Collective. `first_iteration` keeps
// data of different rounds apart.
Round measure_round(const Job& job, Side& side, Operation operation, uint64_t block_bytes,
                    uint32_t warmup, uint32_t iterations, uint64_t first_iteration);

double median(std::vector<double> values);

}  // namespace peal::perf
