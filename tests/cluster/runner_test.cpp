// SPDX-License-Identifier: BSD-2-Clause
// What firmware/card.h asks of whoever runs a card: what has arrived is served before timers, also
// when the runner was stopped for long.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <tuple>

#include "emulator/cluster/cluster.h"
#include "emulator/common/packet_text.h"
#include "emulator/common/windows.h"
#include "hostlib/program_collectives.h"
#include "tests/cluster/plans.h"
#include "tools/peal-sim/program_hosts.h"

namespace peal::sim {
namespace {

// What a rank (on the card of the same number) asks for itself; what it was asked for first, and
// hands on for others, is not counted.
class Questions final : public Observer {
 public:
  explicit Questions(uint32_t rank) : rank_(rank) {}
  void on_send(TimeNs, const FrameView& frame) override {
    const peal_wire_header& header = *frame.header;
    if (header.type != PEAL_PACKET_NACK) return;
    // In all-to-all broadcast a question names several origins, downwards from the header's.
    peal_nack nack;
    std::memcpy(&nack, frame.payload, sizeof(nack));
    const bool hopping = header.algorithm == PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST;
    for (uint32_t bit = 0; bit < (hopping ? 64u : 1u); bit++) {
      if (hopping && (nack.fragments >> bit & 1) == 0) continue;
      const auto what = std::make_tuple(header.sequence, header.piece,
                                        (header.origin + kRanks - bit % kRanks) % kRanks);
      if (emulator::card_of_mac(header.destination) == rank_) asked_of_it_.insert(what);
      if (header.sender == rank_ && !asked_of_it_.contains(what)) count++;
    }
  }
  uint64_t count = 0;

