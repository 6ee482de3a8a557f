// SPDX-License-Identifier: BSD-2-Clause
// What whoever drives the cluster's cards by itself begins with: processes that have a context
// each, memory of theirs, and one group of all of them. All throw std::runtime_error, which says
// what failed and how, where a card refuses.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/cluster/cluster.h"

namespace peal::sim {

// One rank's.
struct RankProcess {
  uint32_t card = 0;
  uint32_t context = 0;
  peal_peer_address address = {};  // in the group
};

void require(peal_status status, const char* what);
// Opens its context.
void open_process(Cluster& cluster, RankProcess& process);
// A region of the process's memory that its card may read and write; the key by which it does.
uint32_t add_memory(Cluster& cluster, const RankProcess& process, size_t bytes, uint32_t* key);
// One group: rank r is the process at r. All reach each other: the peers of a dissemination from
// the beginning, the others by a table of addresses in each process's memory.
void make_one_group(Cluster& cluster, const std::vector<RankProcess*>& ranks);

}  // namespace peal::sim
