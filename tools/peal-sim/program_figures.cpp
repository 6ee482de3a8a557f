// SPDX-License-Identifier: BSD-2-Clause
#include "tools/peal-sim/program_figures.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "emulator/cluster/overlap.h"
#include "hostlib/program_collectives.h"
#include "tools/peal-sim/program_hosts.h"
#include "tools/peal-sim/rendezvous_hosts.h"

namespace peal::sim {
namespace {

void fill(uint8_t* to, size_t bytes, uint64_t salt) {
  uint64_t state = salt * 2 + 1;
  for (size_t i = 0; i < bytes; i++) {
    if (i % 8 == 0) state = state * 6364136223846793005u + 1442695040888963407u;
    to[i] = static_cast<uint8_t>(state >> (8 * (i % 8)));
  }
}

ClusterOptions options_of(const CostModel& model, uint64_t cards) {
  const std::string problem = network_problem(model, cards);
  if (!problem.empty()) throw std::runtime_error(problem);
  ClusterOptions options;
  options.cards = static_cast<uint32_t>(cards);
  options.costs = model;
  options.checksums = Checksums::kSkipped;
  options.check_seals = false;
  return options;
}

// The model's cards count no time for what a host does before its entry is there.
TimeNs start_cost(const CostModel& model, Start start, uint64_t programs, uint64_t descriptors) {
  const TimeNs posts = programs * model.post_ns;
  return start == Start::kResident ? posts : posts + descriptors * model.enqueue_ns;
}

void expect_good(const ProgramHosts& hosts) {
  if (const std::string problems = hosts.problems(); !problems.empty()) {
    throw std::runtime_error(problems);
  }
}

uint64_t count_of(const host::Programs& programs) {
  uint64_t count = 0;
  for (const auto& program : programs) count += program->count();
  return count;
}

// The hosts of a pairwise all-to-all, and what each must have in the end.
struct Alltoall {
  Alltoall(const CostModel& model, const AlltoallFigure& all)
      : figure(all),
        hosts(options_of(model, cards_of(all)),
              {.bytes = all.ranks * all.block_bytes, .ranks_per_card = all.ranks_per_card},
              [all](const ProgramHosts::Place& place) {
                return only(host::pairwise_alltoall(place.rank, all.ranks, place.send,
                                                    all.block_bytes, all.window, place.receives));
              }) {
    for (uint32_t rank = 0; rank < figure.ranks; rank++) {
      fill(hosts.send(rank), figure.ranks * figure.block_bytes, rank + 1);
    }
  }

  void check() {
    expect_good(hosts);
    const size_t block = figure.block_bytes;
    for (uint32_t rank = 0; rank < figure.ranks; rank++) {
      for (uint32_t from = 0; from < figure.ranks; from++) {
        if (std::memcmp(hosts.receive(rank) + from * block, hosts.send(from) + rank * block,
                        block) != 0) {
          throw std::runtime_error("rank " + std::to_string(rank) + " has not got rank " +
                                   std::to_string(from) + "'s block");
        }
      }
    }
  }

  // What a start has brought, so that the next one is seen to bring it.
  void clear() {
    for (uint32_t rank = 0; rank < figure.ranks; rank++) {
      std::memset(hosts.receive(rank), 0, figure.ranks * figure.block_bytes);
    }
  }

  static uint64_t cards_of(const AlltoallFigure& figure) {
    if (figure.ranks_per_card == 0 || figure.ranks % figure.ranks_per_card != 0) {
      throw std::runtime_error(std::to_string(figure.ranks) + " ranks do not fill cards of " +
                               std::to_string(figure.ranks_per_card));
    }
    return figure.ranks / figure.ranks_per_card;
  }

  AlltoallFigure figure;
  ProgramHosts hosts;
};

}  // namespace

BroadcastTimes measure(const CostModel& model, const BroadcastFigure& figure) {
  const host::Torus torus = {model.torus};
  if (torus.size[0] == 0) throw std::runtime_error("the model has no torus");
  host::TrinaryTrees trees;
  if (figure.trinary) {
    const std::string problem = host::TrinaryTrees::plan(torus, 0, &trees);
    if (!problem.empty()) throw std::runtime_error(problem);
  }
  const auto ranks = static_cast<uint32_t>(torus.ranks());
  std::vector<uint64_t> descriptors;
  const auto make = [&](const ProgramHosts::Place& place) {
    host::Programs programs =
        figure.trinary
            ? host::trinary_broadcast(trees, place.rank, place.receive, figure.bytes,
                                      figure.segment_bytes, place.receives)
            : only(host::chain_broadcast(place.rank, ranks, 0, place.receive, figure.bytes,
                                         figure.segment_bytes, place.receives));
    descriptors.push_back(count_of(programs));
    return programs;
  };
  ProgramHosts hosts(options_of(model, ranks), {.bytes = figure.bytes}, make);
  fill(hosts.receive(0), figure.bytes, figure.bytes);
  const uint64_t programs = figure.trinary ? host::TrinaryTrees::kTrees : 1;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    hosts.start(rank, 1, start_cost(model, figure.start, programs, descriptors[rank]));
  }
  BroadcastTimes times;
  times.total_ns = hosts.run() + model.completion_ns;
  times.descriptors = *std::ranges::max_element(descriptors);
  times.start_ns = start_cost(model, figure.start, programs, times.descriptors);
  expect_good(hosts);
  for (uint32_t rank = 0; rank < ranks; rank++) {
    if (std::memcmp(hosts.receive(rank), hosts.receive(0), figure.bytes) != 0) {
      throw std::runtime_error("rank " + std::to_string(rank) + " has not got the root's bytes");
    }
  }
  return times;
}

