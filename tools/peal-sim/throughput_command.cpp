// SPDX-License-Identifier: BSD-2-Clause
// `peal-sim throughput`: how many packets per second of a core's time the simulator delivers. A
// packet counts when one card's firmware sent it and another's received it. With the checkers, and
// without.
#include <cstdio>
#include <memory>
#include <utility>

#include "emulator/cluster/arithmetic.h"
#include "emulator/cluster/run.h"
#include "tools/peal-sim/commands.h"
#include "tools/peal-sim/report_json.h"
#include "tools/peal-sim/run_cost.h"

namespace peal::sim {

namespace {

struct ThroughputArguments {
  uint32_t cards = 64;
  uint32_t operations = 0;
  std::string json;
};

struct Workload {
  const char* name;
  OperationPlan operation;
  uint32_t operations;
};

constexpr Workload kWorkloads[] = {
    {"barrier", {PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION, false, 0}, 4000},
    {"allgather 64 B, all-to-all-broadcast",
     {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, false, 64},
     300},
    {"allgather 64 B, recursive-doubling",
     {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RECURSIVE_DOUBLING, false, 64},
     1500},
};

Scenario scenario_of(const ThroughputArguments& arguments, const Workload& workload, bool check,
                     bool sums) {
  Scenario scenario;
  scenario.name = workload.name;
  scenario.cards = arguments.cards;
  scenario.check = check;
  scenario.checksums = sums ? ChecksumChoice::kSoftware : ChecksumChoice::kSkipped;
  GroupPlan group = make_group(arguments.cards, 1);
  group.operations.assign(arguments.operations > 0 ? arguments.operations : workload.operations,
                          workload.operation);
  group.depth = 4;
  scenario.groups.push_back(std::move(group));
  return scenario;
}

void require_sense(const ThroughputArguments& arguments) {
  for (const Workload& workload : kWorkloads) {
    const std::string problem = scenario_of(arguments, workload, true, true).problem();
    if (!problem.empty()) throw UsageError(problem);
    if (!may_run(workload.operation.operation, workload.operation.algorithm, arguments.cards))
      throw UsageError("--cards " + std::to_string(arguments.cards) + ": " +
                       operation_text(workload.operation) +
                       " needs the addresses of all; a card of this profile remembers " +
                       std::to_string(remembered_addresses()));
  }
}

int measure(const ThroughputArguments& arguments) {
  require_sense(arguments);
  const bool prints = arguments.json != "-";
  nlohmann::json records = nlohmann::json::array();
  uint64_t failed = 0;
  uint64_t stuck = 0;
  const auto measure_one = [&](const Workload& workload, bool check, bool sums) {
    const Scenario scenario = scenario_of(arguments, workload, check, sums);
    const RunCost cost;
    const Report report = run(scenario);
    const double seconds = cost.processor_seconds();
    const double rate = static_cast<double>(report.cluster.received) / seconds;
    failed += report.ok ? 0 : 1;
    stuck += report.only_stuck() ? 1 : 0;
    const char* const checksums = sums ? "software" : "skipped";
    if (prints)
      std::printf("%-40s %-8s %-9s %12llu %14.0f%s\n", workload.name, check ? "on" : "off",
                  checksums, static_cast<unsigned long long>(report.cluster.received), rate,
                  report.ok ? "" : "  FAILED");
    for (const std::string& line : report.lines)
      std::fprintf(prints ? stdout : stderr, "  %s\n", line.c_str());
    std::fflush(stdout);
    records.push_back({{"operation", workload.name},
                       {"cards", arguments.cards},
                       {"checkers", check},
                       {"checksums", checksums},
                       {"packets", report.cluster.received},
                       {"seconds", seconds},
                       {"packets_per_second", rate},
                       {"ok", report.ok}});
  };
  if (prints)
    std::printf("%-40s %-8s %-9s %12s %14s\n", "operation", "checkers", "checksums", "packets",
                "packets/s");
  for (const Workload& workload : kWorkloads)
    for (const bool check : {true, false})
      for (const bool sums : {true, false}) measure_one(workload, check, sums);
  if (!arguments.json.empty()) write_json(arguments.json, records);
  return exit_status(failed, stuck);
}

}  // namespace

Command add_throughput_command(command_line::App& app) {
  auto arguments = std::make_shared<ThroughputArguments>();
  command_line::Group group(app);
  group.add("--cards", arguments->cards, "N", "Simulates so many cards.")
      .check(command_line::whole(2, 1024))
      .show_default();
  group
      .add("--operations", arguments->operations, "N",
           "Runs so many operations of each kind; 0: some seconds' worth.")
      .check(command_line::whole(0, 10'000'000))
      .show_default();
  group.add("--json", arguments->json, "FILE",
            "Writes the figures to this file (-: standard output). Default: none.");
  return [arguments] { return measure(*arguments); };
}

}  // namespace peal::sim
