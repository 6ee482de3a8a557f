// SPDX-License-Identifier: BSD-2-Clause
// Parsing of pealrun's command line; see options.h. Faults are read here too, so that a mistake is
// told before a card is started.
#include "tools/pealrun/options.h"

#include <cstdlib>

#include "abi/types.h"
#include "emulator/common/command_line.h"
#include "emulator/common/fault_options.h"

namespace peal::run {
namespace {

using command_line::Group;
using command_line::one_of;
using command_line::whole;

constexpr double kSecondsMax = 1e9;

struct RawOptions {
  command_line::FaultOptions faults;
  std::string ranks_here;
  std::string grace;
};

void declare_cards(command_line::App& app, Options* options) {
  Group group(app, "Cards");
  group
      .add("--cards", options->cards, "C",
           "Starts C cards; rank i uses card i modulo C. Default: one per rank.")
      .check(whole(1, PEAL_RANKS_MAX));
  group.add("--card", options->card_urls, "URL",
            "Uses this running card and starts none; rank i uses the i-th, modulo their number. "
            "Repeatable.");
  group.add("--nic", options->nic, "PROGRAM",
            "Starts this emulator. Default: peal-nic beside pealrun, else in $PATH.");
  group.add("--nic-option", options->nic_options, "OPT",
            "Passes OPT to peal-nic, as --nic-option=--OPT. Repeatable.");
  group.add("--counters", options->counters_file, "FILE",
            "Writes what the cards did to this file at the end, as JSON. Default: none.");
}

void declare(command_line::App& app, Options* options, RawOptions* raw) {
  Group group(app);
  group.add("-n,--ranks", options->ranks, "N", "Runs N ranks, 1 to 65536.")
      .check(whole(1, PEAL_RANKS_MAX));
  group.add_flag(
      "-l,--label", options->label,
      "Puts the rank before each line of output; what ranks write to standard error goes "
      "to standard output too.");
  group
      .add("--grace", raw->grace, "SECONDS",
           "Kills the other ranks so many seconds after the first failure, and what ranks left "
           "behind "
           "after their end; 'never' lets ranks end by themselves.")
      .show_default("5");
  group
      .add("--timeout", options->timeout_s, "SECONDS",
           "Kills everything after so many seconds and exits with 124; 0 is no limit.")
      .check(command_line::number(0, kSecondsMax))
      .show_default();
  group.add("--oob", options->oob, "ADDRESS",
            "Serves the out-of-band exchange at tcp:HOST:PORT or unix:PATH, for ranks that are "
            "started elsewhere. Default: a private socket.");
  group.add("--ranks-here", raw->ranks_here, "A-B",
            "Starts only these ranks of the job; all its parts need the same --oob and the same 32 "
            "hexadecimal digits in $PEAL_OOB_TOKEN. Default: all ranks.");
  group.add("--card-cpu", options->card_cpu, "LIST",
            "Runs the cards on these processors, as 0,2-3, a polling core on each; 'none' does not "
            "pin them. Default: the last that may be used.");
  group.add("--rank-cpus", options->rank_cpus, "LIST",
            "Runs the ranks on these processors, as 0,2-3; 'none' does not pin them. Default: all "
            "but the cards'.");
  group
      .add("--placement", options->placement, "HOW",
           "Gives the cards a processor of their own (apart); or binds a rank to each processor in "
           "turn, the cards' too, which then give way (shared), and may have fewer ranks beside "
           "them (balanced) or a polling core on each (spread).")
      .check(one_of({"apart", "shared", "balanced", "spread"}))
      .show_default();
  declare_cards(app, options);
  raw->faults.add_faults(app);
  raw->faults.add_plan_and_seed(app);
}

std::string read_ranks_here(const std::string& text, Options* options) {
  uint64_t first = 0;
  uint64_t last = 0;
  if (!command_line::parse_range(text, &first, &last) || last >= options->ranks)
    return "--ranks-here: '" + text + "' is no A-B within the ranks 0-" +
           std::to_string(options->ranks - 1);
  options->first = static_cast<uint32_t>(first);
  options->last = static_cast<uint32_t>(last);
  if (options->oob.empty()) return "--ranks-here needs --oob ADDRESS";
  const char* const token = getenv("PEAL_OOB_TOKEN");
  if (token == nullptr || *token == '\0')
    return "--ranks-here needs the same 32 secret hexadecimal digits in all parts' $PEAL_OOB_TOKEN";
  return {};
}

// What is wrong with all of it together.
std::string apply(const RawOptions& raw, Options* options) {
  if (options->ranks == 0) return "-n RANKS is missing";
  if (options->program.empty()) return "PROGRAM is missing";
  if (raw.grace == "never") {
    options->grace_s = -1;
  } else if (!raw.grace.empty() &&
             !command_line::parse_number(raw.grace, 0, kSecondsMax, &options->grace_s)) {
    return "--grace: '" + raw.grace + "' is neither seconds nor 'never'";
  }
  for (const std::string& option : options->nic_options) {
    for (const char* const ours : {"--cards", "--socket", "--lcore-affinity"}) {
      if (option.starts_with(ours))
        return "--nic-option: " + std::string(ours) + " is pealrun's to give (--cards, --card-cpu)";
    }
  }
  emulator::FaultPlan plan;
  if (std::string error = raw.faults.read(&plan); !error.empty()) return error;
  const std::vector<std::string> faults = raw.faults.words();
  options->nic_options.insert(options->nic_options.begin(), faults.begin(), faults.end());
  if (!options->card_urls.empty() && (options->cards != 0 || !options->nic_options.empty()))
    return "--card names cards that are not started here, so --cards, --nic-option and faults make "
           "no sense";
  if (options->placement != "apart") {
    const std::string placement = "--placement " + options->placement;
    if (!options->card_urls.empty())
      return placement + " is of cards that are started here, and --card names others";
    if (options->rank_cpus == "none")
      return placement + " binds each rank to a processor, and --rank-cpus none does not";
    if (options->placement == "spread" && !options->card_cpu.empty())
      return placement + " has cards where the ranks are, and --card-cpu names others";
  }
  if (options->card_urls.empty() && options->cards == 0) options->cards = options->ranks;
  options->first = 0;
  options->last = options->ranks - 1;
  return raw.ranks_here.empty() ? "" : read_ranks_here(raw.ranks_here, options);
}

}  // namespace

std::optional<int> parse_options(int argc, char** argv, Options* options) {
  command_line::App app(
      "pealrun", "pealrun -n RANKS [OPTIONS] [--] PROGRAM [ARGUMENTS...]",
      "Starts one peal-nic with a card per rank, then the ranks of PROGRAM, each with its rank and "
      "its\ncard in the environment (PEAL_RANK, PEAL_SIZE, PEAL_CARD, PEAL_OOB, PEAL_OOB_TOKEN). "
      "Cleans up everything\nat the end. Exits with the status of the first rank that failed (128 "
      "+ "
      "signal if it was killed), else 0.");

  app.end_at_first_word();  // what follows the program's name is the program's
  RawOptions raw;
  declare(app, options, &raw);
  if (const auto status = app.parse(argc, argv)) return status;
  options->program = app.rest();
  if (!options->program.empty() && options->program[0] == "--")
    options->program.erase(options->program.begin());
  if (const std::string error = apply(raw, options); !error.empty()) return app.complain(error);
  return std::nullopt;
}

}  // namespace peal::run
