// SPDX-License-Identifier: BSD-2-Clause
// `peal-sim soak`: random scenarios of collectives, random messages and random programs, seed after
// seed, for some minutes; a failure prints the command that shows it again. `peal-sim replay`: that
// command.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "emulator/cluster/corners.h"
#include "emulator/cluster/run.h"
#include "emulator/cluster/scenario_random.h"
#include "tools/peal-sim/commands.h"
#include "tools/peal-sim/progress.h"
#include "tools/peal-sim/random_runs.h"
#include "tools/peal-sim/report_json.h"
#include "tools/peal-sim/trace_file.h"

namespace peal::sim {

namespace {

struct Kind {
  RandomKind kind;
  const char* name;
};
constexpr Kind kKinds[] = {{RandomKind::kCollectives, "collectives"},
                           {RandomKind::kMessages, "messages"},
                           {RandomKind::kPrograms, "programs"}};
constexpr const char* kAll = "all";

const Kind* kind_of(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                         [&name](const Kind& each) { return each.name == name; });
  return found == std::end(kKinds) ? nullptr : found;
}

// Every tenth run is made twice: its traces must be equal.
bool is_repeated(uint64_t seed) { return seed % 10 == 0; }

struct SoakArguments {
  std::string kind = kAll;
  double minutes = 1;
  uint64_t seed = 0;
  uint64_t runs = 0;
  uint32_t cards = RandomLimits{}.cards;
  uint64_t packets = RandomLimits{}.packets;
  bool corners = false;
  bool keep_going = false;
  std::string json;
  std::string trace;

  [[nodiscard]] bool wants(RandomKind wanted) const {
    const Kind* const one = kind_of(kind);
    return one == nullptr || one->kind == wanted;
  }
};

std::string replay_command(const SoakArguments& arguments, RandomKind kind, uint64_t seed) {
  std::string text = program_name() + " replay --seed " + std::to_string(seed);
  if (kind != RandomKind::kCollectives) {
    return text + " --kind " + kKinds[static_cast<size_t>(kind)].name;
  }
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

// What has been run so far.
struct Soak {
  const SoakArguments& arguments;
  Corners corners{};
  uint64_t runs[std::size(kKinds)] = {};  // by kind
  uint64_t packets = 0;
  uint64_t failed = 0;
  uint64_t stuck = 0;
  double effort = 0;
  uint64_t effort_seed = 0;

  [[nodiscard]] std::string counts() const {
    std::string text;
    for (const Kind& each : kKinds) {
      if (!arguments.wants(each.kind)) continue;
      text += std::to_string(runs[static_cast<size_t>(each.kind)]) + " of " + each.name + ", ";
    }
    return text + std::to_string(packets) + " packets, " + std::to_string(failed) + " failed";
  }

  void tell_failure(RandomKind kind, uint64_t seed, const std::string& text) {
    failed++;
    std::printf("seed %" PRIu64 ": %sagain: %s\n", seed, text.c_str(),
                replay_command(arguments, kind, seed).c_str());
    std::fflush(stdout);
  }

  void run_collectives(uint64_t seed) {
    const Scenario scenario = random_scenario(seed, limits_of(arguments));
    const Report report = is_repeated(seed) ? run_twice(scenario) : run(scenario);
    corners.add(scenario, report);
    if (only_bad_wire(scenario) && report.needed > 500 && report.effort() > effort) {
      effort = report.effort();
      effort_seed = seed;
    }
    packets += report.cluster.sent;
    if (report.ok) return;
    if (report.only_stuck()) stuck++;
    tell_failure(RandomKind::kCollectives, seed, describe(scenario) + "\n" + report_text(report));
  }

  void run_others(RandomKind kind, uint64_t seed) {
    const RandomRun run = is_repeated(seed) ? run_random_twice(kind, seed) : run_random(kind, seed);
    packets += run.packets;
    if (run.problems.empty()) return;
    if (run.only_stuck) stuck++;
    tell_failure(kind, seed, run.description + "\n" + run.problems);
  }

  void run_kind(RandomKind kind, uint64_t seed) {
    runs[static_cast<size_t>(kind)]++;
    if (kind == RandomKind::kCollectives) return run_collectives(seed);
    run_others(kind, seed);
  }
};

int soak(const SoakArguments& arguments) {
  const uint64_t first = arguments.seed == 0 ? new_seed() : arguments.seed;
  std::printf("%s: seeds from %" PRIu64 "\n", program_name().c_str(), first);
  Soak soak = {arguments};
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  double told_at = 0;
  uint64_t done = 0;
  for (uint64_t seed = first; elapsed() < arguments.minutes * 60; seed++) {
    if (arguments.runs > 0 && done == arguments.runs) break;
    done++;
    for (const Kind& each : kKinds) {
      if (arguments.wants(each.kind)) soak.run_kind(each.kind, seed);
    }
    if (soak.failed > 0 && !arguments.keep_going) break;
    if (elapsed() - told_at >= 10) {
      told_at = elapsed();
      std::printf("%.0f s: to seed %" PRIu64 ", %s\n", told_at, seed, soak.counts().c_str());
      std::fflush(stdout);
    }
  }
  std::printf("%s\n", soak.counts().c_str());
  const bool too_few = done < arguments.runs && (soak.failed == 0 || arguments.keep_going);
  if (too_few)
    std::printf("only %" PRIu64 " of %" PRIu64 " seeds in the time that there was\n", done,
                arguments.runs);
  const int status = too_few ? kExitWrong : exit_status(soak.failed, soak.stuck);
  if (!arguments.wants(RandomKind::kCollectives)) return status;
  std::printf(
      "most packets per packet needed, on a wire that is bad and no more: %.2f (seed %" PRIu64
      ")\n",
      soak.effort, soak.effort_seed);
  const uint64_t missed = check_corners(arguments, soak.corners);
  return missed > 0 ? kExitWrong : status;
}

int replay_collectives(const SoakArguments& arguments, TraceFile* trace) {
  const Scenario scenario = random_scenario(arguments.seed, limits_of(arguments));
  const bool prints = arguments.json != "-";
  if (prints) std::printf("%s\n", describe(scenario).c_str());
  Progress progress("replay", false);
  RunOptions options;
  options.observer = trace;
  options.progress = progress.callback();
  const Report report = is_repeated(arguments.seed) && trace == nullptr ? run_twice(scenario)
                                                                        : run(scenario, options);
  progress.clear();
  if (prints) std::fputs(report_text(report).c_str(), stdout);
  if (!arguments.json.empty()) write_json(arguments.json, report_json(scenario, report));
  return exit_status(report.ok ? 0 : 1, report.only_stuck() ? 1 : 0);
}

int replay_others(const SoakArguments& arguments, RandomKind kind, TraceFile* trace) {
  const RandomRun run = is_repeated(arguments.seed) ? run_random_twice(kind, arguments.seed, trace)
                                                    : run_random(kind, arguments.seed, trace);
  const bool ok = run.problems.empty();
  if (arguments.json != "-")
    std::printf("%s\n%s: %" PRIu64 " packets, %" PRIu64 " lost\n%s", run.description.c_str(),
                ok ? "ok" : "FAILED", run.packets, run.lost, run.problems.c_str());
  if (!arguments.json.empty()) {
    write_json(arguments.json, {{"kind", arguments.kind},
                                {"seed", arguments.seed},
                                {"ok", ok},
                                {"description", run.description},
                                {"problems", run.problems},
                                {"packets", run.packets},
                                {"lost", run.lost},
                                {"trace_hash", run.trace_hash}});
  }
  return exit_status(ok ? 0 : 1, run.only_stuck ? 1 : 0);
}

int replay(const SoakArguments& arguments) {
  std::unique_ptr<TraceFile> trace;
  if (!arguments.trace.empty()) trace = std::make_unique<TraceFile>(arguments.trace);
  const RandomKind kind = kind_of(arguments.kind)->kind;
  const int status = kind == RandomKind::kCollectives ? replay_collectives(arguments, trace.get())
                                                      : replay_others(arguments, kind, trace.get());
  if (trace) trace->close();
  return status;
}

using command_line::Group;
using command_line::whole;

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const Kind& each : kKinds) names.emplace_back(each.name);
  return names;
}

