// SPDX-License-Identifier: BSD-2-Clause
// `peal-sim soak`: random scenarios, seed after seed, for some minutes; a failure prints the
// command that shows it again. `peal-sim replay`: that command.
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <random>

#include "emulator/cluster/corners.h"
#include "emulator/cluster/run.h"
#include "emulator/cluster/scenario_random.h"
#include "tools/peal-sim/commands.h"
#include "tools/peal-sim/progress.h"
#include "tools/peal-sim/report_json.h"
#include "tools/peal-sim/trace_file.h"

namespace peal::sim {

namespace {

struct SoakArguments {
  double minutes = 1;
  uint64_t seed = 0;
  uint64_t runs = 0;
  uint32_t cards = RandomLimits{}.cards;
  uint64_t packets = RandomLimits{}.packets;
  bool corners = false;
  bool keep_going = false;
  std::string json;
  std::string trace;
};

std::string replay_command(const SoakArguments& arguments, uint64_t seed) {
  std::string text = program_name() + " replay --seed " + std::to_string(seed);
  if (arguments.cards != RandomLimits{}.cards)
    text += " --cards " + std::to_string(arguments.cards);
  if (arguments.packets != RandomLimits{}.packets)
    text += " --packets " + std::to_string(arguments.packets);
  return text;
}

RandomLimits limits_of(const SoakArguments& arguments) {
  RandomLimits limits;
  limits.cards = arguments.cards;
  limits.packets = arguments.packets;
  return limits;
}

uint64_t new_seed() {
  std::random_device device;
  return uint64_t{device()} << 8;  // short enough to type, and room for those that follow
}

// Prints what was reached; the number of corners that were not, when all must be.
uint64_t check_corners(const SoakArguments& arguments, const Corners& corners) {
  std::fputs(corners.table().c_str(), stdout);
  if (!arguments.corners) return 0;
  const std::vector<std::string> missing = corners.missing();
  for (const std::string& name : missing) std::printf("no scenario reached: %s\n", name.c_str());
  return missing.size();
}

int soak(const SoakArguments& arguments) {
  const RandomLimits limits = limits_of(arguments);
  const uint64_t first = arguments.seed == 0 ? new_seed() : arguments.seed;
  std::printf("%s: seeds from %" PRIu64 "\n", program_name().c_str(), first);
  Corners corners;
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  uint64_t done = 0;
  uint64_t failed = 0;
  uint64_t stuck = 0;
  uint64_t packets = 0;
  double told_at = 0;
  double effort = 0;
  uint64_t effort_seed = 0;
  for (uint64_t seed = first; elapsed() < arguments.minutes * 60; seed++) {
    if (arguments.runs > 0 && done == arguments.runs) break;
    const Scenario scenario = random_scenario(seed, limits);
    // Every tenth one twice: its traces must be equal.
    const Report report = seed % 10 == 0 ? run_twice(scenario) : run(scenario);
    done++;
    corners.add(scenario, report);
    if (only_bad_wire(scenario) && report.needed > 500 && report.effort() > effort) {
      effort = report.effort();
      effort_seed = seed;
    }
    packets += report.cluster.sent;
    if (!report.ok) {
      failed++;
      if (report.only_stuck()) stuck++;
      std::printf("seed %" PRIu64 ": %s\n%sagain: %s\n", seed, describe(scenario).c_str(),
                  report_text(report).c_str(), replay_command(arguments, seed).c_str());
      std::fflush(stdout);
      if (!arguments.keep_going) break;
    }
    if (elapsed() - told_at >= 10) {
      told_at = elapsed();
      std::printf("%.0f s: %" PRIu64 " scenarios to seed %" PRIu64 ", %" PRIu64 " packets, %" PRIu64
                  " failed\n",
                  told_at, done, seed, packets, failed);
      std::fflush(stdout);
    }
  }
  std::printf("%" PRIu64 " scenarios, %" PRIu64 " packets, %" PRIu64 " failed\n", done, packets,
              failed);
  std::printf(
      "most packets per packet needed, on a wire that is bad and no more: %.2f (seed %" PRIu64
      ")\n",
      effort, effort_seed);
  const uint64_t missed = check_corners(arguments, corners);
  return missed > 0 ? kExitWrong : exit_status(failed, stuck);
}

int replay(const SoakArguments& arguments) {
  const Scenario scenario = random_scenario(arguments.seed, limits_of(arguments));
  std::printf("%s\n", describe(scenario).c_str());
  std::unique_ptr<TraceFile> trace;
  if (!arguments.trace.empty()) trace = std::make_unique<TraceFile>(arguments.trace);
  Progress progress("replay", false);
  RunOptions options;
  options.observer = trace.get();
  options.progress = progress.callback();
  const Report report =
      arguments.seed % 10 == 0 && !trace ? run_twice(scenario) : run(scenario, options);
  progress.clear();
  if (trace) trace->close();
  std::fputs(report_text(report).c_str(), stdout);
  if (!arguments.json.empty()) write_json(arguments.json, report_json(scenario, report));
  return exit_status(report.ok ? 0 : 1, report.only_stuck() ? 1 : 0);
}

using command_line::Group;
using command_line::whole;

// How large a scenario may become; a seed means another scenario where these differ.
void add_limits(Group& group, SoakArguments& a) {
  group.add("--cards", a.cards, "N", "Draws scenarios of at most so many cards.")
      ->transform(whole(1, 1024))
      ->capture_default_str();
  group.add("--packets", a.packets, "N", "Draws scenarios of roughly so many packets at most.")
      ->transform(whole(1, UINT64_MAX))
      ->capture_default_str();
}

}  // namespace

Command add_soak_command(CLI::App& app) {
  auto arguments = std::make_shared<SoakArguments>();
  Group group(app);
  group.add("--minutes", arguments->minutes, "M", "Goes on for so many minutes of real time.")
      ->transform(command_line::number(0, 1e6))
      ->capture_default_str();
  group.add("--seed", arguments->seed, "S", "Begins with this seed; 0: a new one.")
      ->transform(whole(0, UINT64_MAX))
      ->capture_default_str();
  group.add("--runs", arguments->runs, "N", "Ends after so many scenarios; 0: by time only.")
      ->transform(whole(0, UINT64_MAX))
      ->capture_default_str();
  add_limits(group, *arguments);
  group.add_flag("--corners", arguments->corners,
                 "Fails when a listed corner was reached by no scenario.");
  group.add_flag("--keep-going", arguments->keep_going, "Does not stop at the first failure.");
  return [arguments] { return soak(*arguments); };
}

Command add_replay_command(CLI::App& app) {
  auto arguments = std::make_shared<SoakArguments>();
  Group group(app);
  group.add("--seed", arguments->seed, "S", "Draws the scenario of this seed.")
      ->transform(whole(0, UINT64_MAX))
      ->required();
  add_limits(group, *arguments);
  group.add("--json", arguments->json, "FILE",
            "Writes the report to this file (-: standard output). Default: none.");
  group.add("--trace", arguments->trace, "FILE",
            "Writes a line per packet sent to this file. Default: none.");
  return [arguments] { return replay(*arguments); };
}

}  // namespace peal::sim
