// SPDX-License-Identifier: BSD-2-Clause
// Who has said "not yet" shows, where packets are lost, that it has kept its word.
#include "firmware/group/promises.h"

#include <algorithm>
#include <vector>

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr TimeNs kLook = kNack / 8;
constexpr TimeNs kProbe = CONFIG_PROBE_INTERVAL_US * TimeNs{1000};

// Rank 1 of four in a barrier: rank 3 asks for round 1, which goes to it when round 0 has come from
// rank 0.
class PromisesTo3 : public GroupTest {
 protected:
  PromisesTo3() : GroupTest(4, 1) {}

  void be_asked(uint32_t sequence, bool losses = true) {
    Frame question = wire.nack(3, kBarrierShape, sequence, 0, 0, 1);
    if (losses) question.header.flags |= PEAL_PACKET_LOSSES;
    seal(question);
    bench.deliver(question);
  }
  void go_on(uint32_t sequence) { bench.deliver(wire.signal(0, kBarrierShape, sequence, 0)); }
  // How many packets rank 3 is told of while time passes; what is said of liveness to nobody who
  // has asked.
  std::vector<unsigned> told_within(TimeNs time_ns) {
    bench.port.take_sent();
    bench.advance(time_ns);
    std::vector<unsigned> told;
    for (const Frame& frame : bench.port.take_sent()) {
      if (frame.header.type != PEAL_PACKET_ALIVE) continue;
      EXPECT_EQ(frame.header.destination[5], 3);
      EXPECT_NE(frame.header.flags & PEAL_PACKET_NUMBERED, 0);
      told.push_back(frame.header.edge);
    }
    return told;
  }
  [[nodiscard]] bool has_promised() {
    const Promises& promises = bench.card().members[0].promises;
    return promises.sent != 0 ||
           std::any_of(std::begin(promises.of), std::end(promises.of),
                       [](const Promise& promise) { return promise.to != 0; });
  }
  using Told = std::vector<unsigned>;
};

TEST_F(PromisesTo3, WhoHasPromisedSaysSoonHowManyPacketsThereWere) {
  post_barrier(0);
  be_asked(0);
  EXPECT_EQ(told_within(4 * kLook), Told{});
  go_on(0);
  EXPECT_EQ(told_within(kLook), Told{});
  EXPECT_EQ(told_within(2 * kLook), Told{1});
  EXPECT_EQ(told_within(8 * kLook), Told{});
}

// Its own part may be over before anybody is told.
TEST_F(PromisesTo3, AlsoWhenItIsOver) {
  post_barrier(0);
  be_asked(0);
  go_on(0);
  bench.deliver(wire.signal(3, kBarrierShape, 0, 1));
  EXPECT_EQ(told_within(3 * kLook), Told{1});
  EXPECT_FALSE(has_promised());
}

TEST_F(PromisesTo3, WhereNothingWasLostNothingIsSaid) {
  post_barrier(0);
  be_asked(0, false);
  go_on(0);
  EXPECT_EQ(told_within(8 * kLook), Told{});
  EXPECT_FALSE(has_promised());
}

// Packets that follow show a loss themselves.
TEST_F(PromisesTo3, WhatFollowsSaysItAsWell) {
  post_barrier(0);
  post_barrier(1);
  be_asked(0);
  go_on(0);
  EXPECT_EQ(told_within(kLook + kLook / 2), Told{});
  go_on(1);
  EXPECT_EQ(told_within(kLook), Told{});
  EXPECT_EQ(told_within(2 * kLook), Told{2});
}

// Another operation's packet is not what was promised.
TEST_F(PromisesTo3, APromiseStandsUntilItsOperationIsOver) {
  post_barrier(0);
  post_barrier(1);
  be_asked(1);
  go_on(0);
  EXPECT_EQ(told_within(3 * kLook), Told{1});
  go_on(1);
  EXPECT_EQ(told_within(3 * kLook), Told{2});
}

// The next operation in its place has promised nothing.
TEST_F(PromisesTo3, APromiseIsOfItsOperation) {
  post_barrier(0);
  be_asked(0);
  bench.card().members[0].operations[0].sequence += CONFIG_CHANNELS;
  bench.advance(kLook);
  EXPECT_FALSE(has_promised());
  bench.card().members[0].operations[0].sequence -= CONFIG_CHANNELS;
}

// Other timers of the group do not make it look sooner.
TEST_F(PromisesTo3, LooksAreApart) {
  post_barrier(0);
  be_asked(0);
  go_on(0);
  for (int times = 0; times < 4; times++) {
    bench.card().timers.arm_no_later(bench.card().members[0].timer, bench.now + kLook / 8);
    EXPECT_EQ(told_within(kLook / 4), Told{});
  }
  EXPECT_EQ(told_within(2 * kLook), Told{1});
}

// Who has nothing to send looks ever more seldom: after a quarter of the time that has passed.
TEST_F(PromisesTo3, LooksBecomeRare) {
  post_barrier(0);
  be_asked(0);
  const auto next_look = [&] { return bench.card().members[0].promises.look_ns - bench.now; };
  const TimeNs until = bench.now + 64 * kLook;
  uint32_t looks = 0;
  for (; bench.now + next_look() < until; looks++) bench.advance(next_look());
  EXPECT_LE(looks, 20u);
  go_on(0);
  EXPECT_EQ(told_within(next_look() + kLook - 1), Told{});
  EXPECT_EQ(told_within(1), Told{1});
}

// Without a packet for it that is said later.
TEST_F(PromisesTo3, WhereThereIsNoPacketItIsSaidLater) {
  post_barrier(0);
  be_asked(0);
  go_on(0);
  bench.advance(kLook);
  bench.port.fail_allocations = {0, 1};
  EXPECT_EQ(told_within(kLook), Told{});
  EXPECT_GE(bench.counter(PEAL_COUNTER_NO_PACKET), 1u);
  EXPECT_EQ(told_within(kLook), Told{1});
}

// Probes say the same then.
TEST_F(PromisesTo3, APromiseLapses) {
  post_barrier(0);
  be_asked(0);
  EXPECT_TRUE(has_promised());
  bench.advance(6 * kProbe);
  EXPECT_FALSE(has_promised());
}

}  // namespace
}  // namespace peal::test
