// SPDX-License-Identifier: BSD-2-Clause
// The options that say which operation ranks post; the same in all commands that post one.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/cluster/scenario.h"
#include "emulator/common/command_line.h"

namespace peal::sim {

struct OperationOptions {
  std::string operation = "allgather";
  std::string algorithm;
  uint32_t bytes = 64;
  bool in_place = false;
  std::string root = "0";

  void add_to(command_line::Group& group);
  // With root 0 where it is to be drawn. Throws UsageError.
  [[nodiscard]] OperationPlan plan(uint64_t ranks) const;
  // Whether draw_roots() has something to do.
  [[nodiscard]] bool random_root() const;
};

// Another root for each operation, decided by the scenario's seed.
void draw_roots(Scenario& scenario);

}  // namespace peal::sim
