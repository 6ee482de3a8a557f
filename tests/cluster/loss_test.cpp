// SPDX-License-Identifier: BSD-2-Clause
// What losses cost in virtual time: the median operation, against the same without loss. Where
// cards learn from losses that ranks are late, they wait ever longer, and this shows it. Each row
// prints what there is. Latencies of operations that follow each other overlap, since a rank that
// is served posts the next one while others are being repaired; what a program waits for in all is
// the sum of the periods.
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "peal_config.h"
#include "tests/cluster/chosen.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

struct Case {
  const char* name;
  uint32_t ranks;
  OperationPlan operation;
  uint32_t count;
  double loss;
  double most;  // medians with loss over medians without
};

class LossOf : public testing::TestWithParam<Case> {};

std::string name_of(const testing::TestParamInfo<Case>& each) { return each.param.name; }

TimeNs median(std::vector<TimeNs> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

double mean(const std::vector<TimeNs>& times) {
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

TEST_P(LossOf, TheMedianOperationIsHeldUpByABoundedShare) {
  const Case& each = GetParam();
  Scenario scenario = plan(each.ranks, each.operation, each.count);
  const Report clean = run(scenario);
  scenario.faults.loss = each.loss;
  const Report lossy = run(scenario);
  ASSERT_TRUE(clean.ok) << failures(clean);
  ASSERT_TRUE(lossy.ok) << failures(lossy);
  const auto without = static_cast<double>(median(clean.latencies_ns));
  const auto with = static_cast<double>(median(lossy.latencies_ns));
  std::printf("%s, %u ranks, %g loss: median %.1f us, without %.1f us: %.2f times\n",
              operation_text(each.operation).c_str(), each.ranks, each.loss, with / 1000,
              without / 1000, with / without);
  EXPECT_LE(with / without, each.most);
}

// What libpeal chooses for 1 KiB, and barriers: half of the operations over 8 ranks lose a packet,
// nearly all over 16.
struct SmallBound {
  double median, mean;  // with loss over without
};

constexpr SmallBound kOf8 = {1.3, 2};
constexpr SmallBound kOf16 = {2, 3};

struct SmallCase {
  const char* name;
  peal_operation operation;
};

class SmallWithLoss : public testing::TestWithParam<SmallCase> {};

std::string name_of_small(const testing::TestParamInfo<SmallCase>& each) { return each.param.name; }

TEST_P(SmallWithLoss, TakesHardlyLongerOnAverage) {
  for (const uint32_t ranks : {8u, 16u}) {
    const SmallBound& bound = ranks == 8 ? kOf8 : kOf16;
    const OperationPlan operation = chosen(GetParam().operation, ranks, 1024);
    Scenario scenario = plan(ranks, operation, 400);
    const Report clean = run(scenario);
    ASSERT_TRUE(clean.ok) << failures(clean);
    scenario.faults.loss = 0.01;
    for (scenario.seed = 1; scenario.seed <= 5; scenario.seed++) {
      const Report lossy = run(scenario);
      ASSERT_TRUE(lossy.ok) << failures(lossy);
      const double medians = static_cast<double>(median(lossy.periods_ns)) /
                             static_cast<double>(median(clean.periods_ns));
      const double means = mean(lossy.periods_ns) / mean(clean.periods_ns);
      std::printf("%s, %u ranks, seed %" PRIu64 ": median period %.2f times, mean %.2f times\n",
                  operation_text(operation).c_str(), ranks, scenario.seed, medians, means);
      EXPECT_LE(medians, bound.median);
      EXPECT_LE(means, bound.mean);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, SmallWithLoss,
                         testing::Values(SmallCase{"barrier", PEAL_OPERATION_BARRIER},
                                         SmallCase{"broadcast", PEAL_OPERATION_BROADCAST},
                                         SmallCase{"allgather", PEAL_OPERATION_ALLGATHER},
                                         SmallCase{"alltoall", PEAL_OPERATION_ALLTOALL},
                                         SmallCase{"allgatherv", PEAL_OPERATION_ALLGATHERV},
                                         SmallCase{"alltoallv", PEAL_OPERATION_ALLTOALLV}),
                         name_of_small);

// What is the last on its edge and lost shows by nothing that comes. Where losses are known of, it
// is asked for long before questions are as rare as they become. So is what is lost of an operation
// as far ahead as any may be, which its receiver cannot ask for yet.
TEST(WithLoss, NobodyWaitsForTheRarestQuestions) {
  struct Row {
    uint32_t ranks;
    OperationPlan operation;
    uint32_t count;
    double loss;
    uint64_t seeds;
  };
  for (const Row& row : {Row{16, alltoall(64), 1000, 0.03, 10}, Row{64, kBarrier, 100, 0.01, 10},
                         Row{8, root_broadcast(8192, 0), 200, 0.05, 200}}) {
    Scenario scenario = plan(row.ranks, row.operation, row.count);
    scenario.faults.loss = row.loss;
    TimeNs longest_ns = 0;
    for (scenario.seed = 1; scenario.seed <= row.seeds; scenario.seed++) {
      const Report report = run(scenario);
      ASSERT_TRUE(report.ok) << failures(report);
      longest_ns = std::max(
          longest_ns, *std::max_element(report.latencies_ns.begin(), report.latencies_ns.end()));
    }
    std::printf("%s, %u ranks, %g loss: longest %.1f us\n", operation_text(row.operation).c_str(),
                row.ranks, row.loss, static_cast<double>(longest_ns) / 1000);
    EXPECT_LE(longest_ns, TimeNs{CONFIG_NACK_TIMEOUT_MAX_US} * 1000 / 2);
  }
}

// Broadcasts whose root changes all the time: whoever is to send next waits for one who said "not
// yet", and all others for it. If what was promised is lost, nothing follows it.
TEST(WithLoss, WhatWasPromisedIsNotWaitedForLong) {
  struct Row {
    uint32_t ranks;
    uint32_t depth;
  };
  for (const Row& row : {Row{32, 1}, Row{64, 4}}) {
    Scenario scenario = plan(row.ranks, root_broadcast(64, 0), 200, row.depth);
    scenario.faults.loss = 0.01;
    TimeNs longest_ns = 0;
    for (scenario.seed = 1; scenario.seed <= 20; scenario.seed++) {
      auto root = static_cast<uint32_t>(scenario.seed);
      for (OperationPlan& operation : scenario.groups[0].operations) {
        root = root * 1664525 + 1013904223;
        operation.root = (root >> 16) % row.ranks;
      }
      const Report report = run(scenario);
      ASSERT_TRUE(report.ok) << failures(report);
      longest_ns = std::max(
          longest_ns, *std::max_element(report.latencies_ns.begin(), report.latencies_ns.end()));
    }
    std::printf("broadcasts of changing roots, %u ranks, %u deep: longest %.1f us\n", row.ranks,
                row.depth, static_cast<double>(longest_ns) / 1000);
    EXPECT_LE(longest_ns, 5 * TimeNs{CONFIG_NACK_TIMEOUT_US} * 1000);
  }
}

// Something was lost at first, and then one rank is late for seconds: the others, each of which
// waits for another one that waits, do not ask again and again.
TEST(WithLoss, WhoIsLateAfterwardsCostsFewQuestions) {
  uint64_t nacks = 0;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    Scenario scenario = plan(16, kBarrier, 20, 8);
    scenario.seed = seed;
    scenario.faults.loss = 0.02;
    scenario.faults.until_ns = kMillisecond / 2;
    scenario.groups[0].first_post_ns[3] = 2 * kSecond;
    const Report report = run(scenario);
    ASSERT_TRUE(report.ok) << failures(report);
    nacks += report.packets[PEAL_PACKET_NACK];
  }
  std::printf("16 ranks, 8 deep, one late by 2 s after losses: %" PRIu64 " NACKs\n", nacks);
  EXPECT_LE(nacks, 400u);
}

// One card stands still for a while, so that who asks it is answered late. From then on nobody
// waits for what is lost as if there were queues.
TEST(WithLoss, ACardThatStoodStillIsForgotten) {
  constexpr TimeNs kStill = 4 * kMillisecond;
  struct Row {
    uint32_t ranks;
    OperationPlan operation;
    uint32_t count;
    double median, took;  // at most so many times what it is without, but for that time
  };
  for (const Row& row :
       {Row{8, direct_allgather(65'536), 100, 1.2, 3}, Row{16, direct(65'536), 50, 1.2, 4},
        Row{8, broadcast(1024), 1000, 1.1, 1.5}}) {
    double medians_ns[2] = {}, took_ns[2] = {};
    for (uint64_t seed = 1; seed <= 20; seed++) {
      Scenario scenario = plan(row.ranks, row.operation, row.count);
      scenario.seed = seed;
      scenario.faults.loss = 0.01;
      for (const int stands : {0, 1}) {
        if (stands != 0) {
          scenario.accidents.push_back(
              {Accident::Kind::kFreeze, {3, 0}, 300 * kMicrosecond, kStill});
        }
        const Report report = run(scenario);
        ASSERT_TRUE(report.ok) << failures(report);
        medians_ns[stands] += static_cast<double>(median(report.latencies_ns));
        took_ns[stands] += static_cast<double>(report.finished_ns - (stands != 0 ? kStill : 0));
      }
    }
    const double medians = medians_ns[1] / medians_ns[0];
    const double took = took_ns[1] / took_ns[0];
    std::printf("%s, %u ranks, a card stood still: median %.2f times, all %.2f times\n",
                operation_text(row.operation).c_str(), row.ranks, medians, took);
    EXPECT_LE(medians, row.median);
    EXPECT_LE(took, row.took);
  }
}

// One rank comes late once: what is lost afterwards is not waited for as if everybody did. At most
// so many times that lateness in all.
TEST(WithLoss, WhoCameLateOnceIsForgottenSoon) {
  constexpr TimeNs kLate = 50 * kMillisecond;
  struct Row {
    uint32_t ranks;
    OperationPlan operation;
    uint32_t count;
    double most;
  };
  for (const Row& row : {Row{8, direct_allgather(65'536), 200, 1.7},
                         Row{16, alltoallv(65'536), 100, 1.5}, Row{16, direct(4096), 400, 1.6}}) {
    double took_ns = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
      Scenario scenario = plan(row.ranks, row.operation, row.count);
      scenario.seed = seed;
      scenario.faults.loss = 0.01;
      scenario.groups[0].first_post_ns[3] = kLate;
      const Report report = run(scenario);
      ASSERT_TRUE(report.ok) << failures(report);
      took_ns += static_cast<double>(report.finished_ns) / 5;
    }
    const double times = took_ns / static_cast<double>(kLate);
    std::printf("%s, %u ranks, one late once: all took %.2f times that\n",
                operation_text(row.operation).c_str(), row.ranks, times);
    EXPECT_LE(times, row.most);
  }
}

// Ranks compute, and packets are lost: nobody takes the one for the other for much longer than it
// lasts. A program takes at most so many times as long as its ranks may compute.
TEST(WithLoss, OfRanksThatComputeCostsLittleMoreThanTheyDo) {
  struct Row {
    uint32_t ranks;
    OperationPlan operation;
    uint32_t count;
    TimeNs think_ns;
    double loss;
    double most;
  };
  for (const Row& row : {Row{32, broadcast(20'000), 12, kMillisecond, 0.1, 2.4},
                         Row{16, broadcast(65'536), 12, 5 * kMillisecond, 0.05, 1.5},
                         Row{64, broadcast(1024), 20, kMillisecond, 0.1, 3.4},
                         Row{16, broadcast(32'768), 60, kMillisecond, 0.1, 1.5},
                         Row{16, alltoallv(4096), 100, 2 * kMillisecond, 0.02, 1.4},
                         Row{16, direct(4096), 100, kMillisecond, 0.02, 1.5},
                         Row{8, stepped_alltoallv(512), 100, kMillisecond, 0.02, 1.4},
                         Row{16, kBarrier, 200, kMillisecond, 0.1, 1.5},
                         Row{16, kBarrier, 200, kMillisecond, 0.01, 1.1},
                         Row{16, doubling(64), 200, kMillisecond, 0.05, 1.35},
                         Row{16, alltoall(1024), 100, kMillisecond, 0.02, 1.2}}) {
    Scenario scenario = plan(row.ranks, row.operation, row.count);
    scenario.faults.loss = row.loss;
    scenario.groups[0].think_ns = row.think_ns;
    double took_ns = 0;
    for (scenario.seed = 1; scenario.seed <= 10; scenario.seed++) {
      const Report report = run(scenario);
      ASSERT_TRUE(report.ok) << failures(report);
      took_ns += static_cast<double>(report.finished_ns) / 10;
    }
    const double times = took_ns / static_cast<double>(row.count * row.think_ns);
    std::printf("%s, %u ranks, %g loss, computing up to %" PRIu64 " ms: %.2f times that\n",
                operation_text(row.operation).c_str(), row.ranks, row.loss,
                row.think_ns / kMillisecond, times);
    EXPECT_LE(times, row.most);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Operations, LossOf,
    testing::Values(Case{"barrier_8", 8, kBarrier, 200, 0.01, 2.2},
                    Case{"barrier_16", 16, kBarrier, 200, 0.01, 3.6},
                    Case{"barrier_64", 64, kBarrier, 200, 0.01, 15},
                    Case{"allgather_1k_8", 8, broadcast(1024), 200, 0.01, 2},
                    Case{"allgather_1k_16", 16, broadcast(1024), 200, 0.01, 3.8},
                    Case{"allgather_1k_32", 32, broadcast(1024), 200, 0.01, 11},
                    Case{"allgather_64_64", 64, broadcast(64), 100, 0.01, 24},
                    Case{"allgather_1k_64", 64, broadcast(1024), 100, 0.01, 11},
                    Case{"allgather_5000_64", 64, broadcast(5000), 20, 0.1, 10},
                    Case{"ring_1k_8", 8, ring(1024), 200, 0.01, 2},
                    Case{"ring_5000_16", 16, ring(5000), 100, 0.01, 12},
                    Case{"ring_5000_64", 64, ring(5000), 20, 0.1, 12},
                    Case{"doubling_64_16", 16, doubling(64), 200, 0.01, 3.6},
                    Case{"doubling_64_64", 64, doubling(64), 200, 0.01, 11},
                    Case{"broadcast_1k_16", 16, root_broadcast(1024, 3), 200, 0.01, 1.9},
                    Case{"broadcast_64k_16", 16, root_broadcast(65'536, 3), 100, 0.01, 1.5},
                    Case{"alltoall_64_16", 16, alltoall(64), 200, 0.01, 3.4},
                    Case{"alltoall_64_64", 64, alltoall(64), 100, 0.01, 32},
                    Case{"direct_64k_16", 16, direct(65'536), 30, 0.01, 1.5},
                    Case{"direct_16k_64", 64, direct(16'384), 10, 0.01, 1.8},
                    Case{"direct_allgather_64k_16", 16, direct_allgather(65'536), 30, 0.01, 4.5},
                    Case{"direct_allgather_64k_32", 32, direct_allgather(65'536), 20, 0.01, 4.5}),
    name_of);

}  // namespace
}  // namespace peal::sim
