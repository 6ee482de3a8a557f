// SPDX-License-Identifier: BSD-2-Clause
#include "tests/cluster/plans.h"

#include <algorithm>

#include "emulator/cluster/arithmetic.h"
#include "emulator/cluster/cluster.h"

namespace peal::sim {

OperationPlan broadcast(uint32_t bytes, bool in_place) {
  return {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, in_place, bytes};
}

OperationPlan doubling(uint32_t bytes, bool in_place) {
  return {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RECURSIVE_DOUBLING, in_place, bytes};
}

OperationPlan root_broadcast(uint32_t bytes, uint32_t root) {
  return {PEAL_OPERATION_BROADCAST,
          static_cast<uint8_t>(algorithms_of(PEAL_OPERATION_BROADCAST).front()), false, bytes,
          root};
}

OperationPlan alltoall(uint32_t bytes, bool in_place) {
  return {PEAL_OPERATION_ALLTOALL,
          static_cast<uint8_t>(algorithms_of(PEAL_OPERATION_ALLTOALL).front()), in_place, bytes};
}

OperationPlan direct(uint32_t bytes, bool in_place) {
  return {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_DIRECT, in_place, bytes};
}

OperationPlan direct_allgather(uint32_t bytes, bool in_place) {
  return {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_DIRECT, in_place, bytes};
}

OperationPlan ring(uint32_t bytes, bool in_place) {
  return {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RING, in_place, bytes};
}

OperationPlan allgatherv(uint32_t bytes, bool in_place) {
  return {PEAL_OPERATION_ALLGATHERV, PEAL_ALGORITHM_DIRECT, in_place, bytes};
}

OperationPlan alltoallv(uint32_t bytes, bool in_place) {
  return {PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_DIRECT, in_place, bytes};
}

OperationPlan stepped_alltoallv(uint32_t bytes, bool in_place) {
  return {PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_BRUCK, in_place, bytes};
}

Scenario plan(uint32_t cards, const OperationPlan& operation, uint32_t count, uint32_t depth) {
  Scenario scenario;
  scenario.name = "test";
  scenario.cards = cards;
  GroupPlan group = make_group(cards, 1);
  group.operations.assign(count, operation);
  group.depth = depth;
  scenario.groups.push_back(group);
  scenario.events_max = 50'000'000;
  return scenario;
}

Scenario bare_plan(uint32_t cards, const OperationPlan& operation, uint32_t count) {
  Scenario scenario = plan(cards, operation, count);
  scenario.groups[0].destroy = false;
  scenario.teardown = false;
  return scenario;
}

uint64_t counted(const Report& report, const char* counter) {
  const auto found = report.counters.find(counter);
  return found == report.counters.end() ? 0 : found->second;
}

std::string failures(const Report& report) {
  std::string text;
  for (const std::string& line : report.lines) text += line + "\n";
  return text;
}

peal_device device() {
  ClusterOptions options;
  options.cards = 1;
  return Cluster(options, nullptr, nullptr).device(0);
}

uint32_t piece_bytes(uint32_t ranks) {
  const CardShape card = shape_of(device());
  return std::min(card.mtu_bytes, card.image_bytes / ranks) & ~7u;
}

}  // namespace peal::sim
