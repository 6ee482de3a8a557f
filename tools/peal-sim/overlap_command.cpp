// SPDX-License-Identifier: BSD-2-Clause
// `peal-sim overlap`: how much of an operation's time hosts can compute in.
#include "emulator/cluster/overlap.h"

#include <cmath>
#include <cstdio>
#include <memory>

#include "tools/peal-sim/commands.h"
#include "tools/peal-sim/operation_options.h"
#include "tools/peal-sim/report_json.h"

namespace peal::sim {

namespace {

struct OverlapArguments {
  OperationOptions operation;
  uint32_t cards = 8;
  uint32_t operations = 20;
  double work_us = 0;
  double late = 0;
  uint64_t seed = 1;
  std::string model;
  std::string json;
};

int overlap(const OverlapArguments& arguments) {
  Scenario scenario;
  scenario.name = "overlap";
  scenario.seed = arguments.seed;
  if (!arguments.model.empty()) {
    const std::string problem = load_cost_model(arguments.model, &scenario.costs);
    if (!problem.empty()) throw UsageError("--model: " + problem);
  }
  if (arguments.operation.random_root())
    throw UsageError("--root random: the times of one root are measured, so name it");
  OverlapPlan plan;
  plan.operation = arguments.operation.plan(arguments.cards);
  plan.cards = arguments.cards;
  plan.operations = arguments.operations;
  plan.work_ns = std::llround(arguments.work_us * 1000);
  plan.late = arguments.late;
  if (const std::string problem = overlap_problem(scenario, plan); !problem.empty())
    throw UsageError(problem);
  const Overlap found = measure_overlap(scenario, plan);
  if (arguments.json != "-")
    std::printf(
        "%s, %u cards, late by up to %.2f T_comm: T_comm %.3f us, T_work %.3f us, T_both "
        "%.3f us, overlap %.2f %%\n",
        operation_text(plan.operation).c_str(), plan.cards, plan.late, found.comm_ns / 1000,
        found.work_ns / 1000, found.both_ns / 1000, 100 * found.share);
  if (!arguments.json.empty())
    write_json(arguments.json, {{"what", operation_text(plan.operation)},
                                {"cards", plan.cards},
                                {"late", plan.late},
                                {"comm_us", found.comm_ns / 1000},
                                {"work_us", found.work_ns / 1000},
                                {"both_us", found.both_ns / 1000},
                                {"overlap", found.share},
                                {"ok", found.comm.ok && found.both.ok}});
  for (const Report* report : {&found.comm, &found.both})
    for (const std::string& line : report->lines)
      std::fprintf(stderr, "peal-sim: %s\n", line.c_str());
  return exit_status({&found.comm, &found.both});
}

using command_line::Group;
using command_line::number;
using command_line::whole;

}  // namespace

Command add_overlap_command(command_line::App& app) {
  auto arguments = std::make_shared<OverlapArguments>();
  OverlapArguments& a = *arguments;
  Group group(app);
  a.operation.add_to(group);
  group.add("--cards", a.cards, "N", "Simulates so many cards, with a rank each.")
      .check(whole(1, 1024))
      .show_default();
  group.add("--operations", a.operations, "N", "Posts so many operations, one after the other.")
      .check(whole(1, 1'000'000))
      .show_default();
  group
      .add("--work-us", a.work_us, "US",
           "Computes for so many microseconds after each post; 0: as long as the operation takes.")
      .check(number(0, 1e9))
      .show_default();
  group
      .add("--late", a.late, "FRACTION",
           "Posts late, by up to so many times what the operation takes, each rank and time anew.")
      .check(number(0, 1000))
      .show_default();
  group.add("--seed", a.seed, "S", "Decides how late a rank is.")
      .check(whole(0, UINT64_MAX))
      .show_default();
  group.add("--model", a.model, "FILE",
            "Takes the costs in virtual time from this file; see tools/peal-sim/models. Default: "
            "those of a 100 Gbit/s card.");
  group.add("--json", a.json, "FILE",
            "Writes the figures to this file (-: standard output). Default: none.");
  return [arguments] { return overlap(*arguments); };
}

}  // namespace peal::sim
