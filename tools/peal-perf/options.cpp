// SPDX-License-Identifier: BSD-2-Clause
// Parsing of peal-perf's command line; see options.h.
#include "tools/peal-perf/options.h"

#include <getopt.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace peal::perf {
namespace {

constexpr uint64_t kBlockMax = 64u << 20;
constexpr uint32_t kRanksMax = 1024;

constexpr const char* kHelp = R"(usage: peal-perf allgather|barrier [OPTIONS]

Measures the latency of a collective: max(end) - min(start) over the ranks, per iteration. Every rank
writes its whole block before, and reads and checks the whole result after each operation; both are in
the measured time. Without a launcher's environment (PEAL_RANK) it starts itself under pealrun.

      --ranks N            number of ranks (default 8; under a launcher, the launcher's)
      --sizes A,B,...      bytes per rank (default 4,1024; suffixes k and M)
      --algorithm NAME     auto, all-to-all-broadcast, recursive-doubling, or all
      --memory KIND        alloc (made by the card), registered (any memory), or both
      --iterations N       measured per size (default 1000)
      --warmup N           not measured, per round (default 100)
      --rounds N           in so many parts (default 1; with --floor 10)
      --in-place           the own block lies in the receive buffer
      --floor              also measure the ideal card, in alternating rounds: copies and flags only
      --json FILE          write the records as a JSON list
      --loss P, --duplicate P, --reorder P, --delay P, --corrupt P, --fault-plan PLAN, --seed S,
      --cards C, --card-cpu CPU, --rank-cpus LIST, --nic-option=OPT, --timeout SECONDS,
      --counters FILE      for pealrun, when peal-perf starts itself
  -h, --help               this text
  -V, --version            the version
)";

enum LongOnly : int {
  kRanks = 1000,
  kSizes,
  kAlgorithm,
  kMemory,
  kIterations,
  kWarmup,
  kRounds,
  kInPlace,
  kFloor,
  kJson,
  kLaunch,
};

constexpr option kOptions[] = {{"ranks", required_argument, nullptr, kRanks},
                               {"sizes", required_argument, nullptr, kSizes},
                               {"algorithm", required_argument, nullptr, kAlgorithm},
                               {"memory", required_argument, nullptr, kMemory},
                               {"iterations", required_argument, nullptr, kIterations},
                               {"warmup", required_argument, nullptr, kWarmup},
                               {"rounds", required_argument, nullptr, kRounds},
                               {"in-place", no_argument, nullptr, kInPlace},
                               {"floor", no_argument, nullptr, kFloor},
                               {"json", required_argument, nullptr, kJson},
                               {"loss", required_argument, nullptr, kLaunch},
                               {"duplicate", required_argument, nullptr, kLaunch},
                               {"reorder", required_argument, nullptr, kLaunch},
                               {"delay", required_argument, nullptr, kLaunch},
                               {"corrupt", required_argument, nullptr, kLaunch},
                               {"fault-plan", required_argument, nullptr, kLaunch},
                               {"seed", required_argument, nullptr, kLaunch},
                               {"cards", required_argument, nullptr, kLaunch},
                               {"card-cpu", required_argument, nullptr, kLaunch},
                               {"rank-cpus", required_argument, nullptr, kLaunch},
                               {"nic-option", required_argument, nullptr, kLaunch},
                               {"timeout", required_argument, nullptr, kLaunch},
                               {"counters", required_argument, nullptr, kLaunch},
                               {"help", no_argument, nullptr, 'h'},
                               {"version", no_argument, nullptr, 'V'},
                               {nullptr, 0, nullptr, 0}};

bool parse_number(std::string_view text, uint64_t most, uint64_t* value) {
  uint64_t unit = 1;
  if (!text.empty() && text.back() == 'k') unit = 1024;
  if (!text.empty() && text.back() == 'M') unit = 1024 * 1024;
  if (unit != 1) text.remove_suffix(1);
  const auto [stop, bad] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (bad != std::errc{} || stop != text.data() + text.size() || *value > most / unit) return false;
  *value *= unit;
  return true;
}

bool parse_number(std::string_view text, uint32_t most, uint32_t* value) {
  uint64_t wide = 0;
  if (!parse_number(text, uint64_t{most}, &wide)) return false;
  *value = static_cast<uint32_t>(wide);
  return true;
}

bool parse_sizes(std::string_view text, std::vector<uint64_t>* sizes) {
  sizes->clear();
  while (true) {
    const size_t comma = text.find(',');
    uint64_t size = 0;
    if (!parse_number(text.substr(0, comma), kBlockMax, &size)) return false;
    sizes->push_back(size);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

bool parse_algorithm(std::string_view text, std::vector<peal_allgather_algorithm>* algorithms) {
  algorithms->clear();
  if (text == "auto") algorithms->push_back(PEAL_ALLGATHER_AUTO);
  const bool all = text == "all";
  if (all || text == "all-to-all-broadcast") {
    algorithms->push_back(PEAL_ALLGATHER_ALL_TO_ALL_BROADCAST);
  }
  if (all || text == "recursive-doubling") {
    algorithms->push_back(PEAL_ALLGATHER_RECURSIVE_DOUBLING);
  }
  return !algorithms->empty();
}

bool parse_memory(std::string_view text, std::vector<Memory>* memories) {
  memories->clear();
  const bool both = text == "both";
  if (both || text == "alloc") memories->push_back(Memory::kAllocated);
  if (both || text == "registered") memories->push_back(Memory::kRegistered);
  return !memories->empty();
}

bool parse_one(int found, int index, Options* options) {
  switch (found) {
    case kRanks:
      return parse_number(optarg, kRanksMax, &options->ranks) && options->ranks >= 1;
    case kSizes:
      return parse_sizes(optarg, &options->sizes);
    case kAlgorithm:
      return parse_algorithm(optarg, &options->algorithms);
    case kMemory:
      return parse_memory(optarg, &options->memories);
    case kIterations:
      return parse_number(optarg, 100'000'000u, &options->iterations) && options->iterations >= 1;
    case kWarmup:
      return parse_number(optarg, 1'000'000u, &options->warmup);
    case kRounds:
      return parse_number(optarg, 1000u, &options->rounds) && options->rounds >= 1;
    case kInPlace:
      options->in_place = true;
      return true;
    case kFloor:
      options->floor = true;
      return true;
    case kJson:
      options->json = optarg;
      return true;
    case kLaunch:
      options->launch.push_back(std::string("--") + kOptions[index].name + "=" + optarg);
      return true;
    default:
      return false;
  }
}

}  // namespace

const char* operation_name(Operation operation) {
  return operation == Operation::kBarrier ? "barrier" : "allgather";
}

const char* memory_name(Memory memory) {
  return memory == Memory::kAllocated ? "alloc" : "registered";
}

const char* algorithm_name(Operation operation, peal_allgather_algorithm algorithm) {
  if (operation == Operation::kBarrier) return "dissemination";
  switch (algorithm) {
    case PEAL_ALLGATHER_ALL_TO_ALL_BROADCAST:
      return "all-to-all-broadcast";
    case PEAL_ALLGATHER_RECURSIVE_DOUBLING:
      return "recursive-doubling";
    case PEAL_ALLGATHER_AUTO:
      break;
  }
  return "auto";
}

Parsed parse_options(int argc, char** argv, Options* options) {
  while (true) {
    int index = 0;
    const int found = getopt_long(argc, argv, "hV", kOptions, &index);
    if (found == -1) break;
    if (found == 'h') {
      fputs(kHelp, stdout);
      return Parsed::kExitGood;
    }
    if (found == 'V') {
      printf("peal-perf %s\n", peal_version());
      return Parsed::kExitGood;
    }
    if (found == '?' || !parse_one(found, index, options)) {
      if (found != '?') {
        fprintf(stderr, "peal-perf: --%s does not take \"%s\"\n", kOptions[index].name, optarg);
      }
      fputs("Try 'peal-perf --help'.\n", stderr);
      return Parsed::kExitBad;
    }
  }
  const char* operation = optind < argc ? argv[optind] : "";
  if (optind + 1 == argc && strcmp(operation, "allgather") == 0) {
    options->operation = Operation::kAllgather;
  } else if (optind + 1 == argc && strcmp(operation, "barrier") == 0) {
    options->operation = Operation::kBarrier;
  } else {
    fputs("peal-perf: expected one operation, allgather or barrier\nTry 'peal-perf --help'.\n",
          stderr);
    return Parsed::kExitBad;
  }
  if (options->operation == Operation::kBarrier) {
    options->sizes = {0};
    options->algorithms = {PEAL_ALLGATHER_AUTO};
    options->memories = {Memory::kAllocated};
  }
  if (options->rounds == 0) options->rounds = options->floor ? 10 : 1;
  return Parsed::kRun;
}

}  // namespace peal::perf