 private:
  uint32_t rank_;
  static constexpr uint32_t kRanks = 8;
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> asked_of_it_;
};

// Everything the stopped card waited for is in its queue when it goes on, long after its timers
// were due: it has nothing to ask for.
TEST(Runner, AStoppedCardServesItsQueueBeforeItsTimers) {
  for (const auto& operation : {kBarrier, broadcast(64), broadcast(20'000), doubling(64)}) {
    Scenario scenario = bare_plan(8, operation, 1);
    scenario.accidents.push_back({Accident::Kind::kFreeze, {5, 0}, 1500, 50 * kMillisecond});
    Questions questions(5);
    RunOptions options;
    options.observer = &questions;
    const Report report = run(scenario, options);
    EXPECT_TRUE(report.ok) << failures(report);
    EXPECT_EQ(questions.count, 0u);
    EXPECT_GT(report.packets[PEAL_PACKET_NACK], 0u) << "the others ask a card that does not answer";
    EXPECT_EQ(report.peer_dead, 0u);
  }
}

// A processor that cannot keep up is behind in its queue when its timers are due: card 0 is busy
// for 700 us with one group while the signal of another comes in, at 300 us, after that one's
// timer.
TEST(Runner, ABusyCardServesItsQueueBeforeItsTimers) {
  Scenario scenario = bare_plan(9, broadcast(64), 1);
  scenario.costs.packet_ns = 100 * kMicrosecond;
  scenario.groups[0].places.erase(scenario.groups[0].places.begin() + 1);
  scenario.groups[0].connect_ns.resize(8);
  scenario.groups[0].first_post_ns.resize(8);
  GroupPlan pair = make_group(2, 1);
  for (Place& place : pair.places) place.process = 1;
  pair.operations = {kBarrier};
  pair.destroy = false;
  pair.first_post_ns[1] = 300 * kMicrosecond;
  scenario.groups.push_back(pair);
  const Report report = run(scenario);
  EXPECT_TRUE(report.ok) << failures(report);
  EXPECT_EQ(report.packets[PEAL_PACKET_NACK], 0u);
}

// So many arrivals wait for a processor as its queue has places, however long each will take it.
TEST(Runner, AsManyArrivalsWaitAsTheQueueHolds) {
  for (const TimeNs packet_ns : {TimeNs{0}, TimeNs{100}, kMicrosecond}) {
    Scenario scenario = plan(32, direct_allgather(64), 10, 8);
    scenario.costs.packet_ns = packet_ns;
    scenario.costs.send_ns = kMicrosecond;
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << failures(report);
    // (31 from each operation under way.)
    EXPECT_EQ(report.cluster.dropped_queue, 0u) << packet_ns;
  }
  constexpr uint32_t kRanks = 8;
  constexpr size_t kBlock = 64;
  const auto dropped = [](uint32_t places) {
    ClusterOptions options;
    options.cards = kRanks;
    options.receive_queue = places;
    options.costs.packet_ns = 10 * kMicrosecond;
    ProgramHosts hosts(options, kRanks * kBlock, [](const ProgramHosts::Place& place) {
      return host::pairwise_alltoall(place.rank, kRanks, place.send, kBlock, kRanks,
                                     place.receives);
    });
    hosts.start_all();
    hosts.run();
    EXPECT_EQ(hosts.problems(), "");
    return hosts.cluster().counts().dropped_queue;
  };
  EXPECT_GT(dropped(1), 0u);
  EXPECT_GT(dropped(3), 0u);
  EXPECT_EQ(dropped(1024), 0u);
}

// The others may take a card for dead that is stopped for longer than their patience; it takes
// nobody for dead.
TEST(Runner, ACardStoppedForTooLongIsDeadAndNobodyElse) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    Scenario scenario = plan(8, broadcast(3000), 300, 3);
    scenario.seed = seed;
    scenario.faults.loss = 0.1;
    scenario.faults.until_ns = 10 * kSecond;
    scenario.accidents.push_back(
        {Accident::Kind::kFreeze, {5, 0}, 300 * kMicrosecond, 3 * scenario.timeouts.dead_ns});
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << "seed " << seed << "\n" << failures(report);
    EXPECT_GT(report.peer_dead, 0u);
  }
}

TEST(Runner, AShortStopIsLatenessOnly) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    Scenario scenario = plan(6, doubling(3000), 100, 2);
    scenario.seed = seed;
    scenario.faults.loss = 0.05;
    scenario.faults.until_ns = 10 * kSecond;
    for (uint32_t card = 0; card < 6; card++)
      scenario.accidents.push_back({Accident::Kind::kFreeze,
                                    {card, 0},
                                    (100 + 60 * card) * kMicrosecond,
                                    scenario.timeouts.dead_ns / 4});
    const Report report = run(scenario);
    EXPECT_TRUE(report.ok) << "seed " << seed << "\n" << failures(report);
    EXPECT_EQ(report.peer_dead, 0u);
  }
}

// A card that found no room for a completion looks again when the host has taken what there was,
// until it has taken every submission: also when the host takes one completion at a time.
TEST(Runner, AllThatWaitsForRoomIsTakenWhenThereIsSome) {
  constexpr uint32_t kWaiting = 4;
  Cluster cluster(ClusterOptions{}, nullptr, nullptr);
  uint32_t context;
  ASSERT_EQ(cluster.open_context(0, &context), PEAL_STATUS_OK);
  const peal_submission of_no_group{};  // completes at once
  for (uint32_t i = 0; i < emulator::kRingEntries + kWaiting; i++) {
    ASSERT_TRUE(cluster.submit(0, context, of_no_group));
    while (cluster.step()) continue;
  }
  uint32_t completions = 0;
  const auto take_all = [&] {
    peal_completion entry;
    while (cluster.poll(0, context, &entry)) {
      completions++;
      while (cluster.step()) continue;
    }
    while (cluster.step()) continue;  // by the look that found nothing the card has heard of them
  };
  take_all();
  EXPECT_EQ(completions, emulator::kRingEntries);
  take_all();
  EXPECT_EQ(completions, emulator::kRingEntries + kWaiting);
}

}  // namespace
}  // namespace peal::sim
