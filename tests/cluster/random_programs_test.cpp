// SPDX-License-Identifier: BSD-2-Clause
// Random programs in virtual time, over bad wires: what must come out does, start after start, and
// the cards have nothing left.
#include "tools/peal-sim/random_programs.h"

#include <gtest/gtest.h>

#include "hostlib/program_check.h"

namespace peal::sim {
namespace {

constexpr uint64_t kSeeds = 120;

TEST(RandomProgramsInTime, BringWhatTheyMustWhateverTheWireDoes) {
  RandomPrograms::Counts all;
  for (uint64_t seed = 1; seed <= kSeeds; seed++) {
    const RandomPrograms plan(seed);
    ClusterOptions options;
    options.cards = plan.ranks();
    options.seed = seed;
    if (seed % 3 != 0) {
      options.faults.loss = 0.04;
      options.faults.duplicate = 0.03;
      options.faults.reorder = 0.05;
      options.faults.corrupt = 0.02;
    }
    ProgramHosts hosts(options, plan.bytes(), [&](const ProgramHosts::Place& place) {
      host::Program program = plan.write(place);
      for (const host::Finding& finding : host::check_program(program)) {
        EXPECT_FALSE(finding.wrong) << finding.text;
      }
      return program;
    });
    for (uint32_t rank = 0; rank < plan.ranks(); rank++) {
      plan.fill_send(rank, hosts.send(rank));
      hosts.start(rank, 1, rank == seed % 5 ? 300'000 : 0);
      hosts.start(rank, plan.everybody_has_a_part() ? 3 : 1, rank == seed % 5 ? 300'000 : 0);
    }
    hosts.run();
    EXPECT_EQ(hosts.problems(), "") << "seed " << seed;
    for (uint32_t rank = 0; rank < plan.ranks(); rank++) {
      EXPECT_EQ(plan.wrong_bytes(rank, hosts.receive(rank)), 0u)
          << "rank " << rank << ", seed " << seed;
    }
    EXPECT_EQ(hosts.leaks(), "") << "seed " << seed;
    if (HasFailure()) return;
    all.puts += plan.counts().puts;
    all.messages += plan.counts().messages;
    all.signals += plan.counts().signals;
    all.passed_on += plan.counts().passed_on;
    all.to_itself += plan.counts().to_itself;
  }
  // A corner that no seed reached is not tested.
  EXPECT_GT(all.puts, kSeeds);
  EXPECT_GT(all.messages, kSeeds);
  EXPECT_GT(all.signals, kSeeds);
  EXPECT_GT(all.passed_on, kSeeds);
  EXPECT_GT(all.to_itself, kSeeds / 2);
}

}  // namespace
}  // namespace peal::sim