AlltoallTimes measure(const CostModel& model, const AlltoallFigure& figure) {
  Alltoall alltoall(model, figure);
  AlltoallTimes times;
  times.total_ns = alltoall.hosts.run_computing(1, 0);
  times.sent_again = alltoall.hosts.cluster().counter(PEAL_COUNTER_SENT_P2P_AGAIN);
  alltoall.check();
  return times;
}

AlltoallOverlap measure_overlap(const CostModel& model, const AlltoallFigure& figure,
                                uint32_t starts) {
  const auto time_of_one = [&](double work_ns) {
    Alltoall alltoall(model, figure);
    alltoall.hosts.run_computing(1, 0);
    alltoall.check();
    alltoall.clear();
    const TimeNs all_ns =
        alltoall.hosts.run_computing(starts, static_cast<TimeNs>(std::ceil(work_ns)));
    alltoall.check();
    return static_cast<double>(all_ns) / starts;
  };
  AlltoallOverlap overlap;
  overlap.comm_ns = time_of_one(0);
  overlap.work_ns = overlap.comm_ns;
  overlap.both_ns = time_of_one(overlap.work_ns);
  overlap.share = overlap_share(overlap.comm_ns, overlap.work_ns, overlap.both_ns);
  overlap.ratio = overlap.work_ns / overlap.both_ns;
  return overlap;
}

namespace {

// The hosts of an allgather by recursive doubling, and what each must have in the end.
struct Allgather {
  Allgather(const CostModel& model, const AllgatherFigure& all)
      : figure(all),
        hosts(options_of(model, all.ranks),
              all.ranks * all.block_bytes +
                  host::collective_bytes(all.ranks, all.block_bytes, all.copied_bytes),
              [all](const ProgramHosts::Place& place) { return program(all, place); }) {
    for (uint32_t rank = 0; rank < figure.ranks; rank++) {
      fill(hosts.send(rank), figure.block_bytes, rank + 1);
      if (!figure.in_place) continue;
      std::memcpy(hosts.receive(rank) + rank * figure.block_bytes, hosts.send(rank),
                  figure.block_bytes);
    }
  }

  // The collective buffer lies behind the result.
  static host::Program program(const AllgatherFigure& figure, const ProgramHosts::Place& place) {
    const size_t result = figure.ranks * figure.block_bytes;
    host::Gathering gathering;
    gathering.rank = place.rank;
    gathering.ranks = figure.ranks;
    gathering.receive = static_cast<uint8_t*>(place.receive);
    gathering.send =
        figure.in_place ? gathering.receive + place.rank * figure.block_bytes : place.send;
    gathering.block_bytes = figure.block_bytes;
    gathering.own = place.receives[place.rank];
    gathering.receives = place.receives;
    gathering.copied_bytes = figure.copied_bytes;
    gathering.collective = gathering.receive + result;
    gathering.collectives = place.receives;
    for (auto& there : gathering.collectives) there.offset += result;
    return host::doubling_allgather(gathering);
  }

  void check() {
    expect_good(hosts);
    const size_t block = figure.block_bytes;
    for (uint32_t rank = 0; rank < figure.ranks; rank++) {
      for (uint32_t from = 0; from < figure.ranks; from++) {
        if (std::memcmp(hosts.receive(rank) + from * block, hosts.send(from), block) != 0) {
          throw std::runtime_error("rank " + std::to_string(rank) + " has not got rank " +
                                   std::to_string(from) + "'s block");
        }
      }
    }
  }

  // As above; what lies in place stays.
  void clear() {
    const size_t block = figure.block_bytes;
    for (uint32_t rank = 0; rank < figure.ranks; rank++) {
      for (uint32_t from = 0; from < figure.ranks; from++) {
        if (figure.in_place && from == rank) continue;
        std::memset(hosts.receive(rank) + from * block, 0, block);
      }
    }
  }

  AllgatherFigure figure;
  ProgramHosts hosts;
};

// Of a second one: the first opens connections.
TimeNs rendezvous_ns(const CostModel& model, const AllgatherFigure& figure,
                     RendezvousHosts::Registration registration) {
  RendezvousHosts hosts(options_of(model, figure.ranks), figure.block_bytes, registration);
  hosts.run();
  return hosts.run();
}

}  // namespace

TimeNs measure(const CostModel& model, const AllgatherFigure& figure) {
  Allgather allgather(model, figure);
  const TimeNs total_ns = allgather.hosts.run_computing(1, 0);
  allgather.check();
  return total_ns;
}

AllgatherComparison compare(const CostModel& model, uint32_t ranks, uint64_t block_bytes) {
  using Registration = RendezvousHosts::Registration;
  const AllgatherFigure figure = {.ranks = ranks, .block_bytes = block_bytes, .in_place = true};
  Allgather allgather(model, figure);
  allgather.hosts.run_computing(1, 0);
  allgather.check();
  allgather.clear();
  AllgatherComparison times;
  times.program_ns = allgather.hosts.run_computing(1, 0);
  allgather.check();
  // All register before they start, each once.
  times.program_registering_ns =
      times.program_ns + registering_ns(model, ranks * block_bytes) + model.deregister_ns;
  times.messages_ns = rendezvous_ns(model, figure, Registration::kKept);
  times.messages_registering_ns = rendezvous_ns(model, figure, Registration::kEachMessage);
  return times;
}

}  // namespace peal::sim
