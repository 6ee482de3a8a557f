// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/group_hosts.h"

namespace peal::sim {

GroupHosts::GroupHosts(const ClusterOptions& options, Observer* observer)
    : violations_(findings_, observer),
      cluster_(options, &violations_, this),
      processes_(options.cards) {
  std::vector<RankProcess*> everybody;
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    processes_[rank].card = rank;
    open_process(cluster_, processes_[rank]);
    everybody.push_back(&processes_[rank]);
  }
  make_one_group(cluster_, everybody);
}

void GroupHosts::take_completions() {
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    peal_completion taken;
    while (cluster_.poll(rank, processes_[rank].context, &taken)) {
    }
  }
}

void GroupHosts::calm_down() {
  const TimeNs until = cluster_.now() + 1'000'000'000;
  while (cluster_.next_event_ns() < until && cluster_.step()) {
  }
}

std::string GroupHosts::held() const {
  std::string text;
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    if (cluster_.silent(rank)) continue;
    if (cluster_.packets_held(rank) != cluster_.holds(rank).sent_blocks ||
        cluster_.dma_under_way(rank) != 0) {
      text += "card " + std::to_string(rank) + " holds packets or DMA\n";
    }
  }
  return text;
}

}  // namespace peal::sim
