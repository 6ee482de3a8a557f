// SPDX-License-Identifier: BSD-2-Clause
// The options for a bad wire, written once: for the programs that have one (peal-nic, peal-sim) and
// for those that pass them on (pealrun, peal-perf).
#pragma once

#include <string>
#include <vector>

#include "emulator/common/command_line.h"
#include "emulator/common/fault_injector.h"

namespace peal::command_line {

// The app keeps references to it.
class FaultOptions {
 public:
  // --loss, --duplicate, --reorder, --reorder-us, --delay, --delay-us, --corrupt
  void add_faults(App& app);
  // --fault-plan and --seed
  void add_plan_and_seed(App& app);

  // After parsing. Empty, or what is wrong with it.
  std::string read(emulator::FaultPlan* plan) const;
  [[nodiscard]] uint64_t seed() const { return seed_; }
  // The same once more, for another command line.
  [[nodiscard]] std::vector<std::string> words() const;

 private:
  emulator::FaultPlan faults_;
  double reorder_us_ = 20;
  double delay_us_ = 200;
  std::vector<std::string> plans_;
  uint64_t seed_ = 1;
  std::vector<Option> options_;
};

}  // namespace peal::command_line
