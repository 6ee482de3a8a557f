// SPDX-License-Identifier: BSD-2-Clause
// Who is alive: a peer that owes us something is probed, silence kills it, lateness does not, and a
// probe is answered whatever the host does.
#include "firmware/group/liveness.h"

#include "tests/support/log_lines.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

class Liveness : public GroupTest {
 protected:
  // Lets time pass in the card's own steps; how often each kind of line was sent.
  size_t sends_within(TimeNs time, const std::string& what) {
    const TimeNs until = bench.now + time;
    size_t count = 0;
    bench.take_log();
    while (card_next_deadline(bench.card()) <= until) {
      bench.advance_to_deadline();
      const std::string log = bench.take_log();
      for (size_t at = log.find(what); at != std::string::npos; at = log.find(what, at + 1))
        count++;
      bench.port.take_sent();
    }
    bench.advance(until - bench.now);
    return count;
  }
  CardTimeouts timeouts = default_timeouts();
};

TEST_F(Liveness, NobodyIsProbedWhoOwesNothing) {
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
  run_barrier(0);
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

TEST_F(Liveness, AProbeIsAnsweredAlways) {
  bench.deliver(wire.probe(3));
  EXPECT_EQ(bench.take_log(), "send 1>3 ALIVE\n");
  post_barrier(0);
  bench.take_log();
  bench.deliver(wire.probe(0));
  EXPECT_EQ(bench.take_log(), "send 1>0 ALIVE\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_LIVENESS), 2u);
}

// Only data and signals are sent again.
TEST_F(Liveness, AProbeCannotBeARepair) {
  for (const uint32_t sender : {0u, 2u, 3u}) {
    for (Frame frame : {wire.probe(sender), wire.alive(sender), wire.death(sender, 2)}) {
      WireMaker::make_repair(frame);
      const auto before = bench.counters();
      bench.deliver(frame);
      EXPECT_EQ(bench.counter_changes(before), "+1 drop_type");
    }
  }
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Liveness, AnAwaitedPeerIsProbedAtTheInterval) {
  post_barrier(0);
  const size_t probes = sends_within(10 * timeouts.probe_interval_ns, "send 1>0 PROBE");
  EXPECT_GE(probes, 9u);
  EXPECT_LE(probes, 10u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
}

TEST_F(Liveness, SilenceIsDeathNotEarlierThanConfigured) {
  post_barrier(0);
  sends_within(timeouts.dead_ns, "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
  sends_within(2 * timeouts.probe_interval_ns + timeouts.nack_ns, "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 1u);
  const auto done = bench.port.take_completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(status_text(done[0].second.status), "PEER_DEAD");
  EXPECT_EQ(done[0].second.failed_rank, 0u);
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

TEST_F(Liveness, AnythingHeardIsLife) {
  post_barrier(0);
  for (int i = 0; i < 30; i++) {
    sends_within(timeouts.dead_ns / 4, "");
    bench.deliver(i % 2 ? wire.alive(0) : wire.not_yet(0, kBarrierShape, 0, 0, 0, 0));
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 1u);
}

TEST_F(Liveness, WhatIsRefusedIsNoSignOfLife) {
  post_barrier(0);
  for (int i = 0; i < 12; i++) {
    sends_within(timeouts.dead_ns / 8, "");
    Frame other = wire.alive(0);
    other.header.identity += 0x9e3779b1u;  // the card was started again: another one
    seal(other);
    bench.deliver(other);
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 1u);
}

// A runner that was stopped for minutes wakes to deadlines long passed: nobody was asked meanwhile,
// so nobody is dead.
TEST_F(Liveness, AStoppedRunnerSuspectsNobodyAtOnce) {
  post_barrier(0);
  bench.advance(timeouts.nack_ns);
  bench.now += 100 * timeouts.dead_ns;
  card_on_timer(bench.card(), bench.now);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
  bench.deliver(wire.alive(0));
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 1u);
}

// The same when the peer had been probed often and nearly called dead: its answers may lie unread.
TEST_F(Liveness, AStoppedRunnerGivesTheAwaitedTheTimeThatItStood) {
  post_barrier(0);
  sends_within(timeouts.dead_ns - timeouts.probe_interval_ns, "");
  bench.now += 3 * timeouts.dead_ns;
  card_on_timer(bench.card(), bench.now);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_STALLS), 1u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
  sends_within(3 * timeouts.probe_interval_ns, "");  // and no more than that
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 1u);
}

// A probe that could not be sent for want of a packet was never unanswered.
TEST_F(Liveness, ProbesThatWereNotSentKillNobody) {
  post_barrier(0);
  sends_within(2 * timeouts.nack_ns, "");  // the peer is awaited
  bench.port.fail_allocations = {0, kAlways};
  sends_within(2 * timeouts.dead_ns, "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
  bench.port.fail_allocations = {};
  sends_within(4 * timeouts.probe_interval_ns, "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 1u);
}

// After a stop nobody is blamed, whatever his place in the table.
TEST_F(Liveness, AStoppedRunnerForgivesThePeersOfAllRounds) {
  post_barrier(0);
  bench.deliver(wire.signal(0, kBarrierShape, 0, 0));
  sends_within(timeouts.dead_ns - timeouts.probe_interval_ns, "");  // rank 3 is silent
  bench.now += 3 * timeouts.dead_ns;
  card_on_timer(bench.card(), bench.now);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_STALLS), 1u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
}

// The peer in the table's last place is watched as the others are.
class LivenessOf7 : public GroupTest {
 protected:
  LivenessOf7() : GroupTest(7, 0) {}
};

TEST_F(LivenessOf7, TheLastPeerIsWatchedToo) {
  post_barrier(0);
  bench.deliver(wire.signal(6, kBarrierShape, 0, 0));
  bench.deliver(wire.signal(5, kBarrierShape, 0, 1));
  bench.advance(default_timeouts().nack_ns + default_timeouts().probe_interval_ns);
  EXPECT_EQ(distinct_lines(bench.take_log()),
            "send 0>1 SIGNAL barrier seq=0 round=0\n"
            "send 0>2 SIGNAL barrier seq=0 round=1\n"
            "send 0>4 SIGNAL barrier seq=0 round=2\n"
            "send 0>3 NACK barrier seq=0 round=2\n"
            "send 0>3 PROBE\n");
}

// Recycling has its own time, which may be longer than that of the probes.
class LivenessWithRareQuestions : public GroupTest {
 protected:
  LivenessWithRareQuestions() : GroupTest(4, 1, {.timeouts = rare_questions()}) {}
  static CardTimeouts rare_questions() {
    CardTimeouts timeouts = default_timeouts();
    timeouts.probe_interval_ns = timeouts.nack_max_ns / 10;
    return timeouts;
  }
};

TEST_F(LivenessWithRareQuestions, ProbesDoNotWaitForRecycling) {
  run_own(0, kEpoch);
  bench.advance(default_timeouts().dead_ns / 8);  // nobody waits for the epoch: the first look
  size_t probes = 0;
  for (int i = 0; i < 10; i++) {
    bench.port.take_sent();
    bench.advance(default_timeouts().nack_max_ns);
    for (const Frame& frame : bench.port.take_sent())
      probes += frame.header.type == PEAL_PACKET_PROBE;
  }
  EXPECT_GE(probes, 98u);
  EXPECT_LE(probes, 100u);
}

// Time zero is a time as any other.
class LivenessAtTimeZero : public GroupTest {
 protected:
  static constexpr size_t kBlock = CONFIG_MTU_BYTES;  // in the unit profile too large for staging
};

TEST_F(LivenessAtTimeZero, WhoIsAskedIsAwaited) {
  const std::string length = std::to_string(kBlock);
  bench.now = 0;
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  deliver_others(0, kBlock);
  bench.deliver(wire.nack(3, broadcast_shape(kBlock), 0, 0, 0, 1));  // asked of rank 0, at once
  bench.advance(default_timeouts().probe_interval_ns - 1);
  EXPECT_EQ(distinct_lines(bench.take_wire_log()),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=" + length +
                "\n"
                "send 1>3 DATA seq=0 piece=0 origin=1 hop=1 len=" +
                length +
                "\n"
                "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=" +
                length +
                "\n"
                "complete ctx0 cookie=100 OK\n"
                "send 1>0 NACK seq=0 piece=0 origin=0\n"
                "send 1>3 NOT_YET seq=0 piece=0 origin=0\n");
  bench.advance(1);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 PROBE\n");
}

}  // namespace
}  // namespace peal::test
