// SPDX-License-Identifier: BSD-2-Clause
// The measuring loop, the same for every side.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tools/peal-perf/report.h"
#include "tools/peal-perf/side.h"

namespace peal::perf {

// What is measured.
struct Work {
  peal_operation operation = PEAL_OPERATION_NONE;
  uint64_t block_bytes = 0;
  std::optional<uint32_t> root;  // of broadcasts
  ideal::Spread spread = ideal::Spread::kEven;

  [[nodiscard]] uint32_t root_of(const Job& job, uint64_t iteration) const {
    return root ? *root : static_cast<uint32_t>(iteration % job.size);
  }
  [[nodiscard]] Call call(const Job& job, uint64_t iteration) const {
    return {operation, block_bytes, root_of(job, iteration), spread};
  }
};

struct Round {
  // Per iteration: max(end) - min(start) over the ranks; of a broadcast, - start of the root, since
  // nobody waits for the others there.
  std::vector<double> latency_us;
  std::vector<double> period_us;  // from one end to the next, on rank 0
  bool verified = true;
};

// Runs `warmup` and then `iterations` operations on `side`. Collective. `first_iteration` keeps
// data of different rounds apart.
Round measure_round(const Job& job, Side& side, const Work& work, uint32_t warmup,
                    uint32_t iterations, uint64_t first_iteration);

// CLOCK_MONOTONIC.
uint64_t now_ns();
// Whether it is, on every rank.
bool all_good(const Job& job, bool good);

// Of nothing all three are 0.
double median(std::vector<double> values);
double mean(std::span<const double> values);
// So many per cent are not above it.
double percentile(std::vector<double> values, uint32_t percent);
Spread spread(std::vector<double> values);

}  // namespace peal::perf
