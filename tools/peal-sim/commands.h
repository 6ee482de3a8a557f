// SPDX-License-Identifier: BSD-2-Clause
// peal-sim's commands. Each adds its options to the command line and returns what runs when it was
// chosen; the result is the exit status: 0 all checks passed, 1 something was wrong, 3 nothing was
// wrong but something never ended, 2 the command line makes no sense.
#pragma once

#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "emulator/cluster/run.h"
#include "emulator/common/command_line.h"

namespace peal::sim {

// A command line that was understood and makes no sense; the text says what to change.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Command = std::function<int()>;

inline constexpr int kExitWrong = 1;
inline constexpr int kExitStuck = 3;

// Of so many runs that failed, so many only by being stuck.
inline int exit_status(uint64_t failed, uint64_t stuck) {
  if (failed == 0) return 0;
  return failed == stuck ? kExitStuck : kExitWrong;
}

// Of these runs.
inline int exit_status(std::initializer_list<const Report*> reports) {
  uint64_t failed = 0;
  uint64_t stuck = 0;
  for (const Report* const report : reports) {
    failed += report->ok ? 0 : 1;
    stuck += report->only_stuck() ? 1 : 0;
  }
  return exit_status(failed, stuck);
}

// One scenario from options; the command without a name.
Command add_run_command(command_line::App& app);
// Random scenarios for some minutes; and one of them again.
Command add_soak_command(command_line::App& app);
Command add_replay_command(command_line::App& app);
// What hosts can compute while an operation runs.
Command add_overlap_command(command_line::App& app);
// The papers' figures of programs.
Command add_broadcast_figure_command(command_line::App& app);
Command add_alltoall_figure_command(command_line::App& app);
Command add_allgather_figure_command(command_line::App& app);
// Programs, for who counts what they cost a card.
Command add_program_cost_command(command_line::App& app);
// Packets per second of processor time.
Command add_throughput_command(command_line::App& app);

// As it was called: each configuration of the card has a program of its own.
inline std::string& program_name() {
  static std::string name = "peal-sim";
  return name;
}

}  // namespace peal::sim
