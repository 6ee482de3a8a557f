// SPDX-License-Identifier: BSD-2-Clause
// Who runs where. Cards poll: either no rank shares their processor, unless there is only one, or
// they give way, and ranks use all processors, fewer of them beside the cards if that is wanted;
// then the cards may use all as well.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

#include "tools/pealrun/options.h"

namespace peal::run {

struct Placement {
  std::vector<int> card_cpus;  // of the cards' polling cores; none: one that is not pinned
  bool pin_ranks = false;
  cpu_set_t ranks = {};
  std::vector<int> of_rank;  // the one of these that a rank of the job has; none: it has all
  bool cards_yield = false;  // they share a processor with ranks
};

bool place(const Options& options, Placement* placement, std::string* error);
// Where this rank runs. Its card is on the same processor where cards are spread, as long as each
// rank has one.
cpu_set_t cpus_of_rank(const Placement& placement, uint32_t rank);
// "0,2-3"
std::string cpu_list(const cpu_set_t& cpus);

}  // namespace peal::run
