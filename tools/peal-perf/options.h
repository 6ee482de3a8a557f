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

// libpeal's own choice.
inline constexpr const char* kAuto = "auto";

struct Options {
  peal_operation operation = PEAL_OPERATION_NONE;  // NONE: groups are made and destroyed
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
  std::string json;                 // file
  std::vector<std::string> launch;  // for pealrun, when peal-perf launches itself
};

// The exit status when the program should end now: help, version or what was wrong was printed.
std::optional<int> parse_options(int argc, char** argv, Options* options);

}  // namespace peal::perf
