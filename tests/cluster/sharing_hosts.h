// SPDX-License-Identifier: BSD-2-Clause
// Hosts of the virtual-time cluster that do two things at once: collectives, one behind the other,
// and a stream of puts from each rank to the next, so many outstanding that it never stops.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/cluster/group_hosts.h"

namespace peal::sim {

struct Sharing {
  // NONE: no collectives; else BARRIER, or ALLGATHER of `block_bytes` by broadcast-all.
  peal_operation collective = PEAL_OPERATION_NONE;
  uint32_t block_bytes = 0;
  uint32_t puts = 0;  // of each rank, outstanding
  uint32_t put_bytes = 65'536;
};

class SharingHosts final : private GroupHosts {
 public:
  SharingHosts(const ClusterOptions& options, const Sharing& sharing);

  // What is done in so much time, once it is under way.
  struct Done {
    double collective_ns = 0;     // from one to the next, on rank 0
    TimeNs slowest_ns = 0;        // of one, from its post to its end, on any rank
    double put_bytes_per_ns = 0;  // of a rank
  };
  Done run(TimeNs warm_ns, TimeNs length_ns);
  [[nodiscard]] uint32_t failures() const { return failures_; }

 private:
  struct Rank {
    uint32_t key = 0;  // of a region: what is sent, received, put, and put into
    uint64_t sequence = 0;
    TimeNs posted_ns = 0;
    bool under_way = false;  // the collective of then
    uint64_t collectives = 0;
    uint64_t puts = 0;
  };
  enum class What : uint32_t { kCollective, kPut };

  void on_host_event(TimeNs now_ns, uint32_t item) override;
  void on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                     const peal_completion& entry) override;
  // The host posts it when it has seen what came before.
  void post_later(uint32_t rank, What what);
  void post_collective(uint32_t rank);
  void post_put(uint32_t rank);
  void run_until(TimeNs time);

  CostModel costs_;
  Sharing sharing_;
  std::vector<Rank> ranks_;
  TimeNs slowest_ns_ = 0;
  uint32_t failures_ = 0;
};

}  // namespace peal::sim
