// SPDX-License-Identifier: BSD-2-Clause
// One run of one scenario, from the first context to the last packet given back: a safety phase
// under faults, a healed phase in which everything must finish, a drain, and a teardown that must
// leave nothing. The report is all that anybody keeps of it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emulator/cluster/cluster.h"
#include "emulator/cluster/observer.h"
#include "emulator/cluster/scenario.h"

namespace peal::sim {

// What a group came to; nothing, where it was never made.
struct GroupEnd {
  std::vector<bool> done;  // by operation of its plan: it succeeded on all ranks
  TimeNs done_ns = 0;      // when the last post of any rank succeeded, its destroy included
};

struct Report {
  bool ok = false;
  std::map<std::string, uint64_t> findings;  // check: how often it failed
  std::vector<std::string> lines;            // the first of them in words
  uint64_t trace_hash = 0;
  TimeNs finished_ns = 0;  // when the last completion was written
  TimeNs drained_ns = 0;   // when nothing was left to do
  uint32_t ranks = 0;
  uint64_t completed = 0;  // posts completed with success
  uint64_t mismatched = 0;
  uint64_t peer_dead = 0;
  uint64_t dma_faults = 0;
  std::vector<GroupEnd> groups;
  // Success, by operation and algorithm.
  std::map<std::pair<uint8_t, uint8_t>, uint64_t> completed_as;
  std::map<std::string, uint64_t> happened;  // accidents that met somebody at work, by name
  std::vector<TimeNs>
      latencies_ns;  // of every operation of every group: last completion - first post
  // Of the same: from the end of the group's operation before it, or the first post, to its own. A
  // rank that goes ahead of the others lengthens latencies, which then overlap, but no period.
  std::vector<TimeNs> periods_ns;
  // Of the same: from its last post until the last host has its completion and has done its work.
  std::vector<TimeNs> done_ns;
  std::array<uint64_t, PEAL_PACKET_TYPE_COUNT> packets{};  // sent, by type, repairs included
  uint64_t needed = 0;  // that would have done, had nothing been lost, late or asked for
  uint64_t repairs = 0;
  uint64_t recycle_signals = 0;
  std::map<std::string, uint64_t> counters;  // of all cards, those that are not zero
  ClusterCounts cluster;
  emulator::FaultCounts faults;
  Checksums checksums = Checksums::kSoftware;

  // Nothing was wrong but that something never ended.
  [[nodiscard]] bool only_stuck() const;
  // Packets sent per packet needed.
  [[nodiscard]] double effort() const {
    return needed == 0 ? 0 : static_cast<double>(cluster.sent) / static_cast<double>(needed);
  }
  // Questions, answers that they came too early, and repairs: of all packets sent, so many.
  [[nodiscard]] double repair_share() const {
    const uint64_t packets_to_repair =
        packets[PEAL_PACKET_NACK] + packets[PEAL_PACKET_NOT_YET] + repairs;
    if (cluster.sent == 0) return 0;
    return static_cast<double>(packets_to_repair) / static_cast<double>(cluster.sent);
  }
  // "right-bytes, stuck": the checks that failed.
  [[nodiscard]] std::string failed_checks() const;
};

struct RunOptions {
  Observer* observer = nullptr;  // sees what the checkers see
  // Called now and then with the virtual time and the posts still to be completed.
  std::function<void(TimeNs now_ns, uint64_t unfinished, uint64_t sent)> progress;
};

// The scenario must make sense (Scenario::problem()).
[[nodiscard]] Report run(const Scenario& scenario, const RunOptions& options = {});
// Runs it twice, with both clusters in memory, and adds the finding "deterministic" when their
// traces differ.
[[nodiscard]] Report run_twice(const Scenario& scenario);

}  // namespace peal::sim
