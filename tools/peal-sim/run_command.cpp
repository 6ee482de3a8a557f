// SPDX-License-Identifier: BSD-2-Clause
// `peal-sim --cards 64 …`: one scenario from options, once per seed.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>

#include "abi/types.h"
#include "emulator/cluster/scenario.h"
#include "emulator/common/fault_options.h"
#include "emulator/common/packet_text.h"
#include "tools/peal-sim/commands.h"
#include "tools/peal-sim/operation_options.h"
#include "tools/peal-sim/progress.h"
#include "tools/peal-sim/report_json.h"
#include "tools/peal-sim/run_cost.h"
#include "tools/peal-sim/trace_file.h"

namespace peal::sim {

namespace {

struct RunArguments {
  uint32_t cards = 8;
  uint32_t members_per_card = 1;
  uint32_t groups = 1;
  OperationOptions operation;
  uint32_t operations = 10;
  uint32_t depth = 1;
  bool no_destroy = false;
  uint64_t seed = 1;
  std::string seeds;
  command_line::FaultOptions faults;
  uint64_t heal_us = 0;
  std::vector<std::string> partitions;
  std::vector<std::string> late;
  std::vector<std::string> silent;
  std::vector<std::string> kill;
  std::vector<std::string> unmap;
  std::vector<std::string> freeze;
  std::vector<std::string> one_way;
  std::vector<std::string> pair;
  double think_us = 0;
  double packet_us = -1;
  double effort_max = 0;
  std::string model;
  std::string checksums = "auto";
  double nack_us = 200;
  double nack_max_us = 20'000;
  double probe_us = 20'000;
  double dead_us = 2'000'000;
  uint32_t packets_per_card = 4096;
  uint32_t sent_packets = 0;
  bool lends = false;
  uint32_t dma_per_card = ~0u;
  bool twice = false;
  bool quiet = false;
  std::string json;
  std::string trace;
};

TimeNs nanoseconds(double us) { return static_cast<TimeNs>(std::llround(us * 1000)); }

// "RANK:US"
std::pair<uint32_t, TimeNs> parse_rank_time(const char* option, const std::string& text,
                                            size_t ranks) {
  const char* end = text.data() + text.size();
  uint32_t rank = 0;
  uint64_t us = 0;
  const auto first = std::from_chars(text.data(), end, rank);
  bool good = first.ec == std::errc() && first.ptr != end && *first.ptr == ':';
  if (good) {
    const auto second = std::from_chars(first.ptr + 1, end, us);
    good = second.ec == std::errc() && second.ptr == end && us <= 3'600'000'000;
  }
  if (!good) throw UsageError(std::string(option) + " '" + text + "': expected RANK:MICROSECONDS");
  if (rank >= ranks)
    throw UsageError(std::string(option) + " '" + text + "': there are ranks 0 to " +
                     std::to_string(ranks - 1));
  return {rank, us * 1000};
}

// "A-B" or "A-B:C-D", unsigned numbers; false when it is neither.
bool parse_ranges(const std::string& text, bool times_needed, uint64_t (&values)[4]) {
  const size_t colon = text.find(':');
  if (times_needed && colon == std::string::npos) return false;
  const std::string parts[2] = {text.substr(0, colon),
                                colon == std::string::npos ? "" : text.substr(colon + 1)};
  for (size_t i = 0; i < (colon == std::string::npos ? 1u : 2u); i++) {
    const char* end = parts[i].data() + parts[i].size();
    const auto first = std::from_chars(parts[i].data(), end, values[2 * i]);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return false;
    const auto second = std::from_chars(first.ptr + 1, end, values[2 * i + 1]);
    if (second.ec != std::errc() || second.ptr != end) return false;
  }
  return true;
}

constexpr uint64_t kMicrosecondsMax = 3'600'000'000;

// "CARD-CARD" or "CARD-CARD:FROM_US-UNTIL_US"
WireCut parse_cut(const char* option, const std::string& text) {
  const bool for_good = text.find(':') == std::string::npos;
  uint64_t values[4] = {0, 0, 0, kMicrosecondsMax};
  if (!parse_ranges(text, false, values) || values[0] > 0xffff || values[1] > 0xffff ||
      values[2] > kMicrosecondsMax || values[3] > kMicrosecondsMax)
    throw UsageError(std::string(option) + " '" + text +
                     "': expected CARD-CARD or CARD-CARD:FROM_US-UNTIL_US, of times up to an hour");
  return {static_cast<uint32_t>(values[0]), static_cast<uint32_t>(values[1]), values[2] * 1000,
          for_good ? kNever : values[3] * 1000};
}

// "CARD:FROM_US-UNTIL_US"
Accident parse_freeze(const std::string& text, uint32_t cards) {
  uint64_t values[4];
  const size_t colon = text.find(':');
  const bool good = colon != std::string::npos && parse_ranges("0-" + text, true, values) &&
                    values[1] < cards && values[2] < values[3] && values[3] <= kMicrosecondsMax;
  if (!good)
    throw UsageError("--freeze '" + text + "': expected CARD:FROM_US-UNTIL_US, of " +
                     std::to_string(cards) + " cards");
  return {Accident::Kind::kFreeze,
          {static_cast<uint32_t>(values[1]), 0},
          values[2] * 1000,
          (values[3] - values[2]) * 1000};
}

Timeouts timeouts_of(const RunArguments& arguments) {
  const Timeouts timeouts = {nanoseconds(arguments.nack_us), nanoseconds(arguments.nack_max_us),
                             nanoseconds(arguments.probe_us), nanoseconds(arguments.dead_us)};
  if (timeouts.nack_max_ns < timeouts.nack_ns)
    throw UsageError("--nack-max-us must not be smaller than --nack-us");
  if (timeouts.dead_ns <= timeouts.probe_interval_ns)
    throw UsageError(
        "--dead-us must be longer than --probe-us, or peers die before they are asked");
  return timeouts;
}

Scenario scenario_of(const RunArguments& arguments) {
  Scenario scenario;
  scenario.name = "command line";
  scenario.cards = arguments.cards;
  const uint64_t ranks = uint64_t{arguments.cards} * arguments.members_per_card;
  if (ranks > PEAL_RANKS_MAX)
    throw UsageError("--cards times --members-per-card is " + std::to_string(ranks) +
                     "; a group has at most " + std::to_string(PEAL_RANKS_MAX) + " ranks");
  GroupPlan group = make_group(arguments.cards, arguments.members_per_card);
  group.operations.assign(arguments.operations, arguments.operation.plan(ranks));
  group.depth = arguments.depth;
  group.think_ns = nanoseconds(arguments.think_us);
  group.destroy = !arguments.no_destroy;
  scenario.teardown = group.destroy;
  for (const std::string& text : arguments.late) {
    const auto [rank, at_ns] = parse_rank_time("--late", text, ranks);
    group.first_post_ns[rank] = at_ns;
  }
  for (const std::string& text : arguments.silent) {
    const auto [rank, at_ns] = parse_rank_time("--silent", text, ranks);
    scenario.accidents.push_back({Accident::Kind::kSilence, group.places[rank], at_ns, 0});
  }
  for (const std::string& text : arguments.kill) {
    const auto [rank, at_ns] = parse_rank_time("--kill", text, ranks);
    scenario.accidents.push_back({Accident::Kind::kKill, group.places[rank], at_ns, 0});
  }
  for (const std::string& text : arguments.unmap) {
    const auto [rank, at_ns] = parse_rank_time("--unmap", text, ranks);
    scenario.accidents.push_back({Accident::Kind::kUnmap, group.places[rank], at_ns, 0});
  }
  for (const std::string& text : arguments.freeze)
    scenario.accidents.push_back(parse_freeze(text, arguments.cards));
  for (const std::string& text : arguments.one_way)
    scenario.cuts.push_back(parse_cut("--cut-one-way", text));
  for (const std::string& text : arguments.pair) {
    WireCut cut = parse_cut("--cut-pair", text);
    scenario.cuts.push_back(cut);
    std::swap(cut.from_card, cut.to_card);
    scenario.cuts.push_back(cut);
  }
  // Every group has processes of its own on the same cards.
  for (uint32_t i = 0; i < arguments.groups; i++) {
    scenario.groups.push_back(group);
    for (Place& place : group.places) place.process += arguments.members_per_card;
  }

  if (const std::string problem = arguments.faults.read(&scenario.faults); !problem.empty())
    throw UsageError(problem);
  if (arguments.heal_us > 0) scenario.faults.until_ns = arguments.heal_us * 1000;
  for (const std::string& text : arguments.partitions) {
    const std::string problem = emulator::parse_fault_plan("partition=" + text, &scenario.faults);
    if (!problem.empty()) throw UsageError("--partition: " + problem);
  }
  scenario.timeouts = timeouts_of(arguments);
  scenario.packets_per_card = arguments.packets_per_card;
  scenario.sent_packets = arguments.sent_packets;
  scenario.lends = arguments.lends;
  scenario.dma_per_card = arguments.dma_per_card;
  if (arguments.checksums == "software") scenario.checksums = ChecksumChoice::kSoftware;
  if (arguments.checksums == "skip") scenario.checksums = ChecksumChoice::kSkipped;
  if (!arguments.model.empty()) {
    const std::string problem = load_cost_model(arguments.model, &scenario.costs);
    if (!problem.empty()) throw UsageError("--model: " + problem);
  }
  scenario.effort_max = arguments.effort_max;
  if (arguments.packet_us >= 0) scenario.costs.packet_ns = nanoseconds(arguments.packet_us);
  const std::string problem = scenario.problem();
  if (!problem.empty()) throw UsageError(problem);
  return scenario;
}

// On standard error, because every run has another: what is printed on standard output depends on
// the seed alone.
void print_cost(const RunCost& cost, uint64_t packets, uint32_t cards) {
  const double seconds = cost.processor_seconds();
  std::fflush(stdout);  // whoever reads both in one place reads the run first
  std::fprintf(stderr,
               "%" PRIu64
               " packets in %.2f s of processor time, %.2f million a second; %.1f KiB of "
               "memory per card\n",
               packets, seconds, static_cast<double>(packets) / seconds / 1e6,
               static_cast<double>(cost.memory_bytes()) / 1024 / cards);
}

int run_all(const RunArguments& arguments) {
  Scenario scenario = scenario_of(arguments);
  uint64_t first = arguments.seed;
  uint64_t last = arguments.seed;
  if (!arguments.seeds.empty() && !command_line::parse_range(arguments.seeds, &first, &last))
    throw UsageError("--seeds '" + arguments.seeds + "': expected FIRST-LAST, for example 1-100");
  if (!arguments.trace.empty() && (first != last || arguments.twice))
    throw UsageError("--trace goes with one seed, and without --twice");

  nlohmann::json runs = nlohmann::json::array();
  const RunCost cost;
  uint64_t packets = 0;
  uint64_t failed = 0;
  uint64_t stuck = 0;
  uint64_t count = 0;
  const auto run_one = [&](uint64_t seed) {
    count++;
    scenario.seed = seed;
    if (arguments.operation.random_root()) draw_roots(scenario);
    std::unique_ptr<TraceFile> trace;
    if (!arguments.trace.empty()) trace = std::make_unique<TraceFile>(arguments.trace);
    Progress progress("seed " + std::to_string(seed), arguments.quiet);
    RunOptions options;
    options.observer = trace.get();
    options.progress = progress.callback();
    const auto begin = std::chrono::steady_clock::now();
    const RunCost own_cost;
    const Report report = arguments.twice ? run_twice(scenario) : run(scenario, options);
    const double processor_seconds = own_cost.processor_seconds();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    packets += report.cluster.received * (arguments.twice ? 2 : 1);
    progress.clear();
    if (trace) trace->close();
    if (!arguments.json.empty()) {
      nlohmann::json tree = report_json(scenario, report);
      tree["real_seconds"] = seconds;
      tree["processor_seconds"] = processor_seconds;
      runs.push_back(std::move(tree));
    }
    if (!report.ok) failed++;
    if (report.only_stuck()) stuck++;
    if (!arguments.quiet && arguments.json != "-")
      std::printf("seed %" PRIu64 " %s", seed, report_text(report).c_str());
  };
  for (uint64_t seed = first; seed != last; seed++) run_one(seed);
  run_one(last);
  if (!arguments.quiet) print_cost(cost, packets, scenario.cards);
  if (!arguments.json.empty()) {
    nlohmann::json tree = first == last ? runs[0] : nlohmann::json{{"runs", runs}};
    tree["memory_bytes_per_card"] = cost.memory_bytes() / scenario.cards;
    write_json(arguments.json, tree);
  }
  if (failed > 0)
    std::fprintf(stderr,
                 "peal-sim: %" PRIu64 " of %" PRIu64 " runs failed a check, %" PRIu64
                 " of these by being stuck\n",
                 failed, count, stuck);
  return exit_status(failed, stuck);
}

using command_line::Group;
using command_line::number;
using command_line::one_of;
using command_line::whole;

command_line::Check microseconds(double least = 0) {
  return number(least, static_cast<double>(command_line::kMicrosecondsMax));
}

void add_cluster(command_line::App& app, RunArguments& a) {
  Group group(app, "Cluster");
  group.add("--cards", a.cards, "N", "Simulates so many cards.")
      .check(whole(1, PEAL_RANKS_MAX))
      .show_default();
  group.add("--members-per-card", a.members_per_card, "N", "Puts so many ranks on each card.")
      .check(whole(1, 1024))
      .show_default();
  group.add("--groups", a.groups, "N", "Makes so many such groups on the same cards.")
      .check(whole(1, 1024))
      .show_default();
  group.add("--packets-per-card", a.packets_per_card, "N", "Lets a card hold so many packets.")
      .check(whole(1, UINT32_MAX))
      .show_default();
  group
      .add("--sent-packets", a.sent_packets, "N",
           "Lets a card keep so many besides that it has sent, to send them again.")
      .check(whole(0, 65535))
      .show_default();
  group.add_flag("--lend", a.lends,
                 "Leaves what is read for one other card in host memory until that card writes it, "
                 "where checksums are skipped.");
  group
      .add("--dma-per-card", a.dma_per_card, "N",
           "Lets a card's DMA engine queue so many transfers. Default: any number.")
      .check(whole(1, UINT32_MAX));
  group.add("--model", a.model, "FILE",
            "Takes the costs in virtual time from this file; see tools/peal-sim/models. Default: "
            "those of a 100 Gbit/s card.");
  group
      .add("--packet-us", a.packet_us, "US",
           "Takes in a packet in so many microseconds of a card's processor. Default: the model's.")
      .check(number(0, 1000));
  group
      .add("--checksums", a.checksums, "HOW",
           "Computes checksums by software, skips them, or auto: skips them where no frame can be "
           "damaged.")
      .check(one_of({"auto", "software", "skip"}))
      .show_default();
}

void add_work(command_line::App& app, RunArguments& a) {
  Group group(app, "What every rank posts");
  a.operation.add_to(group);
  group.add("--operations", a.operations, "N", "Posts so many operations, one after the other.")
      .check(whole(1, 10'000'000))
      .show_default();
  group.add("--depth", a.depth, "N", "Has so many of them under way at once.")
      .check(whole(1, 4096))
      .show_default();
  group.add("--think-us", a.think_us, "US", "Pauses for up to so many microseconds before a post.")
      .check(microseconds())
      .show_default();
  group.add_flag("--no-destroy", a.no_destroy, "Leaves the group as it is at the end.");
}

void add_accidents(command_line::App& app, RunArguments& a) {
  Group group(app, "Accidents");
  group
      .add("--heal-us", a.heal_us, "US",
           "Ends the faults of single frames after so many microseconds; 0: never.")
      .check(whole(0, command_line::kMicrosecondsMax))
      .show_default();
  group.add("--partition", a.partitions, "A-B:FROM-TO",
            "Parts cards A to B from all others between these times, in microseconds. Repeatable.");
  group.add("--cut-one-way", a.one_way, "A-B:FROM-TO",
            "Lets nothing that card A sends reach card B between these times, in microseconds; A-B "
            "alone: ever. Repeatable.");
  group.add("--cut-pair", a.pair, "A-B:FROM-TO",
            "Cuts the link of cards A and B like that in both directions. Repeatable.");
  group.add("--freeze", a.freeze, "CARD:FROM-TO",
            "Stops the card's runner between these times, in microseconds. Repeatable.");
  group.add("--late", a.late, "RANK:US",
            "Posts nothing for this rank before so many microseconds. Repeatable.");
  group.add("--silent", a.silent, "RANK:US",
            "Stops the rank's card for good after so many microseconds. Repeatable.");
  group.add("--unmap", a.unmap, "RANK:US",
            "Takes the rank's memory away after so many microseconds. Repeatable.");
  group.add("--kill", a.kill, "RANK:US",
            "Ends the rank's process after so many microseconds. Repeatable.");
}

void add_patience(command_line::App& app, RunArguments& a) {
  Group group(app, "Patience");
  const auto add = [&](const char* name, double& value, const std::string& text) {
    group.add(name, value, "US", text)
        .check(microseconds(0.001))  // a nanosecond: of none, time never passes
        .show_default(std::to_string(std::llround(value)));
  };
  add("--nack-us", a.nack_us, "Sends the first NACK after so many microseconds.");
  add("--nack-max-us", a.nack_max_us,
      "Sends the next ones at intervals of at most so many microseconds.");
  add("--probe-us", a.probe_us, "Probes a silent peer every so many microseconds.");
  add("--dead-us", a.dead_us, "Takes a peer for dead that was silent for so many microseconds.");
}

void add_runs(command_line::App& app, RunArguments& a) {
  Group group(app, "Runs");
  const command_line::Option seed =
      group.add("--seed", a.seed, "S", "Decides everything that is left to chance.")
          .check(whole(0, UINT64_MAX))
          .show_default();
  group
      .add("--seeds", a.seeds, "FIRST-LAST",
           "Runs once for each of these seeds. Default: that of --seed.")
      .excludes(seed);
  group.add_flag("--twice", a.twice, "Runs each seed twice and compares the traces.");
  group
      .add("--effort-max", a.effort_max, "E",
           "Fails when more than E packets were sent for each one needed; 0: any number.")
      .check(number(0, 1e9))
      .show_default();
  group.add_flag("--quiet", a.quiet, "Prints nothing but errors.");
  group.add("--json", a.json, "FILE",
            "Writes the report to this file (-: standard output). Default: none.");
  group.add("--trace", a.trace, "FILE",
            "Writes a line per packet sent to this file. Default: none.");
}

}  // namespace

Command add_run_command(command_line::App& app) {
  auto arguments = std::make_shared<RunArguments>();
  add_cluster(app, *arguments);
  add_work(app, *arguments);
  arguments->faults.add_faults(app);
  add_accidents(app, *arguments);
  add_patience(app, *arguments);
  add_runs(app, *arguments);
  return [arguments] { return run_all(*arguments); };
}

}  // namespace peal::sim
