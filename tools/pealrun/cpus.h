// SPDX-License-Identifier: BSD-2-Clause
// Who runs where: the cards poll, so no rank may share their processor, unless there is only one.
#pragma once

#include <sched.h>

#include <string>

#include "tools/pealrun/options.h"

namespace peal::run {

struct Placement {
  int card_cpu = -1;  // -1: not pinned
  bool pin_ranks = false;
  cpu_set_t ranks = {};
};

bool place(const Options& options, Placement* placement, std::string* error);
// "0,2-3"
std::string cpu_list(const cpu_set_t& cpus);

}  // namespace peal::run
