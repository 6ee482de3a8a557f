// SPDX-License-Identifier: BSD-2-Clause
// How much of an operation's time hosts can compute in: they post, compute for a fixed time without
// a look at the operation, and then wait for it. Hosts have processors of their own here, so that
// whatever is missing is the cards' fault. (Hoefler, Lumsdaine: "Message progression in parallel
// computing - to thread or not to thread?", and what IMB calls overlap.)
#pragma once

#include <string>

#include "emulator/cluster/run.h"
#include "emulator/cluster/scenario.h"

namespace peal::sim {

struct OverlapPlan {
  OperationPlan operation;
  uint32_t cards = 8;       // with a rank each
  uint32_t operations = 1;  // one after the other
  TimeNs work_ns = 0;       // of each host for each operation; 0: as long as the operation takes
  // Ranks post up to so many times the operation's time late, each time anew.
  double late = 0;
};

// Times are those of one operation, on the average, from its last post on: nobody can be done
// before the late.
struct Overlap {
  double comm_ns = 0;  // until all have its result; nobody computes, nobody is late
  double work_ns = 0;  // of computing alone
  double both_ns = 0;  // until all have its result and have computed
  double share = 0;    // see overlap_share()
  Report comm;
  Report both;
};

// (comm + work - both) / the shorter one of comm and work; 0 if that takes no time.
[[nodiscard]] double overlap_share(double comm_ns, double work_ns, double both_ns);

// The scenario says everything else: costs, patience, seed; its groups and cards are the plan's.
// Empty when both together make sense, else what is wrong.
[[nodiscard]] std::string overlap_problem(Scenario scenario, const OverlapPlan& plan);
// They must make sense.
[[nodiscard]] Overlap measure_overlap(Scenario scenario, const OverlapPlan& plan);

}  // namespace peal::sim
