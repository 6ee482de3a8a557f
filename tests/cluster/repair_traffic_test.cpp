// SPDX-License-Identifier: BSD-2-Clause
// Where nothing is lost, hardly anything is asked for or sent twice, however late ranks are: a
// silence is no loss. Each row prints what there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/cluster/arithmetic.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

struct Skew {
  const char* name;
  void (*add)(Scenario&);
  double effort_most;  // packets per packet needed; 0: any number (the silent are probed)
};

constexpr Skew kSkews[] = {
    {"nobody_late", [](Scenario&) {}, 1.1},
    {"up_to_1_ms", [](Scenario& s) { s.groups[0].think_ns = kMillisecond; }, 1.1},
    {"one_late_1_s", [](Scenario& s) { s.groups[0].first_post_ns[s.cards / 2] = kSecond; }, 0},
    {"all_computing_for_2_s", [](Scenario& s) { s.groups[0].think_ns = 2 * kSecond; }, 0},
    {"slow_cards", [](Scenario& s) { s.costs.packet_ns = 5 * kMicrosecond; }, 1.1},
};

// Of all packets, percent.
constexpr double kRepairMost = 5;

struct Case {
  const char* name;
  OperationPlan operation;
  bool any_root = false;  // of each operation another one
};

class WithoutLoss : public testing::TestWithParam<std::tuple<Case, Skew>> {};

std::string name_of(const testing::TestParamInfo<std::tuple<Case, Skew>>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name;
}

// A hundred, or as many as take about so many packets.
uint32_t operation_count(uint32_t ranks, const OperationPlan& operation, uint64_t packets) {
  const uint64_t needed = needed_packets(shape_of(device()), ranks, operation);
  return static_cast<uint32_t>(std::clamp<uint64_t>(packets / needed, 2, 100));
}

void hold(const Scenario& scenario, const Skew& skew) {
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  std::printf(
      "%s, %u ranks, %s: %llu packets, %llu NACK, %llu NOT_YET, %llu repairs: %.2f %%, "
      "%.3f per packet needed\n",
      operation_text(scenario.groups[0].operations[0]).c_str(), scenario.cards, skew.name,
      static_cast<unsigned long long>(report.cluster.sent),
      static_cast<unsigned long long>(report.packets[PEAL_PACKET_NACK]),
      static_cast<unsigned long long>(report.packets[PEAL_PACKET_NOT_YET]),
      static_cast<unsigned long long>(report.repairs), 100 * report.repair_share(),
      report.effort());
  EXPECT_LE(100 * report.repair_share(), kRepairMost) << scenario.cards << " ranks";
  // (Of a slow card's credits one may say what two would have.)
  EXPECT_GE(report.effort(), 0.99) << scenario.cards << " ranks";
  if (skew.effort_most > 0) {
    EXPECT_LE(report.effort(), skew.effort_most) << scenario.cards << " ranks";
  }
}

// That all ranks receive together.
uint64_t received_bytes(uint32_t ranks, const OperationPlan& operation) {
  const uint64_t blocks = operation.operation == PEAL_OPERATION_BROADCAST ? 1 : ranks;
  return blocks * ranks * operation.block_bytes;
}

