// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/overlap.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace peal::sim {

namespace {

double average(const std::vector<TimeNs>& times) {
  const TimeNs sum = std::accumulate(times.begin(), times.end(), TimeNs{0});
  return times.empty() ? 0 : static_cast<double>(sum) / static_cast<double>(times.size());
}

void add_group(const OverlapPlan& plan, Scenario* scenario) {
  scenario->cards = plan.cards;
  scenario->groups = {make_group(plan.cards, 1)};
  scenario->groups[0].operations.assign(plan.operations, plan.operation);
}

}  // namespace

double overlap_share(double comm_ns, double work_ns, double both_ns) {
  const double shorter = std::min(comm_ns, work_ns);
  return shorter > 0 ? (comm_ns + work_ns - both_ns) / shorter : 0;
}

std::string overlap_problem(Scenario scenario, const OverlapPlan& plan) {
  add_group(plan, &scenario);
  return scenario.problem();
}

Overlap measure_overlap(Scenario scenario, const OverlapPlan& plan) {
  add_group(plan, &scenario);
  GroupPlan& group = scenario.groups[0];
  Overlap overlap;
  overlap.comm = run(scenario);
  overlap.comm_ns = average(overlap.comm.done_ns);

  group.work_ns =
      plan.work_ns != 0 ? plan.work_ns : static_cast<TimeNs>(std::ceil(overlap.comm_ns));
  group.think_ns = static_cast<TimeNs>(std::ceil(plan.late * overlap.comm_ns));
  overlap.both = run(scenario);
  overlap.work_ns = static_cast<double>(group.work_ns);
  overlap.both_ns = average(overlap.both.done_ns);
  overlap.share = overlap_share(overlap.comm_ns, overlap.work_ns, overlap.both_ns);
  return overlap;
}

}  // namespace peal::sim
