// SPDX-License-Identifier: BSD-2-Clause
// The command line of peal-perf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "abi/wire.h"
#include "peal/peal.h"
#include "tools/ideal-card/lengths.h"

namespace peal::perf {

enum class Memory { kAllocated, kRegistered };

const char* memory_name(Memory memory);

// Between two ranks.
enum class Talk { kSendReceive, kPut, kGet };
inline constexpr Talk kTalks[] = {Talk::kSendReceive, Talk::kPut, Talk::kGet};

const char* talk_name(Talk talk);

// Half of a context's requests where rings are short, less those for signals.
inline constexpr uint32_t kWindowMax = 30;

// As a file's name; then there is no table.
inline constexpr const char* kStandardOutput = "-";

// libpeal's own choice.
inline constexpr const char* kAuto = "auto";

struct Options {
  // NONE: `talk`, or, without one, groups are made and destroyed.
  peal_operation operation = PEAL_OPERATION_NONE;
  std::optional<Talk> talk;
  uint32_t ranks = 8;
  std::vector<uint64_t> sizes = {4, 1024};
  std::vector<std::string> algorithms = {kAuto};  // by their names
  std::vector<Memory> memories = {Memory::kAllocated};
  uint32_t iterations = 1000;
  uint32_t warmup = 100;
  uint32_t rounds = 0;           // 0: one, or ten where sides are compared or overlap is measured
  std::optional<uint32_t> root;  // of broadcasts; else each rank in turn
  ideal::Spread spread = ideal::Spread::kEven;  // of allgatherv and alltoallv
  bool in_place = false;
  bool persistent = false;
  bool floor = false;
  bool compare_loss = false;
  bool overlap = false;
  uint32_t work_us = 0;  // of overlap; 0: as long as the operation takes
  uint32_t tests = 0;
  uint32_t at_once = 1;             // groups
  uint32_t window = 16;             // messages, puts or gets under way together
  std::string json;                 // file, or kStandardOutput
  std::vector<std::string> launch;  // for pealrun, when peal-perf launches itself

  [[nodiscard]] bool prints_table() const { return json != kStandardOutput; }
};

// The exit status when the program should end now: help, version or what was wrong was printed.
std::optional<int> parse_options(int argc, char** argv, Options* options);

}  // namespace peal::perf