// How large a scenario may become; a seed means another scenario where these differ.
void add_limits(Group& group, SoakArguments& a) {
  group.add("--cards", a.cards, "N", "Draws scenarios of at most so many cards.")
      .check(whole(1, 1024))
      .show_default();
  group.add("--packets", a.packets, "N", "Draws scenarios of roughly so many packets at most.")
      .check(whole(1, UINT64_MAX))
      .show_default();
}

}  // namespace

Command add_soak_command(command_line::App& app) {
  auto arguments = std::make_shared<SoakArguments>();
  Group group(app);
  std::vector<std::string> kinds = kind_names();
  kinds.emplace_back(kAll);
  group.add("--kind", arguments->kind, "KIND", "Runs collectives, messages, programs, or all.")
      .check(command_line::one_of(kinds))
      .show_default();
  group.add("--minutes", arguments->minutes, "M", "Goes on for so many minutes of real time.")
      .check(command_line::number(0, 1e6))
      .show_default();
  group.add("--seed", arguments->seed, "S", "Begins with this seed; 0: a new one.")
      .check(whole(0, UINT64_MAX))
      .show_default();
  group
      .add("--runs", arguments->runs, "N",
           "Ends after so many seeds, and fails when there was no time for all; 0: by time only.")
      .check(whole(0, UINT64_MAX))
      .show_default();
  add_limits(group, *arguments);
  group.add_flag("--corners", arguments->corners,
                 "Fails when a listed corner was reached by no scenario.");
  group.add_flag("--keep-going", arguments->keep_going, "Does not stop at the first failure.");
  return [arguments] { return soak(*arguments); };
}

Command add_replay_command(command_line::App& app) {
  auto arguments = std::make_shared<SoakArguments>();
  Group group(app);
  arguments->kind = kKinds[0].name;
  group.add("--kind", arguments->kind, "KIND", "Is of collectives, messages or programs.")
      .check(command_line::one_of(kind_names()))
      .show_default();
  group.add("--seed", arguments->seed, "S", "Draws the scenario of this seed.")
      .check(whole(0, UINT64_MAX))
      .required();
  add_limits(group, *arguments);
  group.add("--json", arguments->json, "FILE",
            "Writes the report to this file (-: standard output). Default: none.");
  group.add("--trace", arguments->trace, "FILE",
            "Writes a line per packet sent to this file. Default: none.");
  return [arguments] { return replay(*arguments); };
}

}  // namespace peal::sim
