// SPDX-License-Identifier: BSD-2-Clause
// Where nothing is lost, hardly anything is asked for or sent twice, however late ranks are: a
// silence is no loss. Each row prints what there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <tuple>

#include "emulator/cluster/arithmetic.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

struct Skew {
  const char* name;
  void (*add)(Scenario&);
  // Of all packets, percent. Five are wanted; where that does not hold, what there is: a rank that
  // is always late costs a question now and then, and two ranks send hardly anything else.
  double repair_most;
  double repair_most_of_two;  // where there are two ranks only
  double effort_most;         // packets per packet needed; 0: any number (the silent are probed)
};

constexpr Skew kSkews[] = {
    {"nobody_late", [](Scenario&) {}, 5, 5, 1.1},
    {"up_to_1_ms", [](Scenario& s) { s.groups[0].think_ns = kMillisecond; }, 5, 10, 1.15},
    {"one_late_1_s", [](Scenario& s) { s.groups[0].first_post_ns[s.cards / 2] = kSecond; }, 5, 5,
     0},
    // Patience grows from 200 us to half a second by questions: what it takes to learn that.
    {"all_computing_for_2_s", [](Scenario& s) { s.groups[0].think_ns = 2 * kSecond; }, 11, 7, 0},
    {"slow_cards", [](Scenario& s) { s.costs.packet_ns = 5 * kMicrosecond; }, 5, 5, 1.1},
};

struct Case {
  const char* name;
  OperationPlan operation;
  // What there is at most, whatever the skew, where that is not what the skew says. (Between ranks
  // that are no peers nothing is numbered.)
  double repair_most = 0;
  double effort_most = 0;
};

class WithoutLoss : public testing::TestWithParam<std::tuple<Case, Skew>> {};

std::string name_of(const testing::TestParamInfo<std::tuple<Case, Skew>>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name;
}

// A hundred, or as many as take about so many packets.
uint32_t operation_count(uint32_t ranks, const OperationPlan& operation) {
  constexpr uint64_t kPackets = 60'000;
  const peal_device card = device();
  const uint64_t needed = needed_packets(
      {card.mtu_bytes, card.channel_bytes, card.channels, card.piece_window}, ranks, operation);
  return static_cast<uint32_t>(std::clamp<uint64_t>(kPackets / needed, 2, 100));
}

TEST_P(WithoutLoss, HardlyAnyPacketIsForRepairs) {
  const auto& [each, skew] = GetParam();
  for (const uint32_t ranks : {2u, 3u, 8u, 16u, 64u}) {
    if (uint64_t{ranks} * ranks * each.operation.block_bytes > (64u << 20)) continue;  // slow
    Scenario scenario = plan(ranks, each.operation, operation_count(ranks, each.operation));
    skew.add(scenario);
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << failures(report);
    std::printf(
        "%s, %u ranks, %s: %llu packets, %llu NACK, %llu NOT_YET, %llu repairs: %.2f %%, "
        "%.3f per packet needed\n",
        operation_text(each.operation).c_str(), ranks, skew.name,
        static_cast<unsigned long long>(report.cluster.sent),
        static_cast<unsigned long long>(report.packets[PEAL_PACKET_NACK]),
        static_cast<unsigned long long>(report.packets[PEAL_PACKET_NOT_YET]),
        static_cast<unsigned long long>(report.repairs), 100 * report.repair_share(),
        report.effort());
    const double repair_most = ranks == 2 ? skew.repair_most_of_two : skew.repair_most;
    EXPECT_LE(100 * report.repair_share(), std::max(each.repair_most, repair_most))
        << ranks << " ranks";
    if (skew.effort_most > 0) {
      EXPECT_LE(report.effort(), std::max(each.effort_most, skew.effort_most)) << ranks << " ranks";
    }
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
            Case{"direct_1k", direct(1024), 13.5}, Case{"direct_64k", direct(65'536)},
            Case{"direct_allgather_1k", direct_allgather(1024), 13.5},
            Case{"direct_allgather_64k", direct_allgather(65'536)}, Case{"ring_1k", ring(1024)},
            Case{"ring_64k", ring(65'536)}, Case{"allgatherv_64k", allgatherv(65'536)},
            Case{"alltoallv_64k", alltoallv(65'536)}, Case{"alltoall_64k", alltoall(65'536)},
            Case{"root_broadcast_4", root_broadcast(4, 0), 18.5, 1.25},
            Case{"root_broadcast_64k", root_broadcast(65'536, 1)},
            Case{"root_broadcast_1m", root_broadcast(1'000'000, 0)}),
        testing::ValuesIn(kSkews)),
    name_of);

}  // namespace
}  // namespace peal::sim
