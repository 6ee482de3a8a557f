// SPDX-License-Identifier: BSD-2-Clause
// How much of an operation's time ranks can compute in, as peal-sim overlap measures it of hosts
// that have processors of their own. Here ranks share them, so that what is hidden is what the
// cards do, and what waiting takes from ranks that still compute shows.
#pragma once

#include <cstdint>

#include "tools/peal-perf/measure.h"
#include "tools/peal-perf/side.h"

namespace peal::perf {

struct OverlapPlan {
  Work work;
  double work_us = 0;            // processor time of each rank for each operation; 0: T_comm
  uint32_t tests = 0;            // looks at the operation during the work, evenly spread
  uint32_t warmup = 0;           // operations before each part, unmeasured
  uint32_t operations = 1;       // of each part
  double turns_per_us = 1;       // measure_turns_per_us()
  uint64_t first_iteration = 0;  // keeps data of different rounds apart

  // Iterations that a round takes.
  [[nodiscard]] uint64_t iterations() const { return uint64_t{3} * (warmup + operations); }
};

// Times are those of one operation, on the average: from the first rank's first start to the last
// rank's last end.
struct OverlapRound {
  double comm_us = 0;  // blocking, nobody computes
  double work_us = 0;  // the work alone, of all ranks
  double both_us = 0;  // begun, worked, waited for
  double cpu_us = 0;   // processor time that the work takes a rank
  // Processor time inside the library: to begin an operation; to look at it, wait for it and free
  // it, where its result is there before (kNoFigure: of no operation was it). Medians.
  double start_cpu_us = 0;
  double done_cpu_us = 0;
  double done_before = 0;  // share of operations whose result was there when the work ended
  bool verified = true;

  [[nodiscard]] double ratio() const { return both_us / (comm_us + work_us); }
  [[nodiscard]] double overlap() const {
    return (comm_us + work_us - both_us) / (comm_us < work_us ? comm_us : work_us);
  }
};

// Collective.
OverlapRound measure_overlap(const Job& job, Side& side, const OverlapPlan& plan);

}  // namespace peal::perf
