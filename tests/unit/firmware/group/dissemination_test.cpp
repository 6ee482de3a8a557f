// SPDX-License-Identifier: BSD-2-Clause
// The dissemination barrier as one rank sees it (rank 1 of 4, and odd sizes): every order of its
// signals, repeats, what is too old or too new, loss, and late NACKs.
#include "firmware/group/dissemination.h"

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

class Barrier : public GroupTest {
 protected:
  Frame signal(uint32_t sequence, uint32_t round) {
    return wire.signal(behind(round), kBarrierShape, sequence, round);
  }
};

TEST_F(Barrier, InOrder) {
  post_barrier(0);
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL barrier seq=0 round=0\n");
  bench.deliver(signal(0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL barrier seq=0 round=1\n");
  bench.deliver(signal(0, 1));
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 0u);
}

TEST_F(Barrier, LaterRoundFirst) {
  post_barrier(0);
  bench.take_log();
  bench.deliver(signal(0, 1));
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(signal(0, 0));
  EXPECT_EQ(bench.take_log(),
            "send 1>3 SIGNAL barrier seq=0 round=1\n"
            "complete ctx0 cookie=100 OK\n");
}

// Any skew: what came before the host's post waits in the record, silently.
TEST_F(Barrier, SignalsBeforeThePost) {
  bench.deliver(signal(0, 1));
  bench.deliver(signal(0, 0));
  EXPECT_EQ(bench.take_log(), "");
  post_barrier(0);
  EXPECT_EQ(bench.take_log(),
            "send 1>2 SIGNAL barrier seq=0 round=0\n"
            "send 1>3 SIGNAL barrier seq=0 round=1\n"
            "complete ctx0 cookie=100 OK\n");
}

TEST_F(Barrier, HostSecondsLateMeansNoTraffic) {
  bench.deliver(signal(0, 0));
  bench.advance(5'000'000'000);
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
}

TEST_F(Barrier, DuplicateIsCountedAndNothingElse) {
  post_barrier(0);
  bench.deliver(signal(0, 0));
  bench.take_log();
  const uint64_t duplicates = bench.counter(PEAL_COUNTER_DUPLICATE);
  bench.deliver(signal(0, 0));
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DUPLICATE), duplicates + 1);
  bench.deliver(signal(0, 1));
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
  bench.deliver(signal(0, 1));
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DUPLICATE), duplicates + 2);
}

TEST_F(Barrier, NextOperationsSignalsDoNotCountForThisOne) {
  post_barrier(0);
  bench.take_log();
  bench.deliver(signal(1, 0));
  bench.deliver(signal(1, 1));
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(signal(0, 0));
  bench.deliver(signal(0, 1));
  bench.take_log();
  post_barrier(1);
  EXPECT_EQ(bench.take_log(),
            "send 1>2 SIGNAL barrier seq=1 round=0\n"
            "send 1>3 SIGNAL barrier seq=1 round=1\n"
            "complete ctx0 cookie=101 OK\n");
}

