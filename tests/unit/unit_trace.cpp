// SPDX-License-Identifier: BSD-2-Clause
// Home 1's side of the comparison of homes: one allgather over N cards wired in memory, without
// loss, as the sorted lines of packet_text. peal-sim --trace and peal-nic --trace must give the
// same lines for the same inputs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/names.h"
#include "emulator/common/packet_text.h"
#include "tests/support/cluster.h"

namespace {

constexpr char kUsage[] =
    "usage: peal-unit-trace [--cards N] [--operation allgather|barrier]\n"
    "                       [--algorithm all-to-all-broadcast|recursive-doubling] [--bytes B]\n"
    "                       [--packets N]\n"
    "Prints the packets of one operation over N cards (default 8), sorted, one per line. With\n"
    "--packets it fails where there are not as many.\n";

struct Options {
  uint32_t cards = 8;
  bool barrier = false;
  peal_algorithm algorithm = PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST;
  size_t bytes = 64;
  size_t packets = 0;  // any number
};

bool parse_number(const char* text, unsigned long most, unsigned long* value) {
  char* end = nullptr;
  *value = std::strtoul(text, &end, 10);
  return end != text && *end == '\0' && *value <= most && text[0] != '-';
}

bool parse(int count, char** words, Options* options) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = words[i];
    const std::string value = words[i + 1];
    unsigned long number = 0;
    if (name == "--cards") {
      if (!parse_number(value.c_str(), CONFIG_GROUP_RANKS_MAX, &number) || number == 0)
        return false;
      options->cards = static_cast<uint32_t>(number);
    } else if (name == "--bytes") {
      if (!parse_number(value.c_str(), 1ul << 24, &number)) return false;
      options->bytes = number;
    } else if (name == "--packets") {
      if (!parse_number(value.c_str(), 1ul << 24, &number) || number == 0) return false;
      options->packets = number;
    } else if (name == "--operation") {
      const auto operation = peal::names::value_of(peal::names::kOperations, value);
      options->barrier = operation == PEAL_OPERATION_BARRIER;
      if (!options->barrier && operation != PEAL_OPERATION_ALLGATHER) return false;
    } else if (name == "--algorithm") {
      const auto algorithm = peal::names::value_of(peal::names::kAlgorithms, value);
      if (algorithm != PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST &&
          algorithm != PEAL_ALGORITHM_RECURSIVE_DOUBLING)
        return false;
      options->algorithm = static_cast<peal_algorithm>(*algorithm);
    } else {
      return false;
    }
  }
  return count % 2 == 1;
}

std::string run(const Options& options, std::vector<std::string>* lines) {
  peal::test::Cluster cluster(options.cards);
  for (uint32_t rank = 0; rank < options.cards; rank++) {
    if (options.barrier) {
      cluster.barrier(rank, 0);
    } else {
      cluster.allgather(rank, 0, options.algorithm, options.bytes);
    }
  }
  cluster.settle();
  for (uint32_t rank = 0; rank < options.cards; rank++) {
    const auto& completions = cluster.completions(rank);
    if (completions.size() != 1 || completions[0].status != PEAL_STATUS_OK) {
      return "rank " + std::to_string(rank) + " did not complete";
    }
    if (options.barrier) continue;
    const std::string wrong = cluster.check_result(rank, 0, options.bytes);
    if (!wrong.empty()) return wrong;
  }
  for (const auto& frame : cluster.trace()) {
    lines->push_back(peal::emulator::packet_text(frame.header));
  }
  std::sort(lines->begin(), lines->end());
  return cluster.problems();
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::strcmp(words[1], "--help") == 0) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  Options options;
  if (!parse(count, words, &options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  std::vector<std::string> lines;
  const std::string wrong = run(options, &lines);
  if (!wrong.empty()) {
    std::fprintf(stderr, "peal-unit-trace: %s\n", wrong.c_str());
    return 1;
  }
  for (const std::string& line : lines) std::puts(line.c_str());
  if (options.packets == 0 || options.packets == lines.size()) return 0;
  std::fprintf(stderr, "peal-unit-trace: %zu packets instead of %zu\n", lines.size(),
               options.packets);
  return 1;
}
