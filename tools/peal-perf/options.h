// SPDX-License-Identifier: BSD-2-Clause
// The command line of peal-perf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "peal/peal.h"

namespace peal::perf {

enum class Operation { kBarrier, kAllgather };
enum class Memory { kAllocated, kRegistered };

std::string operation_name(Operation operation);
const char* memory_name(Memory memory);
std::string algorithm_name(Operation operation, peal_allgather_algorithm algorithm);

struct Options {
  Operation operation = Operation::kAllgather;
  uint32_t ranks = 8;
  std::vector<uint64_t> sizes = {4, 1024};
  std::vector<peal_allgather_algorithm> algorithms = {PEAL_ALLGATHER_AUTO};
  std::vector<Memory> memories = {Memory::kAllocated};
  uint32_t iterations = 1000;
  uint32_t warmup = 100;
  uint32_t rounds = 0;  // 0: one, or ten with --floor
  bool in_place = false;
  bool floor = false;
  std::string json;                 // file
  std::vector<std::string> launch;  // for pealrun, when peal-perf launches itself
};

// The exit status when the program should end now: help, version or what was wrong was printed.
std::optional<int> parse_options(int argc, char** argv, Options* options);

}  // namespace peal::perf
