// SPDX-License-Identifier: BSD-2-Clause
// Transmit engines in virtual time, on cards that have three: each has a link of its own, and
// Trinaryx3 brings everything to everybody over a torus, whatever the wire does.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "hostlib/trinary.h"
#include "peal_config.h"
#include "tools/peal-sim/program_hosts.h"

namespace peal::sim {
namespace {

static_assert(CONFIG_TRANSMIT_ENGINES == host::TrinaryTrees::kTrees);

void fill(uint8_t* to, size_t bytes, uint64_t salt) {
  for (size_t i = 0; i < bytes; i++) to[i] = static_cast<uint8_t>((i + salt) * 2654435761u >> 24);
}

// Three puts of 1 MiB from rank 0 to rank 1, each by the engine that the test says.
TimeNs three_puts(const std::array<uint8_t, 3>& engines) {
  constexpr size_t kBytes = 1 << 20;
  ClusterOptions options;
  options.cards = 2;
  options.costs.dma_byte_gap_ps = 1;  // the links are what is measured
  options.costs.packet_ns = options.costs.send_ns = options.costs.dma_event_ns = 1;
  ProgramHosts hosts(options, {.bytes = 3 * kBytes}, [&](const ProgramHosts::Place& place) {
    host::Programs programs;
    for (uint32_t i = 0; i < 3; i++) {
      programs.push_back(std::make_unique<host::Program>(
          host::Program::Shape{.rank = place.rank, .ranks = 2, .engine = engines[i]}));
      host::Program& program = *programs.back();
      const uint16_t counter = program.add_counter(1 - place.rank);
      const host::Program::Notice notice = {.counter = counter};
      if (place.rank == 0) {
        program.wait(counter, 1);
        program.put(1, static_cast<uint8_t*>(place.send) + i * kBytes, kBytes,
                    {place.receives[1].key, i * kBytes}, &notice);
      } else {
        program.signal(0, notice);
        program.wait(counter, 1);
      }
    }
    return programs;
  });
  fill(hosts.send(0), 3 * kBytes, 1);
  hosts.start_all();
  const TimeNs time = hosts.run();
  EXPECT_EQ(hosts.problems(), "");
  EXPECT_EQ(std::memcmp(hosts.receive(1), hosts.send(0), 3 * kBytes), 0);
  EXPECT_EQ(hosts.leaks(), "");
  return time;
}

TEST(EnginesInTime, EachHasALinkOfItsOwn) {
  const TimeNs one = three_puts({0, 0, 0});
  const TimeNs two = three_puts({0, 1, 1});
  const TimeNs three = three_puts({0, 1, 2});
  EXPECT_GT(one * 10, three * 27) << "three times, but for what begins and ends it";
  EXPECT_GT(two * 10, three * 18);
}

ProgramHosts::MakeSeveral trinary(const host::TrinaryTrees& trees, size_t bytes, size_t segment) {
  return [&trees, bytes, segment](const ProgramHosts::Place& place) {
    return host::trinary_broadcast(trees, place.rank, place.receive, bytes, segment,
                                   place.receives);
  };
}

struct Case {
  host::Torus torus;
  uint32_t root;
  double loss;
};

class TrinaryInTime : public ::testing::TestWithParam<Case> {};

TEST_P(TrinaryInTime, StartAfterStartReachesEverybody) {
  constexpr size_t kBytes = 300'001;
  const auto& [torus, root, loss] = GetParam();
  host::TrinaryTrees trees;
  ASSERT_EQ(host::TrinaryTrees::plan(torus, root, &trees), "");
  ClusterOptions options;
  options.cards = trees.ranks();
  options.costs.torus = torus.size;
  options.costs.hop_ns = 100;
  options.faults.loss = options.faults.duplicate = options.faults.reorder = loss;
  ProgramHosts hosts(options, {.bytes = kBytes}, trinary(trees, kBytes, 8192));
  for (uint64_t start = 0; start < 3; start++) {
    fill(hosts.receive(root), kBytes, start);
    // Late, one after the other; and two iterations without a host between them.
    for (uint32_t rank = 0; rank < hosts.ranks(); rank++) {
      hosts.start(rank, 2, (rank * 7 + start) % 5 * 20'000);
    }
    hosts.run();
    EXPECT_EQ(hosts.problems(), "");
    for (uint32_t rank = 0; rank < hosts.ranks(); rank++) {
      EXPECT_EQ(std::memcmp(hosts.receive(rank), hosts.receive(root), kBytes), 0) << rank;
    }
  }
  EXPECT_EQ(hosts.leaks(), "");
}

std::string name_of(const ::testing::TestParamInfo<Case>& test) {
  const auto& [x, y, z] = test.param.torus.size;
  return std::to_string(x) + "x" + std::to_string(y) + "x" + std::to_string(z) + "_from_" +
         std::to_string(test.param.root);
}

INSTANTIATE_TEST_SUITE_P(Shapes, TrinaryInTime,
                         ::testing::Values(Case{{{2, 2, 3}}, 0, 0}, Case{{{2, 2, 3}}, 7, 0.03},
                                           Case{{{3, 3, 3}}, 13, 0}, Case{{{3, 3, 3}}, 5, 0.02},
                                           Case{{{4, 3, 1}}, 2, 0.05}),
                         name_of);

}  // namespace
}  // namespace peal::sim
