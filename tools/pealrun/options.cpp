// SPDX-License-Identifier: BSD-2-Clause
// Parsing of pealrun's command line; see options.h.
#include "tools/pealrun/options.h"

#include <getopt.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "abi/types.h"

namespace peal::run {
namespace {

constexpr const char* kHelp =
    R"(usage: pealrun -n RANKS [OPTIONS] [--] PROGRAM [ARGUMENTS...]

Starts one peal-nic with a card per rank, then RANKS processes of PROGRAM, each with its rank and its
card in the environment (PEAL_RANK, PEAL_SIZE, PEAL_CARD, PEAL_OOB, PEAL_OOB_TOKEN). Cleans up
everything at the end.
Exits with the status of the first rank that failed (128 + signal if it was killed), else 0.

  -n, --ranks N           number of ranks
      --cards C           number of cards (default: one per rank); rank i uses card i modulo C
      --card URL          use this running card instead of starting any (repeatable)
      --nic PROGRAM       the emulator (default: peal-nic beside pealrun, else in $PATH)
      --nic-option=OPT    pass OPT to peal-nic (repeatable; with '=' when OPT begins with '-')
      --loss P, --duplicate P, --reorder P, --delay P, --corrupt P, --fault-plan PLAN, --seed S
                          faults on the wire: the same options of peal-nic
      --counters FILE     what the cards did, as JSON, at the end
      --card-cpu CPU      the cards' processor (default: the last that may be used; 'none': do not pin)
      --rank-cpus LIST    the ranks' processors, e.g. 0,2-3 (default: all but the cards'; 'none')
      --oob ADDRESS       serve the out-of-band exchange at tcp:HOST:PORT or unix:PATH instead of a
                          private socket, for ranks that are started elsewhere
      --ranks-here A-B    start only these of the N ranks (needs --oob; the first part of a job that
                          is spread serves the exchange; all parts need the same secret 32 hexadecimal
                          digits in $PEAL_OOB_TOKEN, by which ranks and server know each other)
      --grace SECONDS     kill the other ranks that long after the first failure (default 5;
                          'never': let them end by themselves)
      --timeout SECONDS   kill everything after that time and exit with 124
  -l, --label             put the rank before each line of output
  -h, --help              this text
  -V, --version           the version
)";

enum LongOnly : int {
  kCards = 1000,
  kCard,
  kNic,
  kNicOption,
  kFault,
  kCounters,
  kCardCpu,
  kRankCpus,
  kOob,
  kRanksHere,
  kGrace,
  kTimeout,
};

constexpr option kOptions[] = {{"ranks", required_argument, nullptr, 'n'},
                               {"cards", required_argument, nullptr, kCards},
                               {"card", required_argument, nullptr, kCard},
                               {"nic", required_argument, nullptr, kNic},
                               {"nic-option", required_argument, nullptr, kNicOption},
                               {"loss", required_argument, nullptr, kFault},
                               {"duplicate", required_argument, nullptr, kFault},
                               {"reorder", required_argument, nullptr, kFault},
                               {"corrupt", required_argument, nullptr, kFault},
                               {"delay", required_argument, nullptr, kFault},
                               {"fault-plan", required_argument, nullptr, kFault},
                               {"seed", required_argument, nullptr, kFault},
                               {"counters", required_argument, nullptr, kCounters},
                               {"card-cpu", required_argument, nullptr, kCardCpu},
                               {"rank-cpus", required_argument, nullptr, kRankCpus},
                               {"oob", required_argument, nullptr, kOob},
                               {"ranks-here", required_argument, nullptr, kRanksHere},
                               {"grace", required_argument, nullptr, kGrace},
                               {"timeout", required_argument, nullptr, kTimeout},
                               {"label", no_argument, nullptr, 'l'},
                               {"help", no_argument, nullptr, 'h'},
                               {"version", no_argument, nullptr, 'V'},
                               {nullptr, 0, nullptr, 0}};

bool parse_count(const char* text, uint32_t* value) {
  const char* end = text + strlen(text);
  const auto [stop, bad] = std::from_chars(text, end, *value);
  return bad == std::errc{} && stop == end && *value >= 1 && *value <= PEAL_RANKS_MAX;
}

