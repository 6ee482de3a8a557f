// SPDX-License-Identifier: BSD-2-Clause
// Parsing of peal-perf's command line; see options.h.
#include "tools/peal-perf/options.h"

#include <string_view>
#include <utility>

#include "base/names.h"
#include "emulator/common/command_line.h"
#include "emulator/common/fault_options.h"
#include "hostlib/choice_rules.h"

namespace peal::perf {
namespace {

using command_line::Group;
using command_line::one_of;
using command_line::whole;

constexpr uint64_t kBlockMax = 64u << 20;
constexpr uint32_t kRanksMax = 1024;
constexpr uint32_t kGroupsMax = 4096;
constexpr const char* kGroup = "group";

struct RawOptions {
  std::string operation;
  std::string sizes = "4,1024";
  std::string algorithm = "auto";
  std::string memory = "alloc";
  std::string spread;
  std::optional<uint32_t> window;
  command_line::FaultOptions faults;
  std::vector<std::string> launch;  // only declared: pealrun reads them
  std::vector<command_line::Option> launch_options;
  std::optional<command_line::Option> cards;  // one of them
  // What neither a barrier nor the making of groups has, and what only the latter has not.
  std::vector<std::pair<const char*, command_line::Option>> of_blocks;
  std::vector<std::pair<const char*, command_line::Option>> of_operations;
};

bool parse_sizes(std::string_view text, std::vector<uint64_t>* sizes) {
  sizes->clear();
  while (true) {
    const size_t comma = text.find(',');
    uint64_t size = 0;
    if (!command_line::parse_whole(text.substr(0, comma), 0, kBlockMax, &size)) return false;
    sizes->push_back(size);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

// "barrier, allgather, …", of what libpeal has, then messages and the making of groups.
std::string operation_words() {
  std::string words;
  peal_operation last = PEAL_OPERATION_NONE;
  for (const host::Way& way : host::kWays) {
    if (way.operation == last) continue;
    last = way.operation;
    words += names::operation(last) + ", ";
  }
  for (const Talk talk : kTalks) words += std::string(talk_name(talk)) + ", ";
  return words + kGroup;
}

// NONE where libpeal has no such operation.
peal_operation operation_of(std::string_view name) {
  for (const host::Way& way : host::kWays)
    if (names::operation(way.operation) == name) return way.operation;
  return PEAL_OPERATION_NONE;
}

std::optional<Talk> talk_of(std::string_view name) {
  for (const Talk talk : kTalks)
    if (talk_name(talk) == name) return talk;
  return std::nullopt;
}

// What is wrong, or nothing.
std::string read_talk(const RawOptions& raw, Options* options) {
  if (!options->talk) return raw.window ? "--window is of sendrecv, put and get" : "";
  options->window = raw.window.value_or(options->window);
  const std::pair<const char*, bool> others[] = {
      {"--algorithm", raw.algorithm != kAuto},
      {"--root", options->root.has_value()},
      {"--in-place", options->in_place},
      {"--persistent", options->persistent},
      {"--floor", options->floor},
      {"--overlap", options->overlap},
      {"--compare-loss", options->compare_loss},
  };
  for (const auto& [name, given] : others)
    if (given) return std::string(name) + " is of collectives, which sendrecv, put and get are not";
  return {};
}

// What is wrong, or nothing.
std::string read_meaningless(const RawOptions& raw, const Options& options) {
  const bool groups = options.operation == PEAL_OPERATION_NONE && !options.talk;
  if (!groups && options.operation != PEAL_OPERATION_BARRIER) return {};
  for (const auto& [name, option] : raw.of_blocks)
    if (option.given()) return std::string(name) + " means nothing for " + raw.operation;
  for (const auto& [name, option] : raw.of_operations)
    if (groups && option.given()) return std::string(name) + " means nothing for " + raw.operation;
  return {};
}

// What is wrong, or nothing.
std::string read_algorithms(const std::string& text, Options* options) {
  std::vector<std::string> known;
  for (const host::Way& way : host::kWays)
    if (way.operation == options->operation) known.push_back(names::algorithm(way.algorithm));
  std::string words = kAuto;
  for (const std::string& name : known) {
    words += ", " + name;
    if (name == text) options->algorithms = {name};
  }
  if (text == kAuto) options->algorithms = {kAuto};
  if (text == "all") options->algorithms = known;
  const bool found = text == kAuto || text == "all" || options->algorithms[0] == text;
  return found ? "" : "--algorithm: '" + text + "' is none of " + words + ", all";
}

std::vector<Memory> memories_of(std::string_view text) {
  std::vector<Memory> memories;
  const bool both = text == "both";
  if (both || text == "alloc") memories.push_back(Memory::kAllocated);
  if (both || text == "registered") memories.push_back(Memory::kRegistered);
  return memories;
}

bool blocks_differ(peal_operation operation) {
  return operation == PEAL_OPERATION_ALLGATHERV || operation == PEAL_OPERATION_ALLTOALLV;
}

// What is wrong, or nothing.
std::string read_spread(const std::string& text, Options* options) {
  if (!blocks_differ(options->operation)) {
    return text.empty() ? "" : "--spread is of allgatherv and alltoallv";
  }
  options->spread = text == "even"  ? ideal::Spread::kEven
                    : text == "one" ? ideal::Spread::kOne
                                    : ideal::Spread::kRising;
  return {};
}

void declare_measuring(command_line::App& app, Options* options, RawOptions* raw) {
  Group group(app);
  const auto of_blocks = [raw](const char* name, const command_line::Option& option) {
    raw->of_blocks.emplace_back(name, option);
  };
  const auto of_operations = [raw](const char* name, const command_line::Option& option) {
    raw->of_operations.emplace_back(name, option);
  };
  group.add("OPERATION", raw->operation, "", "Is one of " + operation_words() + ".");
  group
      .add("--ranks", options->ranks, "N",
           "Runs N ranks, 1 to 1024; under a launcher there are the launcher's.")
      .check(whole(1, kRanksMax))
      .show_default();
  of_blocks("--sizes", group
                           .add("--sizes", raw->sizes, "A,B,...",
                                "Uses blocks of so many bytes, 0 to 64M, on average; k and M are "
                                "1024 and 1024 * 1024.")
                           .show_default());
  of_operations(
      "--algorithm",
      group
          .add("--algorithm", raw->algorithm, "NAME",
               "Uses libpeal's choice (auto), one of the operation's algorithms, or each of them "
               "(all).")
          .show_default());
  of_blocks("--memory",
            group
                .add("--memory", raw->memory, "KIND",
                     "Uses memory made by the card (alloc), any memory (registered), or both.")
                .check(one_of({"alloc", "registered", "both"}))
                .show_default());
  group
      .add("--iterations", options->iterations, "N",
           "Measures N operations per size, 1 to 100000000.")
      .check(whole(1, 100'000'000))
      .show_default();
  group
      .add("--warmup", options->warmup, "N",
           "Runs N operations before each round, 0 to 1000000, unmeasured.")
      .check(whole(0, 1'000'000))
      .show_default();
  of_operations("--rounds",
                group.add("--rounds", options->rounds, "N", "Measures in N parts, 1 to 1000.")
                    .check(whole(1, 1000))
                    .show_default("1; with --floor, --compare-loss and --overlap 10"));
  of_blocks(
      "--root",
      group
          .add(
              "--root", options->root, "R",
              "Broadcasts from rank R, 0 to 1023; that one runs ahead of the others. Default: each "
              "rank in turn.")
          .check(whole(0, kRanksMax - 1)));
  group
      .add("--spread", raw->spread, "HOW",
           "Of allgatherv and alltoallv: has blocks that rise to twice the size (rising), are all "
           "alike (even), or one of them with everything (one). Default: rising.")
      .check(one_of({"rising", "even", "one"}));
  of_blocks("--in-place",
            group.add_flag("--in-place", options->in_place,
                           "Has what is sent in the receive buffer; not of broadcast."));
  of_operations("--persistent",
                group.add_flag("--persistent", options->persistent,
                               "Describes each operation once and starts it again and again."));
  group.add_flag("--floor", options->floor,
                 "Also measures the ideal card (copies and flags only), in alternating rounds.");
  group.add_flag(
      "--compare-loss", options->compare_loss,
      "Also measures Peal without loss, in alternating rounds: over as many other cards, "
      "which the faults spare.");
  group.add_flag("--overlap", options->overlap,
                 "Measures how much can be computed meanwhile, instead of latency.");
  group
      .add(
          "--work-us", options->work_us, "W",
          "Computes W microseconds of processor time for each operation, 0 to 10000000; 0: as long "
          "as it takes.")
      .check(whole(0, 10'000'000))
      .show_default();
  group
      .add("--at-once", options->at_once, "K",
           "Of groups: makes K, 1 to 4096, before it destroys them.")
      .check(whole(1, kGroupsMax))
      .show_default();
  group
      .add("--window", raw->window, "W",
           "Of sendrecv, put and get: has W, 1 to 30, of them under way together.")
      .check(whole(1, kWindowMax))
      .show_default("16");
  group.add("--tests", options->tests, "K", "Looks at the operation K times meanwhile, 0 to 1000.")
      .check(whole(0, 1000))
      .show_default();
  group.add("--json", options->json, "FILE",
            "Writes the records to this file, as a JSON list; - is standard output, without the "
            "table. Default: none.");
}

void declare_launch(command_line::App& app, RawOptions* raw) {
  Group group(app, "For pealrun, when peal-perf starts itself (see pealrun --help)");
  const auto add = [&](const char* name, const char* placeholder, const char* text) {
    raw->launch_options.push_back(group.add(name, raw->launch, placeholder, text));
  };
  add("--cards", "C", "Starts C cards. Default: one per rank.");
  raw->cards = raw->launch_options.back();
  add("--card-cpu", "CPU",
      "Runs the cards on these processors, as 0,2-3, a polling core on each; 'none' does not pin "
      "them. Default: the last that may be used.");
  add("--rank-cpus", "LIST",
      "Runs the ranks on these processors, as 0,2-3; 'none' does not pin them. Default: all but "
      "the cards'.");
  add("--placement", "HOW",
      "Gives the cards a processor of their own (apart), or has ranks use all of them, and the "
      "cards give way (shared), with fewer ranks beside them (balanced), or on a polling core on "
      "each (spread). Default: apart.");
  add("--nic-option", "OPT", "Passes OPT to peal-nic, as --nic-option=--OPT. Repeatable.");
  add("--timeout", "SECONDS", "Kills everything after so many seconds; 0 is no limit. Default: 0.");
  add("--counters", "FILE", "Writes what the cards did to this file, as JSON. Default: none.");
  raw->faults.add_faults(app);
  raw->faults.add_plan_and_seed(app);
}

// What is wrong, or nothing. The good wire's cards stand behind those of the ranks.
std::string read_comparison(const RawOptions& raw, Options* options) {
  if (!options->overlap && (options->work_us != 0 || options->tests != 0))
    return "--work-us and --tests are of --overlap";
  if (options->in_place && options->floor)
    return "--in-place and --floor: one of them, as the ideal card copies every block";
  if (!options->compare_loss) return {};
  if (options->floor) return "--compare-loss and --floor: one of them";
  if (raw.cards->given()) return "--compare-loss and --cards: each rank has cards of its own";
  const std::string cards = std::to_string(2 * options->ranks);
  const std::string spared =
      std::to_string(options->ranks) + "-" + std::to_string(2 * options->ranks - 1);
  options->launch.insert(options->launch.end(),
                         {"--cards", cards, "--fault-plan", "spare=" + spared});
  return {};
}

std::string apply(const RawOptions& raw, Options* options) {
  if (raw.operation.empty()) return "OPERATION is missing: one of " + operation_words();
  const bool groups = raw.operation == kGroup;
  options->talk = talk_of(raw.operation);
  options->operation = operation_of(raw.operation);
  if (options->operation == PEAL_OPERATION_NONE && !groups && !options->talk)
    return "OPERATION: '" + raw.operation + "' is none of " + operation_words();
  if (!groups && options->at_once != 1) return "--at-once is of group";
  if (groups && (options->floor || options->compare_loss || options->overlap))
    return "--floor, --compare-loss and --overlap are of operations";
  if (std::string error = read_talk(raw, options); !error.empty()) return error;
  if (std::string error = read_meaningless(raw, *options); !error.empty()) return error;
  if (options->in_place && options->operation == PEAL_OPERATION_BROADCAST)
    return "--in-place is not of broadcast";
  if (options->operation != PEAL_OPERATION_NONE) {
    if (std::string error = read_algorithms(raw.algorithm, options); !error.empty()) return error;
  }
  if (std::string error = read_spread(raw.spread, options); !error.empty()) return error;
  if (!parse_sizes(raw.sizes, &options->sizes))
    return "--sizes: '" + raw.sizes + "' is no list A,B,... of bytes from 0 to 64M";
  emulator::FaultPlan plan;
  if (std::string error = raw.faults.read(&plan); !error.empty()) return error;
  options->launch = raw.faults.words();
  for (const command_line::Option& option : raw.launch_options)
    option.append_words(&options->launch);
  options->memories = memories_of(raw.memory);
  if (options->operation == PEAL_OPERATION_BARRIER) {
    options->sizes = {0};
    options->algorithms = {names::algorithm(PEAL_ALGORITHM_DISSEMINATION)};
    options->memories = {Memory::kAllocated};
  }
  if (std::string error = read_comparison(raw, options); !error.empty()) return error;
  const bool by_turns = options->floor || options->compare_loss || options->overlap;
  if (options->rounds == 0) options->rounds = by_turns ? 10 : 1;
  return {};
}

}  // namespace

const char* memory_name(Memory memory) {
  return memory == Memory::kAllocated ? "alloc" : "registered";
}

const char* talk_name(Talk talk) {
  switch (talk) {
    case Talk::kPut:
      return "put";
    case Talk::kGet:
      return "get";
    default:
      return "sendrecv";
  }
}

std::optional<int> parse_options(int argc, char** argv, Options* options) {
  command_line::App app(
      "peal-perf", "peal-perf OPERATION [OPTIONS]",
      "Measures the latency of a collective: max(end) - min(start) over the ranks, per iteration; "
      "of a broadcast\nfrom the root's start. Every rank writes all it sends before, and reads and "
      "checks the whole result after\neach operation; both are in the measured time. With "
      "--overlap: "
      "T_comm, of blocking operations; T_work, of\nwork that takes each rank T_comm of processor "
      "time; T_both, where operations are begun, worked behind and\nwaited for. sendrecv, put and "
      "get are between "
      "ranks 2k and 2k + 1: half a round trip of a\nmessage, the whole of a put or a get, and "
      "--window of them together. Without a launcher's\nenvironment (PEAL_RANK) it starts itself "
      "under pealrun.");

  RawOptions raw;
  declare_measuring(app, options, &raw);
  declare_launch(app, &raw);
  if (const auto status = app.parse(argc, argv)) return status;
  if (const std::string error = apply(raw, options); !error.empty()) return app.complain(error);
  return std::nullopt;
}

}  // namespace peal::perf