TEST_P(WithoutLoss, HardlyAnyPacketIsForRepairs) {
  const auto& [each, skew] = GetParam();
  for (const uint32_t ranks : {2u, 3u, 8u, 16u, 64u}) {
    if (received_bytes(ranks, each.operation) > (64u << 20)) continue;  // slow
    Scenario scenario = plan(ranks, each.operation, operation_count(ranks, each.operation, 60'000));
    skew.add(scenario);
    hold(scenario, skew);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, WithoutLoss,
    testing::Combine(
        testing::Values(
            Case{"barrier", kBarrier}, Case{"broadcast_4", broadcast(4)},
            Case{"broadcast_1k", broadcast(1024)}, Case{"broadcast_8k", broadcast(8192)},
            Case{"broadcast_64k", broadcast(65'536)}, Case{"broadcast_256k", broadcast(262'144)},
            Case{"doubling_4", doubling(4)}, Case{"doubling_1k", doubling(1024)},
            Case{"doubling_8k", doubling(8192)}, Case{"doubling_64k", doubling(65'536)},
            Case{"doubling_256k", doubling(262'144)}, Case{"alltoall_4", alltoall(4)},
            Case{"alltoall_1k", alltoall(1024)}, Case{"alltoall_8k", alltoall(8192)},
            Case{"direct_1k", direct(1024)}, Case{"direct_64k", direct(65'536)},
            Case{"direct_allgather_1k", direct_allgather(1024)},
            Case{"direct_allgather_64k", direct_allgather(65'536)}, Case{"ring_1k", ring(1024)},
            Case{"ring_64k", ring(65'536)}, Case{"allgatherv_1k", allgatherv(1024)},
            Case{"allgatherv_8k", allgatherv(8192)}, Case{"allgatherv_64k", allgatherv(65'536)},
            Case{"alltoallv_1k", alltoallv(1024)}, Case{"alltoallv_8k", alltoallv(8192)},
            Case{"alltoallv_64k", alltoallv(65'536)},
            Case{"stepped_alltoallv_1k", stepped_alltoallv(1024)},
            Case{"stepped_alltoallv_64k", stepped_alltoallv(65'536)},
            Case{"alltoall_64k", alltoall(65'536)}, Case{"root_broadcast_4", root_broadcast(4, 0)},
            Case{"root_broadcast_64k", root_broadcast(65'536, 1)},
            Case{"root_broadcast_1m", root_broadcast(1'000'000, 0)}),
        testing::ValuesIn(kSkews)),
    name_of);

// As large as such tests go, of what libpeal chooses there, and not looked at byte by byte, which
// takes seconds.
class LargeWithoutLoss : public testing::TestWithParam<std::tuple<Case, Skew>> {};

TEST_P(LargeWithoutLoss, HardlyAnyPacketIsForRepairs) {
  const auto& [each, skew] = GetParam();
  Scenario scenario = plan(64, each.operation, 2);
  scenario.check = false;
  skew.add(scenario);
  hold(scenario, skew);
}

INSTANTIATE_TEST_SUITE_P(Of, LargeWithoutLoss,
                         testing::Combine(testing::Values(Case{"allgather_64k", broadcast(65'536)},
                                                          Case{"alltoall_64k", direct(65'536)},
                                                          Case{"allgatherv_64k",
                                                               allgatherv(65'536)},
                                                          Case{"alltoallv_64k", alltoallv(65'536)}),
                                          testing::ValuesIn(kSkews)),
                         name_of);

// The same of blocks far above a channel.
class LongWithoutLoss : public testing::TestWithParam<std::tuple<Case, Skew>> {};

TEST_P(LongWithoutLoss, HardlyAnyPacketIsForRepairs) {
  const auto& [each, skew] = GetParam();
  for (const uint32_t ranks : {3u, 8u}) {
    Scenario scenario = plan(ranks, each.operation, 3);
    scenario.check = false;
    skew.add(scenario);
    hold(scenario, skew);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, LongWithoutLoss,
    testing::Combine(testing::Values(Case{"allgather_1m", broadcast(1 << 20)},
                                     Case{"direct_allgather_1m", direct_allgather(1 << 20)},
                                     Case{"ring_1m", ring(1 << 20)},
                                     Case{"alltoall_1m", direct(1 << 20)},
                                     Case{"allgatherv_1m", allgatherv(1 << 20)},
                                     Case{"alltoallv_1m", alltoallv(1 << 20)}),
                     testing::ValuesIn(kSkews)),
    name_of);

// Programs that have several operations under way and compute: one that is late has others under
// way, and says that it waits.
class DeepWithoutLoss : public testing::TestWithParam<Case> {};

std::string name_of_case(const testing::TestParamInfo<Case>& info) { return info.param.name; }

Scenario deep_plan(const Case& each, uint32_t ranks, uint32_t depth, TimeNs think_ns,
                   uint64_t seed) {
  const uint32_t count = operation_count(ranks, each.operation, 100'000);
  Scenario scenario = plan(ranks, each.operation, count, depth);
  scenario.seed = seed;
  GroupPlan& group = scenario.groups[0];
  group.think_ns = think_ns;
  std::mt19937_64 random(seed);
  for (OperationPlan& operation : group.operations) {
    if (each.any_root) operation.root = static_cast<uint32_t>(random() % ranks);
  }
  return scenario;
}

void hold_deep(const Case& each, uint32_t ranks, const std::vector<TimeNs>& thinks,
               const std::vector<uint64_t>& seeds) {
  double most = 0;
  for (const uint32_t depth : {1u, 2u, 4u, 8u}) {
    for (const TimeNs think_ns : thinks) {
      for (const uint64_t seed : seeds) {
        const Report report = run(deep_plan(each, ranks, depth, think_ns, seed));
        EXPECT_TRUE(report.ok) << failures(report);
        const double percent = 100 * report.repair_share();
        most = std::max(most, percent);
        EXPECT_LE(percent, kRepairMost) << ranks << " ranks, depth " << depth << ", "
                                        << think_ns / kMicrosecond << " us, seed " << seed;
      }
    }
  }
  std::printf("%s, %u ranks: at most %.2f %%\n", each.name, ranks, most);
}

TEST_P(DeepWithoutLoss, HardlyAnyPacketIsForRepairs) {
  for (const uint32_t ranks : {2u, 3u, 5u, 8u, 32u})
    hold_deep(GetParam(), ranks,
              {300 * kMicrosecond, kMillisecond, 10 * kMillisecond, 100 * kMillisecond}, {1, 5});
}

INSTANTIATE_TEST_SUITE_P(
    Of, DeepWithoutLoss,
    testing::Values(Case{"barrier", kBarrier}, Case{"broadcast_1k", broadcast(1024)},
                    Case{"doubling_64", doubling(64)}, Case{"alltoall_256", alltoall(256)},
                    Case{"direct_1k", direct(1024)}, Case{"direct_20k", direct(20'000)},
                    Case{"direct_allgather_4k", direct_allgather(4096)},
                    Case{"ring_4k", ring(4096)}, Case{"allgatherv_1k", allgatherv(1024)},
                    Case{"alltoallv_512", alltoallv(512)},
                    Case{"stepped_alltoallv_512", stepped_alltoallv(512)},
                    Case{"stepped_alltoallv_4k", stepped_alltoallv(4096)},
                    Case{"root_broadcast_1k", root_broadcast(1024, 0)},
                    Case{"any_root_broadcast_1k", root_broadcast(1024, 0), true}),
    name_of_case);

// Of two or three ranks a broadcast has few packets, and each asks by itself: of all operations
// they come nearest to the bound.
TEST(BroadcastsOfFewRanks, HardlyAnyPacketIsForRepairs) {
  std::vector<uint64_t> seeds(16);
  std::iota(seeds.begin(), seeds.end(), 1);
  for (const Case& each : {Case{"root_broadcast_1k", root_broadcast(1024, 0)},
                           Case{"any_root_broadcast_1k", root_broadcast(1024, 0), true}})
    for (const uint32_t ranks : {2u, 3u})
      hold_deep(each, ranks, {3 * kMillisecond, 30 * kMillisecond, 100 * kMillisecond}, seeds);
}

// Four ranks of each of four groups on every slow card: nothing is lost but what finds no room in
// a card's queue, and whatever else is late lies in one.
struct Load {
  const char* name;
  OperationPlan operation;
  uint32_t count;
  uint32_t depth;
  uint32_t groups;
  double effort_most;
  bool check = true;  // long blocks cost seconds
};

std::string name_of_load(const testing::TestParamInfo<Load>& info) { return info.param.name; }

class SharedSlowCards : public testing::TestWithParam<Load> {};

TEST_P(SharedSlowCards, HardlyAnyPacketIsForRepairs) {
  constexpr uint32_t kCards = 8;
  constexpr uint32_t kMembers = 4;
  const Load& load = GetParam();
  Scenario scenario = plan(kCards, load.operation, load.count, load.depth);
  scenario.costs.packet_ns = 5 * kMicrosecond;
  scenario.check = load.check;
  GroupPlan group = make_group(kCards, kMembers);
  group.operations = scenario.groups[0].operations;
  group.depth = load.depth;
  scenario.groups.clear();
  for (uint32_t i = 0; i < load.groups; ++i) {
    scenario.groups.push_back(group);
    for (Place& place : group.places) place.process += kMembers;
  }
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  std::printf("%s, depth %u: %llu packets, %llu lost in queues, %.3f per packet needed\n",
              operation_text(load.operation).c_str(), load.depth,
              static_cast<unsigned long long>(report.cluster.sent),
              static_cast<unsigned long long>(report.cluster.dropped_queue), report.effort());
  EXPECT_LE(report.effort(), load.effort_most);
}

INSTANTIATE_TEST_SUITE_P(
    Of, SharedSlowCards,
    testing::Values(Load{"broadcast_1k", broadcast(1024), 20, 4, 4, 1.01},
                    Load{"broadcast_1k_alone", broadcast(1024), 20, 8, 1, 1.01},
                    Load{"broadcast_9000", broadcast(9000), 20, 8, 4, 1.1},
                    Load{"broadcast_64k", broadcast(65'536), 2, 8, 4, 1.1, false},
                    Load{"doubling_1k", doubling(1024), 20, 8, 4, 1.1},
                    Load{"doubling_9000", doubling(9000), 5, 8, 4, 1.1, false},
                    Load{"ring_9000", ring(9000), 5, 8, 4, 1.1, false},
                    Load{"barrier", kBarrier, 20, 8, 4, 1.01},
                    Load{"alltoall_1k", alltoall(1024), 20, 8, 4, 1.1},
                    Load{"direct_1k", direct(1024), 20, 8, 4, 1.1},
                    Load{"stepped_alltoallv_1k", stepped_alltoallv(1024), 20, 8, 4, 1.1},
                    Load{"stepped_alltoallv_9000", stepped_alltoallv(9000), 20, 8, 4, 1.1},
                    Load{"direct_1k_4_deep", direct(1024), 20, 4, 4, 1.1},
                    Load{"direct_64k", direct(65'536), 2, 8, 4, 1.1, false},
                    Load{"alltoallv_1k", alltoallv(1024), 20, 8, 4, 1.1},
                    Load{"alltoallv_9000", alltoallv(9000), 10, 8, 4, 1.1, false},
                    Load{"allgatherv_1k", allgatherv(1024), 20, 8, 4, 1.1},
                    Load{"allgatherv_9000", allgatherv(9000), 10, 8, 4, 1.1, false},
                    Load{"direct_allgather_1k", direct_allgather(1024), 20, 8, 4, 1.01},
                    Load{"direct_allgather_9000", direct_allgather(9000), 20, 8, 4, 1.02},
                    Load{"direct_allgather_64k", direct_allgather(65'536), 2, 8, 4, 1.1, false},
                    Load{"root_broadcast_1k", root_broadcast(1024, 0), 20, 8, 4, 1.1},
                    Load{"root_broadcast_9000", root_broadcast(9000, 0), 20, 8, 4, 1.1},
                    Load{"root_broadcast_64k", root_broadcast(65'536, 0), 6, 8, 4, 1.1}),
    name_of_load);

// Four ranks on each card, which has fewer packets, or places before its DMA engine, than these
// have partners.
struct SmallCard {
  const char* name;
  OperationPlan operation;
  uint32_t packets;
  uint32_t dma;
  double loss;
  double effort_most;
};

std::string name_of_card(const testing::TestParamInfo<SmallCard>& info) { return info.param.name; }

class SmallCards : public testing::TestWithParam<SmallCard> {};

TEST_P(SmallCards, HardlyAnyPacketIsForRepairs) {
  const SmallCard& each = GetParam();
  Scenario scenario = plan(8, each.operation, 4);
  GroupPlan group = make_group(8, 4);
  group.operations = scenario.groups[0].operations;
  scenario.groups = {group};
  scenario.packets_per_card = each.packets;
  scenario.dma_per_card = each.dma;
  scenario.faults.loss = each.loss;
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  std::printf("%s: %llu packets, %llu found no room, %.2f %% to repair, %.3f per packet needed\n",
              operation_text(each.operation).c_str(),
              static_cast<unsigned long long>(report.cluster.sent),
              static_cast<unsigned long long>(report.cluster.dropped_full),
              100 * report.repair_share(), report.effort());
  EXPECT_LE(report.effort(), each.effort_most);
  if (each.loss == 0) {
    EXPECT_LE(100 * report.repair_share(), kRepairMost);
  }
}

constexpr uint32_t kAnyNumber = ~0u;

INSTANTIATE_TEST_SUITE_P(
    Of, SmallCards,
    testing::Values(SmallCard{"packets", direct(16'384), 64, kAnyNumber, 0, 1.01},
                    SmallCard{"hardly_any_packets", direct(16'384), 24, kAnyNumber, 0, 1.01},
                    SmallCard{"packets_with_loss", direct(16'384), 64, kAnyNumber, 0.01, 1.1},
                    SmallCard{"dma_with_loss", direct(16'384), 4096, 4, 0.02, 1.12}),
    name_of_card);

}  // namespace
}  // namespace peal::sim
