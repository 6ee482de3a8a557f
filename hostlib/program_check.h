// SPDX-License-Identifier: BSD-2-Clause
// What can be said of a program before any card has it: what a card would refuse, and what would
// never end or may overwrite somebody's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hostlib/program.h"

namespace peal::host {

struct Finding {
  bool wrong;     // a card would refuse it, or it would wait for ever; else only worth knowing
  uint32_t step;  // index of the descriptor
  std::string text;
};

// In the order of the descriptors. Nothing wrong: a card takes the program, if it has memory keys,
// queues and counters enough.
std::vector<Finding> check_program(const Program& program);
// "descriptor 3: …", a line each.
std::string text_of(const std::vector<Finding>& findings);

}  // namespace peal::host
