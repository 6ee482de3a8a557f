// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/corners.h"

#include <algorithm>

#include "emulator/cluster/blocks.h"

namespace peal::sim {

namespace {

using Both = struct {
  const Scenario& scenario;
  const Report& report;
};

bool lossy(const Both& run) {
  return run.scenario.faults.loss >= 0.05 && run.report.faults.lost > 0;
}
bool counted(const Both& run, const char* name) { return run.report.counters.contains(name); }
bool happened(const Both& run, const char* name) { return run.report.happened.contains(name); }
bool completed(const Both& run, peal_operation operation, peal_algorithm algorithm) {
  return run.report.completed_as.contains({operation, algorithm});
}

// Two ranks 2^k apart watch each other; all others are strangers on the wire.
bool watch_each_other(const GroupPlan& group, uint32_t a, uint32_t b) {
  const auto ranks = static_cast<uint32_t>(group.places.size());
  for (uint32_t one = 0; one < ranks; one++)
    for (uint32_t distance = 1; distance < ranks; distance *= 2) {
      const uint32_t from = group.places[one].card;
      const uint32_t to = group.places[(one + distance) % ranks].card;
      if ((from == a && to == b) || (from == b && to == a)) return true;
    }
  return false;
}

bool peers_cut(const Both& run) {
  if (run.report.cluster.dropped_cut == 0) return false;
  return std::any_of(run.scenario.cuts.begin(), run.scenario.cuts.end(), [&](const WireCut& cut) {
    return std::any_of(run.scenario.groups.begin(), run.scenario.groups.end(),
                       [&](const GroupPlan& group) {
                         return watch_each_other(group, cut.from_card, cut.to_card);
                       });
  });
}

// Strangers in a group of which somebody has gone on without their wire.
bool strangers_cut(const Both& run) {
  const auto goes_on = [&](size_t number, const WireCut& cut) {
    const GroupPlan& group = run.scenario.groups[number];
    const auto on = [&group](uint32_t card) {
      return std::any_of(group.places.begin(), group.places.end(),
                         [card](const Place& place) { return place.card == card; });
    };
    return cut.until_ns == kNever && run.report.groups[number].done_ns > cut.from_ns &&
           on(cut.from_card) && on(cut.to_card) &&
           !watch_each_other(group, cut.from_card, cut.to_card);
  };
  for (const WireCut& cut : run.scenario.cuts)
    for (size_t number = 0; number < run.scenario.groups.size(); number++)
      if (goes_on(number, cut)) return true;
  return false;
}

// An operation of that kind, over so many ranks, succeeded on all of them.
bool any_done(const Both& run, bool (*holds)(const OperationPlan&, uint32_t ranks)) {
  for (size_t number = 0; number < run.scenario.groups.size(); number++) {
    const GroupPlan& group = run.scenario.groups[number];
    const std::vector<bool>& done = run.report.groups[number].done;
    for (size_t i = 0; i < done.size(); i++)
      if (done[i] && holds(group.operations[i], static_cast<uint32_t>(group.places.size())))
        return true;
  }
  return false;
}
// Several packets, with whatever sizes the card was built.
constexpr uint64_t kLong = 16'000;

// A block for all that is empty, and one of several packets.
bool empty_beside_long(const OperationPlan& operation, uint32_t ranks) {
  if (operation.operation != PEAL_OPERATION_ALLGATHERV) return false;
  bool empty = false;
  bool several = false;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    const uint64_t bytes = block_length(operation, {rank, 0});
    empty |= bytes == 0;
    several |= bytes > kLong;
  }
  return empty && several;
}
// Two ranks have several packets for each other.
bool both_long(const OperationPlan& operation, uint32_t ranks) {
  if (operation.operation != PEAL_OPERATION_ALLTOALLV) return false;
  for (uint32_t a = 0; a < ranks; a++)
    for (uint32_t b = 0; b < a; b++)
      if (std::min(block_length(operation, {a, b}), block_length(operation, {b, a})) > kLong)
        return true;
  return false;
}

// An operation behind that sequence was done by a group that began before it.
bool passes(const Both& run, uint64_t end) {
  for (size_t number = 0; number < run.scenario.groups.size(); number++) {
    const uint64_t first = run.scenario.groups[number].first_sequence;
    const std::vector<bool>& done = run.report.groups[number].done;
    if (first >= end || end - first >= done.size()) continue;
    if (std::find(done.begin() + static_cast<ptrdiff_t>(end - first), done.end(), true) !=
        done.end())
      return true;
  }
  return false;
}

bool past_epochs(const Both& run) {
  for (uint64_t half = 2; half <= 16; half *= 2)
    if (passes(run, half << 32)) return true;
  return false;
}

struct Corner {
  const char* name;
  bool (*holds)(const Both&);
};

// Sorted as they are printed.
constexpr Corner kCorners[] = {
    {"barrier done",
     [](const Both& run) {
       return completed(run, PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION);
     }},
    {"all-to-all broadcast done",
     [](const Both& run) {
       return completed(run, PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST);
     }},
    {"recursive doubling done",
     [](const Both& run) {
       return completed(run, PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RECURSIVE_DOUBLING);
     }},
    {"direct allgather done",
     [](const Both& run) {
       return completed(run, PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_DIRECT);
     }},
    {"ring allgather done",
     [](const Both& run) { return completed(run, PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RING); }},
    {"broadcast done",
     [](const Both& run) {
       return completed(run, PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL);
     }},
    {"all-to-all done",
     [](const Both& run) { return completed(run, PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_BRUCK); }},
    {"direct all-to-all done",
     [](const Both& run) {
       return completed(run, PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_DIRECT);
     }},
    {"allgatherv done",
     [](const Both& run) {
       return completed(run, PEAL_OPERATION_ALLGATHERV, PEAL_ALGORITHM_DIRECT);
     }},
    {"direct alltoallv done",
     [](const Both& run) {
       return completed(run, PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_DIRECT);
     }},
    {"alltoallv in steps done",
     [](const Both& run) {
       return completed(run, PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_BRUCK);
     }},
    {"an empty block for all beside a long one",
     [](const Both& run) { return any_done(run, empty_beside_long); }},
    {"two ranks with long blocks for each other",
     [](const Both& run) { return any_done(run, both_long); }},
    {"in place on some ranks",
     [](const Both& run) { return happened(run, "in place on some ranks"); }},
    {"a broadcast that waits for credits", [](const Both& run) { return happened(run, "credit"); }},
    {"an engine that makes most of batches",
     [](const Both& run) {
       const uint32_t batch = run.scenario.dma_batch;
       return batch > 1 && run.report.cluster.dma_most >= batch;
     }},
    {"destroy done",
     [](const Both& run) {
       return completed(run, PEAL_OPERATION_DESTROY, PEAL_ALGORITHM_DISSEMINATION);
     }},
    {"recycling", [](const Both& run) { return run.report.recycle_signals > 0; }},
    {"several groups",
     [](const Both& run) {
       return std::count_if(run.report.groups.begin(), run.report.groups.end(),
                            [](const GroupEnd& group) { return group.done_ns > 0; }) > 1;
     }},
    {"a group in the place of another",
     [](const Both& run) { return happened(run, "a group in the place of another"); }},
    {"early data", [](const Both& run) { return counted(run, "early_data"); }},
    {"staged", [](const Both& run) { return counted(run, "staged"); }},
    {"loss of 5 % or more", lossy},
    {"repairs", [](const Both& run) { return run.report.repairs > 0; }},
    {"duplicates", [](const Both& run) { return run.report.faults.duplicated > 0; }},
    {"reordering", [](const Both& run) { return run.report.faults.reordered > 0; }},
    {"delay", [](const Both& run) { return run.report.faults.delayed > 0; }},
    {"damage", [](const Both& run) { return run.report.faults.corrupted > 0; }},
    {"partition", [](const Both& run) { return run.report.faults.partitioned > 0; }},
    {"cut between peers", peers_cut},
    {"cut for good between strangers", strangers_cut},
    {"silence", [](const Both& run) { return happened(run, "silence"); }},
    {"kill", [](const Both& run) { return happened(run, "kill"); }},
    {"kill with loss", [](const Both& run) { return happened(run, "kill") && lossy(run); }},
    {"death in set-up", [](const Both& run) { return happened(run, "death in set-up"); }},
    {"window reset", [](const Both& run) { return happened(run, "reset"); }},
    {"wild index", [](const Both& run) { return happened(run, "wild index"); }},
    {"restart", [](const Both& run) { return happened(run, "restart"); }},
    {"group after a restart",
     [](const Both& run) { return happened(run, "group after a restart"); }},
    {"freeze", [](const Both& run) { return happened(run, "freeze"); }},
    {"freeze with loss", [](const Both& run) { return happened(run, "freeze") && lossy(run); }},
    {"unmap", [](const Both& run) { return happened(run, "unmap"); }},
    {"fault told, with loss",
     [](const Both& run) { return run.report.dma_faults > 0 && lossy(run); }},
    {"abandon, reserved", [](const Both& run) { return happened(run, "abandon, reserved"); }},
    {"abandon, connected", [](const Both& run) { return happened(run, "abandon, connected"); }},
    {"abort", [](const Both& run) { return happened(run, "abort"); }},
    {"abort with loss", [](const Both& run) { return happened(run, "abort") && lossy(run); }},
    {"memory in mid-run", [](const Both& run) { return happened(run, "memory in mid-run"); }},
    {"a place reserved and given back",
     [](const Both& run) { return happened(run, "a place reserved and given back"); }},
    {"a command refused", [](const Both& run) { return happened(run, "a command refused"); }},
    {"early close", [](const Both& run) { return happened(run, "early close"); }},
    {"early close with loss",
     [](const Both& run) { return happened(run, "early close") && lossy(run); }},
    {"mismatch told", [](const Both& run) { return run.report.mismatched > 0; }},
    {"mismatch told, with loss",
     [](const Both& run) { return run.report.mismatched > 0 && lossy(run); }},
    {"death told", [](const Both& run) { return run.report.peer_dead > 0; }},
    {"death told, with loss",
     [](const Both& run) { return run.report.peer_dead > 0 && lossy(run); }},
    {"sequences past 2^32", [](const Both& run) { return passes(run, uint64_t{1} << 32); }},
    {"epochs past 2^32", past_epochs},
    {"out of packets",
     [](const Both& run) {
       return counted(run, "no_packet") || run.report.cluster.dropped_full > 0;
     }},
    // (Large cards hardly ever run out of DMA records: no_dma_record is a corner of small ones.)
    {"DMA refused by the engine",
     [](const Both& run) { return run.report.cluster.dma_refused > 0; }},
    {"memory lent, and something sent again",
     [](const Both& run) {
       return run.report.cluster.dma_lent > 0 && counted(run, "sent_repair");
     }},
    {"DMA out of order", [](const Both& run) { return run.report.cluster.dma_overtaken > 0; }},
    {"processor of 5 us a packet or slower",
     [](const Both& run) { return run.scenario.costs.packet_ns >= 5 * kMicrosecond; }},
    {"NACKs after 50 us or sooner",
     [](const Both& run) { return run.scenario.timeouts.nack_ns <= 50 * kMicrosecond; }},
    {"NACKs after 300 us or later",
     [](const Both& run) { return run.scenario.timeouts.nack_ns >= 300 * kMicrosecond; }},
};

}  // namespace

Corners::Corners() : reached_(std::size(kCorners)) {}

void Corners::add(const Scenario& scenario, const Report& report) {
  const Both run{scenario, report};
  for (size_t i = 0; i < std::size(kCorners); i++) reached_[i] += kCorners[i].holds(run) ? 1 : 0;
}

std::string Corners::table() const {
  std::string text;
  for (size_t i = 0; i < std::size(kCorners); i++) {
    std::string count = std::to_string(reached_[i]);
    count.insert(0, 8 - std::min<size_t>(8, count.size()), ' ');
    text += count + "  " + kCorners[i].name + "\n";
  }
  return text;
}

std::vector<std::string> Corners::missing() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::size(kCorners); i++)
    if (reached_[i] == 0) names.emplace_back(kCorners[i].name);
  return names;
}

}  // namespace peal::sim
