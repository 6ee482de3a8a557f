// SPDX-License-Identifier: BSD-2-Clause
// The command line of pealrun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace peal::run {

inline constexpr double kGraceDefaultS = 5;

struct Options {
  uint32_t ranks = 0;  // of the whole job
  uint32_t first = 0;  // ranks started here: first to last
  uint32_t last = 0;
  uint32_t cards = 0;                    // to start; zero when `card_urls` names running ones
  std::vector<std::string> card_urls;    // rank i uses i modulo their number
  std::string nic;                       // program; empty: beside pealrun, else in $PATH
  std::vector<std::string> nic_options;  // passed on as they are
  std::string counters_file;             // what the cards did, written by peal-nic at the end
  std::string card_cpu;                  // empty: chosen; "none": not pinned
  std::string rank_cpus;                 // the same; else a list such as 0,2-3
  std::string placement = "apart";       // or "shared", "balanced", "spread"
  std::string oob;                       // empty: a private Unix socket
  double grace_s =
      kGraceDefaultS;    // from the first failure until the others are killed; < 0: never
  double timeout_s = 0;  // of the whole job; 0: none
  bool label = false;    // prefix output lines with the rank
  std::vector<std::string> program;
};

// The exit status when the program should end now: help, version or what was wrong was printed.
std::optional<int> parse_options(int argc, char** argv, Options* options);

}  // namespace peal::run