TEST_F(Barrier, RecycledSequenceIsStale) {
  run_barriers(0, kEpoch);
  bench.take_log();
  const auto before = bench.counters();
  bench.deliver(signal(0, 0));
  EXPECT_EQ(bench.counter_changes(before), "+1 drop_stale");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Barrier, SequenceBeyondTheChannelsIsFuture) {
  for (const uint32_t sequence : {uint32_t{CONFIG_CHANNELS}, 1000u, 0x7fffffffu}) {
    const auto before = bench.counters();
    bench.deliver(signal(sequence, 0));
    EXPECT_EQ(bench.counter_changes(before), "+1 drop_future") << sequence;
  }
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

TEST_F(Barrier, SequenceBehindTheFirstIsStale) {
  const auto before = bench.counters();
  bench.deliver(signal(0xffffffffu, 0));
  bench.deliver(signal(0x80000000u, 0));
  EXPECT_EQ(bench.counter_changes(before), "+2 drop_stale");
}

struct StraySignal {
  const char* name;
  uint32_t sender;
  uint32_t round;
  const char* counted;
};

TEST_F(Barrier, SignalsFromTheWrongRankOrRound) {
  post_barrier(0);
  bench.take_log();
  for (const StraySignal& bad :
       {StraySignal{"sender of round 1 in round 0", 3, 0, "+1 drop_sender"},
        StraySignal{"the peer ahead", 2, 0, "+1 drop_sender"},
        StraySignal{"round beyond log N", 0, 2, "+1 drop_hop"},
        StraySignal{"round 255", 0, 255, "+1 drop_hop"}}) {
    const auto before = bench.counters();
    bench.deliver(wire.signal(bad.sender, kBarrierShape, 0, bad.round));
    EXPECT_EQ(bench.counter_changes(before), bad.counted) << bad.name;
  }
  EXPECT_EQ(bench.take_log(), "");
}

// --- loss ---

TEST_F(Barrier, MissingSignalIsAskedForAfterTheTimeOut) {
  post_barrier(0);
  bench.take_log();
  const TimeNs first = default_timeouts().nack_ns;
  bench.advance(first - 1);
  EXPECT_EQ(bench.take_log(), "");
  bench.advance(1);
  EXPECT_EQ(bench.take_log(), "send 1>0 NACK barrier seq=0 round=0\n");
  Frame repair = signal(0, 0);
  WireMaker::make_repair(repair);
  bench.deliver(repair);
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL barrier seq=0 round=1\n");
}

// Where answers take long the questions wait longer from the start, for they are in some queue.
TEST_F(Barrier, SlowAnswersMakePatient) {
  const CardTimeouts timeouts = default_timeouts();
  post_barrier(0);
  bench.advance(timeouts.nack_ns);
  const uint32_t asked_us = now_us();
  bench.take_log();
  bench.now += 8 * timeouts.nack_ns;
  bench.deliver(wire.not_yet(0, kBarrierShape, 0, 0, 0, 0, asked_us));
  bench.deliver(signal(0, 0));
  bench.take_log();
  bench.advance(16 * timeouts.nack_ns - 2000);
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.advance(2000);
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 NACK barrier seq=0 round=1\n");
}

// Ever more slowly up to the limit, whether the answer was "not yet" or nothing.
TEST_F(Barrier, EveryTimeOutDoublesTheIntervalUpToTheLimit) {
  // Nothing that is answered teaches patience meanwhile.
  patience_lost(bench.card().members[0].patience, default_timeouts());
  bench.card().members[0].patience.wait_ns = default_timeouts().nack_ns;
  post_barrier(0);
  bench.take_log();
  const CardTimeouts timeouts = default_timeouts();
  const std::string nack = "send 1>0 NACK barrier seq=0 round=0\n";
  TimeNs interval = timeouts.nack_ns;
  // Later on, probes come in between.
  for (int i = 0; interval < timeouts.probe_interval_ns / 2; i++) {
    bench.advance(interval - 1);
    ASSERT_EQ(bench.take_log(), "") << "after less than " << interval << " ns";
    bench.advance(1);
    ASSERT_EQ(bench.take_log(), nack);
    if (i % 2 == 0) bench.deliver(wire.not_yet(0, kBarrierShape, 0, 0, 0, 0, now_us()));
    interval = std::min(2 * interval, timeouts.nack_max_ns);
  }
  bench.advance(timeouts.nack_max_ns);
  bench.take_log();
  // Never longer than the limit.
  for (int i = 0; i < 5; i++) {
    bench.advance(timeouts.nack_max_ns);
    EXPECT_EQ(bench.take_log(), i == 0 ? nack + "send 1>0 PROBE\n" : nack) << i;
    bench.deliver(wire.not_yet(0, kBarrierShape, 0, 0, 0, 0, now_us()));
  }
  // Progress starts the short interval anew.
  bench.deliver(signal(0, 0));
  bench.take_log();
  bench.advance(timeouts.nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 NACK barrier seq=0 round=1\n");
}

// --- others' NACKs ---

TEST_F(Barrier, NackForWhatWasSentIsRepaired) {
  post_barrier(0);
  bench.take_log();
  bench.deliver(wire.nack(2, kBarrierShape, 0, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL barrier seq=0 round=0 repair\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_REPAIR), 1u);
}

TEST_F(Barrier, NackForWhatCannotBeSentYetIsAnsweredNotYet) {
  post_barrier(0);
  bench.take_log();
  bench.deliver(wire.nack(3, kBarrierShape, 0, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>3 NOT_YET barrier seq=0 round=1\n");
}

TEST_F(Barrier, NackBeforeThePostIsAnsweredNotYet) {
  bench.deliver(wire.nack(2, kBarrierShape, 0, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 NOT_YET barrier seq=0 round=0 late\n");
}

TEST_F(Barrier, LateNackAfterCompletionIsRepaired) {
  run_barrier(0);
  bench.take_log();
  bench.deliver(wire.nack(3, kBarrierShape, 0, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL barrier seq=0 round=1 repair\n");
}

TEST_F(Barrier, NacksThatMakeNoSense) {
  post_barrier(0);
  bench.take_log();
  const auto refused = [&](const Frame& frame) {
    const auto before = bench.counters();
    bench.deliver(frame);
    EXPECT_EQ(bench.take_log(), "");
    return bench.counter_changes(before);
  };
  EXPECT_EQ(refused(wire.nack(3, kBarrierShape, 0, 0, 0, 0)), "+1 drop_sender");
  EXPECT_EQ(refused(wire.nack(0, kBarrierShape, 0, 0, 0, 0)), "+1 drop_sender");
  EXPECT_EQ(refused(wire.nack(2, kBarrierShape, 0, 0, 0, 2)), "+1 drop_hop");
  EXPECT_EQ(refused(wire.nack(2, kBarrierShape, CONFIG_CHANNELS, 0, 0, 0)), "+1 drop_future");
}

// --- sizes ---

class BarrierOf1 : public GroupTest {
 protected:
  BarrierOf1() : GroupTest(1, 0) {}
};

TEST_F(BarrierOf1, CompletesAtOnceForEver) {
  for (uint64_t sequence = 0; sequence < 5 * CONFIG_CHANNELS; sequence++) {
    post_barrier(sequence);
    ASSERT_EQ(bench.take_log(), "complete ctx0 cookie=" + std::to_string(100 + sequence) + " OK\n");
  }
}

class BarrierOf2 : public GroupTest {
 protected:
  BarrierOf2() : GroupTest(2, 1) {}
};

TEST_F(BarrierOf2, OneSignalEachWay) {
  post_barrier(0);
  EXPECT_EQ(bench.take_log(), "send 1>0 SIGNAL barrier seq=0 round=0\n");
  bench.deliver(wire.signal(0, kBarrierShape, 0, 0));
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
}

class BarrierOf5 : public GroupTest {
 protected:
  BarrierOf5() : GroupTest(5, 3) {}
};

TEST_F(BarrierOf5, RoundsGoRoundTheGroup) {
  post_barrier(0);
  bench.deliver(wire.signal(2, kBarrierShape, 0, 0));
  bench.deliver(wire.signal(1, kBarrierShape, 0, 1));
  bench.deliver(wire.signal(4, kBarrierShape, 0, 2));
  EXPECT_EQ(bench.take_log(),
            "send 3>4 SIGNAL barrier seq=0 round=0\n"
            "send 3>0 SIGNAL barrier seq=0 round=1\n"
            "send 3>2 SIGNAL barrier seq=0 round=2\n"
            "complete ctx0 cookie=100 OK\n");
}

// --- out of packets ---

TEST_F(Barrier, EmptyPoolIsTriedAgainLater) {
  bench.port.fail_allocations = {0, 3};
  post_barrier(0);
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_GE(bench.counter(PEAL_COUNTER_NO_PACKET), 1u);
  std::string log;
  for (int i = 0; i < 8 && log.empty() && bench.advance_to_deadline(); i++) log = bench.take_log();
  EXPECT_EQ(log, "send 1>2 SIGNAL barrier seq=0 round=0\n");
}

}  // namespace
}  // namespace peal::test
