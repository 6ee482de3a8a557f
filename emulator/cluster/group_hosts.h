// SPDX-License-Identifier: BSD-2-Clause
// What hosts of the virtual-time cluster begin with who drive their cards by themselves: one
// process a card, and one group of all, whose ranks reach each other.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/cluster/one_group.h"
#include "emulator/cluster/violations.h"

namespace peal::sim {

class GroupHosts : protected HostEvents {
 protected:
  // Rank r lives on card r. The observer may be null.
  GroupHosts(const ClusterOptions& options, Observer* observer);
  ~GroupHosts() = default;

  [[nodiscard]] uint32_t ranks() const { return static_cast<uint32_t>(processes_.size()); }
  // A region of host memory that the card may read and write.
  uint32_t add_memory(uint32_t rank, size_t bytes, uint32_t* key) {
    return sim::add_memory(cluster_, processes_[rank], bytes, key);
  }
  // Completions that lie in the rings are the hosts' no longer.
  void take_completions();
  // Acknowledgements and connections that close: until nothing is left to do, or a second.
  void calm_down();
  // Packets and DMA that cards have not given back; "" if none.
  [[nodiscard]] std::string held() const;

  Findings findings_;
  Violations violations_;  // (outlives the cluster)
  Cluster cluster_;
  std::vector<RankProcess> processes_;
};

}  // namespace peal::sim