bool parse_seconds(const char* text, double* value) {
  char* end = nullptr;
  *value = strtod(text, &end);
  return end != text && *end == '\0' && *value >= 0;
}

bool parse_range(const char* text, uint32_t* first, uint32_t* last) {
  const char* end = text + strlen(text);
  auto [stop, bad] = std::from_chars(text, end, *first);
  if (bad != std::errc{}) return false;
  *last = *first;
  if (stop == end) return true;
  if (*stop != '-') return false;
  const auto [stop_last, bad_last] = std::from_chars(stop + 1, end, *last);
  return bad_last == std::errc{} && stop_last == end && *first <= *last;
}

Parsed complain(const char* what, const char* value) {
  fprintf(stderr, "pealrun: %s: %s\nTry 'pealrun --help'.\n", what, value);
  return Parsed::kExitBad;
}

Parsed check(Options* options, const char* here) {
  if (options->ranks == 0) return complain("missing", "-n RANKS");
  if (options->program.empty()) return complain("missing", "PROGRAM");
  if (!options->card_urls.empty() && (options->cards != 0 || !options->nic_options.empty())) {
    return complain("cards named by --card are not started here, so these make no sense",
                    "--cards, --nic-option and faults");
  }
  if (options->card_urls.empty() && options->cards == 0) options->cards = options->ranks;
  options->first = 0;
  options->last = options->ranks - 1;
  if (here != nullptr) {
    if (!parse_range(here, &options->first, &options->last) || options->last >= options->ranks) {
      return complain("--ranks-here needs A-B within the job's ranks, not", here);
    }
    if (options->oob.empty()) return complain("--ranks-here needs", "--oob ADDRESS");
    const char* token = getenv("PEAL_OOB_TOKEN");
    if (token == nullptr || *token == '\0') {
      return complain("--ranks-here needs the same 32 secret hexadecimal digits in all parts",
                      "$PEAL_OOB_TOKEN");
    }
  }
  return Parsed::kRun;
}

}  // namespace

Parsed parse_options(int argc, char** argv, Options* options) {
  const char* here = nullptr;
  while (true) {
    int index = 0;
    // '+': what follows the program's name is the program's.
    const int found = getopt_long(argc, argv, "+n:lhV", kOptions, &index);
    if (found == -1) break;
    switch (found) {
      case 'n':
        if (!parse_count(optarg, &options->ranks)) return complain("-n needs 1 to 1024", optarg);
        break;
      case kCards:
        if (!parse_count(optarg, &options->cards)) {
          return complain("--cards needs 1 to 1024", optarg);
        }
        break;
      case kCard:
        options->card_urls.emplace_back(optarg);
        break;
      case kNic:
        options->nic = optarg;
        break;
      case kNicOption:
        options->nic_options.emplace_back(optarg);
        break;
      case kFault:
        options->nic_options.push_back(std::string("--") + kOptions[index].name);
        options->nic_options.emplace_back(optarg);
        break;
      case kCounters:
        options->counters_file = optarg;
        break;
      case kCardCpu:
        options->card_cpu = optarg;
        break;
      case kRankCpus:
        options->rank_cpus = optarg;
        break;
      case kOob:
        options->oob = optarg;
        break;
      case kRanksHere:
        here = optarg;
        break;
      case kGrace:
        if (strcmp(optarg, "never") == 0) {
          options->grace_s = -1;
        } else if (!parse_seconds(optarg, &options->grace_s)) {
          return complain("--grace needs seconds or 'never'", optarg);
        }
        break;
      case kTimeout:
        if (!parse_seconds(optarg, &options->timeout_s)) {
          return complain("--timeout needs seconds", optarg);
        }
        break;
      case 'l':
        options->label = true;
        break;
      case 'h':
        fputs(kHelp, stdout);
        return Parsed::kExitGood;
      case 'V':
        puts("pealrun " PEAL_VERSION_TEXT);
        return Parsed::kExitGood;
      default:
        fputs("Try 'pealrun --help'.\n", stderr);
        return Parsed::kExitBad;
    }
  }
  for (int i = optind; i < argc; i++) options->program.emplace_back(argv[i]);
  return check(options, here);
}

}  // namespace peal::run
