// SPDX-License-Identifier: BSD-2-Clause
// Bounded running ahead: K operations, then only what recycling allows; parked beyond that, refused
// beyond the quota.
#include "firmware/group/recycling.h"

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kLate = 32;  // plenty of deadlines

class Recycling : public GroupTest {
 protected:
  void signals(uint64_t sequence) {
    for (uint32_t round = 0; (1u << round) < ranks; round++) {
      bench.deliver(
          wire.signal(behind(round), kBarrierShape, static_cast<uint32_t>(sequence), round));
    }
  }
  // Operations that prove nothing, without recycling.
  void finish_first_epoch() { run_own(0, kEpoch); }
  // A barrier, without recycling.
  void play_barrier(uint64_t sequence) {
    post_barrier(sequence);
    signals(sequence);
  }
  // Somebody whose signal comes after one that is missing here asks for it.
  void somebody_asks() {
    const OperationShape shape{PEAL_OPERATION_RECYCLE, PEAL_ALGORITHM_DISSEMINATION, 0};
    bench.deliver(wire.nack(ahead(1), shape, 0, 0, 0, 1));
    EXPECT_EQ(bench.take_log(), "send 1>3 NOT_YET recycle epoch=0 round=1\n");
  }
  static std::string complete(uint64_t sequence) {
    return "complete ctx0 cookie=" + std::to_string(100 + sequence) + " OK\n";
  }
};

TEST_F(Recycling, StartsWhenTheWholeEpochIsLocallyComplete) {
  post_barrier(0);
  run_own(1, kEpoch - 1);
  bench.take_log();
  signals(0);
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL barrier seq=0 round=1\n" + complete(0) +
                                  "send 1>2 SIGNAL recycle epoch=0 round=0\n");
  bench.deliver(wire.recycle(behind(0), 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL recycle epoch=0 round=1\n");
  bench.deliver(wire.recycle(behind(1), 0, 1));
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Recycling, CostsTwoRoundsOfFourRanksPerEpochAndNoMore) {
  for (uint64_t epoch = 0; epoch < 10; epoch++) {
    run_own(epoch * kEpoch, kEpoch);
    deliver_recycling(epoch);
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_RECYCLE), 10u * 2);
}

TEST_F(Recycling, CostsNothingWhereOperationsSynchronise) {
  for (uint64_t sequence = 0; sequence < 10 * kEpoch; sequence++) play_barrier(sequence);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_COMMANDS_PARKED), 0u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_SIGNAL), 10 * kEpoch * 2);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_RECYCLE), 0u);
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

// One in the second half of the next epoch, not before.
TEST_F(Recycling, AnOperationThatEverybodyHasStartedProvesTheEpochBefore) {
  const std::string old = std::to_string(kEpoch - 1);
  for (uint64_t sequence = 0; sequence < kEpoch + kEpoch / 2; sequence++) play_barrier(sequence);
  const auto late = wire.signal(behind(0), kBarrierShape, static_cast<uint32_t>(kEpoch - 1), 0);
  EXPECT_EQ(change(late), "+1 duplicate");
  play_barrier(kEpoch + kEpoch / 2);
  EXPECT_EQ(change(late), "+1 drop_stale");
}

// It would prove what is not so yet: that this card, too, has finished the epoch before.
TEST_F(Recycling, WhatWouldProveAnEpochThatIsNotFinishedHereWaits) {
  const uint64_t proving = kEpoch + kEpoch / 2;
  post_relay(0);
  for (uint64_t sequence = 1; sequence < proving; sequence++) play_barrier(sequence);
  bench.take_log();
  post_barrier(proving);
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_COMMANDS_PARKED), 1u);
  deliver_relay(0);
  const std::string number = std::to_string(proving);
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 frag=0 len=8\n" +
                                       complete(0) + "send 1>2 SIGNAL barrier seq=" + number +
                                       " round=0\n");
}

// One that proves nothing, whatever its place, need not.
TEST_F(Recycling, WhatProvesNothingDoesNotWaitForTheEpochBefore) {
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS; sequence++) post_relay(sequence);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_COMMANDS_PARKED), 0u);
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS; sequence++) deliver_relay(sequence);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_RECYCLE), 2u);  // round 0 of both epochs
}

// Whoever was refused what proves an epoch needs the signals of its own: those who were not send
// theirs when they hear of it, by a signal or by a question.
TEST_F(Recycling, AnEpochWithoutSignalsHasThemWhenSomebodyNeedsThem) {
  const OperationShape shape{PEAL_OPERATION_RECYCLE, PEAL_ALGORITHM_DISSEMINATION, 0};
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) play_barrier(sequence);
  bench.take_log();
  bench.deliver(wire.nack(ahead(1), shape, 0, 0, 0, 1));
  EXPECT_EQ(bench.take_log(),
            "send 1>2 SIGNAL recycle epoch=0 round=0\n"
            "send 1>3 NOT_YET recycle epoch=0 round=1\n");
  bench.deliver(wire.recycle(behind(0), 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL recycle epoch=0 round=1\n");
  bench.deliver(wire.recycle(behind(1), 0, 1));
  for (uint64_t sequence = kEpoch; sequence < 2 * kEpoch; sequence++) play_barrier(sequence);
  bench.take_log();
  bench.deliver(wire.recycle(behind(1), 1, 1));
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL recycle epoch=1 round=0\n");
}

// And it asks for them: an epoch that proves nothing ends with signals, which prove the one before,
// too.
TEST_F(Recycling, ALostSignalBehindAnEpochWithoutThemIsAskedFor) {
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) play_barrier(sequence);
  run_own(kEpoch, kEpoch);
  post_barrier(2 * kEpoch);
  bench.take_log();
  ASSERT_TRUE(bench.advance_to_deadline());
  EXPECT_EQ(bench.take_log(), "send 1>0 NACK recycle epoch=1 round=0\n");
  bench.deliver(wire.recycle(behind(0), 1, 0));
  bench.deliver(wire.recycle(behind(1), 1, 1));
  EXPECT_EQ(bench.take_log(),
            "send 1>3 SIGNAL recycle epoch=1 round=1\nsend 1>2 SIGNAL barrier seq=" +
                std::to_string(2 * kEpoch) + " round=0\n");
}

// Who was refused has not heard everybody.
TEST_F(Recycling, ARefusedOperationProvesNothing) {
  for (uint64_t sequence = 0; sequence + 1 < kEpoch + kEpoch / 2; sequence++) {
    play_barrier(sequence);
  }
  for (uint64_t sequence = kEpoch + kEpoch / 2 - 1; sequence < 2 * kEpoch; sequence++) {
    post_barrier(sequence);
    bench.deliver(wire.refuse(behind(0), kBarrierShape, static_cast<uint32_t>(sequence), 3));
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_RECYCLE), 1u);
  const auto late = wire.signal(behind(0), kBarrierShape, 0, 0);
  EXPECT_EQ(change(late), "+1 duplicate");
}

TEST_F(Recycling, KOperationsRunTheNextIsParkedAndStartsWhenItMay) {
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS; sequence++) post_relay(sequence);
  bench.take_log();
  post_barrier(CONFIG_CHANNELS);
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_COMMANDS_PARKED), 1u);
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), CONFIG_CHANNELS + 1u);
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) deliver_relay(sequence);
  bench.deliver(wire.recycle(behind(0), 0, 0));
  bench.take_log();
  bench.deliver(wire.recycle(behind(1), 0, 1));
  EXPECT_EQ(bench.take_log(),
            "send 1>2 SIGNAL barrier seq=" + std::to_string(CONFIG_CHANNELS) + " round=0\n");
}

TEST_F(Recycling, ParkingQuotaIsPerGroupAndItsEndIsTooMany) {
  const Membership other = bench.join(2, 0, 77);
  const uint64_t most = CONFIG_CHANNELS + CONFIG_PARKED_OPERATIONS;
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS; sequence++) post_relay(sequence);
  for (uint64_t sequence = CONFIG_CHANNELS; sequence < most; sequence++) post_barrier(sequence);
  bench.take_log();
  post_barrier(most);
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=" + std::to_string(100 + most) + " TOO_MANY\n");
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), most);
  // One group at its limit blocks no other.
  bench.submit(barrier_entry(other, 0, 5));
  EXPECT_EQ(bench.take_log(), "send 0>1 SIGNAL barrier seq=0 round=0\n");
  // And the refused sequence is free to be posted again once there is room.
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) deliver_relay(sequence);
  for (uint32_t round = 0; round < 2; round++) bench.deliver(wire.recycle(behind(round), 0, round));
  bench.take_log();
  post_barrier(most);
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), most + 1 - kEpoch + 1);
}

// A peer that is two epochs on proves that everybody has entered the recycling we still wait for.
TEST_F(Recycling, APacketFromTheEpochAfterNextProvesRecycling) {
  finish_first_epoch();
  for (uint64_t sequence = kEpoch; sequence <= CONFIG_CHANNELS; sequence++) post_barrier(sequence);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_COMMANDS_PARKED), 1u);
  bench.take_log();
  bench.deliver(wire.signal(behind(0), kBarrierShape, CONFIG_CHANNELS, 0));
  const std::string seq = std::to_string(CONFIG_CHANNELS);
  EXPECT_EQ(bench.take_log(),
            "send 1>3 SIGNAL recycle epoch=0 round=1\n"
            "send 1>2 SIGNAL barrier seq=" +
                seq +
                " round=0\n"
                "send 1>3 SIGNAL barrier seq=" +
                seq + " round=1\n");
}

TEST_F(Recycling, APacketThatCannotBeIsNoProof) {
  // We have not even finished epoch 0, so nobody can be past its recycling.
  post_barrier(0);
  bench.take_log();
  const auto before = bench.counters();
  bench.deliver(wire.signal(behind(0), kBarrierShape, CONFIG_CHANNELS, 0));
  EXPECT_EQ(bench.counter_changes(before), "+1 drop_future");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Recycling, EarlySignalsAreKept) {
  bench.deliver(wire.recycle(behind(1), 0, 1));
  bench.deliver(wire.recycle(behind(0), 0, 0));
  EXPECT_EQ(bench.take_log(), "");
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) play_barrier(sequence);
  const std::string log = bench.take_log();
  std::string barriers;
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) {
    const std::string number = std::to_string(sequence);
    barriers += "send 1>2 SIGNAL barrier seq=" + number +
                " round=0\nsend 1>3 SIGNAL barrier seq=" + number +
                " round=1\ncomplete ctx0 cookie=" + std::to_string(100 + sequence) + " OK\n";
  }
  EXPECT_EQ(log, barriers +
                     "send 1>2 SIGNAL recycle epoch=0 round=0\n"
                     "send 1>3 SIGNAL recycle epoch=0 round=1\n");
}

TEST_F(Recycling, DuplicateOldAndFutureSignals) {
  const auto change = [&](const Frame& frame) {
    const auto before = bench.counters();
    bench.deliver(frame);
    return bench.counter_changes(before);
  };
  bench.deliver(wire.recycle(behind(0), 0, 0));
  EXPECT_EQ(change(wire.recycle(behind(0), 0, 0)), "+1 duplicate");
  EXPECT_EQ(change(wire.recycle(behind(0), 2, 0)), "+1 drop_future");
  EXPECT_EQ(change(wire.recycle(behind(0), 0x7fffffff, 0)), "+1 drop_future");
  EXPECT_EQ(change(wire.recycle(behind(0), 0, 2)), "+1 drop_hop");
  EXPECT_EQ(change(wire.recycle(ahead(0), 0, 0)), "+1 drop_sender");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Recycling, LostSignalIsAskedFor) {
  finish_first_epoch();
  bench.take_log();
  somebody_asks();
  const TimeNs began = bench.now;
  ASSERT_TRUE(bench.advance_to_deadline());
  const TimeNs patience = bench.now - began;
  EXPECT_EQ(bench.take_log(), "send 1>0 NACK recycle epoch=0 round=0\n");
  bench.deliver(wire.not_yet(
      0, OperationShape{PEAL_OPERATION_RECYCLE, PEAL_ALGORITHM_DISSEMINATION, 0}, 0, 0, 0, 0));
  bench.advance(2 * patience - 1);
  EXPECT_EQ(bench.take_log(), "");
  bench.advance(1);
  EXPECT_EQ(bench.take_log(), "send 1>0 NACK recycle epoch=0 round=0\n");
}

// An epoch that ends late is no harm until something waits for it. Who is silent is looked after.
TEST_F(Recycling, NobodyIsAskedForWhatNobodyWaitsFor) {
  finish_first_epoch();
  bench.take_log();
  bench.advance(default_timeouts().dead_ns / 4);
  const std::string log = bench.take_log();
  EXPECT_EQ(log.find("NACK"), log.npos);
  EXPECT_NE(log.find("send 1>0 PROBE\n"), log.npos);
  bench.deliver(wire.alive(0));
  run_own(kEpoch, kEpoch);
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NACK), 0u);
  post_barrier(CONFIG_CHANNELS);  // parked
  bench.take_log();
  bench.advance(default_timeouts().nack_ns - 1);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NACK), 0u);
  bench.advance(1);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK recycle epoch=0 round=0\n");
}

// Or the card would look after its peers for ever.
TEST_F(Recycling, WhatNobodyWaitsForIsAskedForInTheEnd) {
  finish_first_epoch();
  bench.take_log();
  const TimeNs dead_ns = default_timeouts().dead_ns;
  while (bench.counter(PEAL_COUNTER_SENT_NACK) == 0) {
    ASSERT_TRUE(bench.now < 6 * dead_ns && bench.advance_to_deadline());
    bench.deliver(wire.alive(0));
  }
  EXPECT_GE(bench.now, 4 * dead_ns);
  EXPECT_LE(bench.now, 5 * dead_ns);
  for (uint32_t round = 0; round < 2; round++) bench.deliver(wire.recycle(behind(round), 0, round));
  bench.take_log();
  ASSERT_TRUE(bench.advance_to_deadline());  // one last look
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Recycling, OthersNacksAreRepairedOrAnsweredNotYet) {
  const OperationShape shape{PEAL_OPERATION_RECYCLE, PEAL_ALGORITHM_DISSEMINATION, 0};
  bench.deliver(wire.nack(ahead(0), shape, 0, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 NOT_YET recycle epoch=0 round=0 late\n");
  finish_first_epoch();
  bench.take_log();
  bench.deliver(wire.nack(ahead(0), shape, 0, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL recycle epoch=0 round=0 repair\n");
  for (uint32_t round = 0; round < 2; round++) bench.deliver(wire.recycle(behind(round), 0, round));
  bench.take_log();
  // Long past: whoever still asks is told.
  bench.deliver(wire.nack(ahead(1), shape, 0, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL recycle epoch=0 round=1 repair\n");
}

TEST_F(Recycling, LostByAnEmptyPoolIsSentAtTheTimeOut) {
  post_barrier(0);
  run_own(1, kEpoch - 1);
  bench.deliver(wire.signal(behind(1), kBarrierShape, 0, 1));
  bench.take_log();
  bench.port.fail_allocations = {
      1, 1};  // the barrier's last signal goes, the recycling's first does not
  bench.deliver(wire.signal(behind(0), kBarrierShape, 0, 0));
  EXPECT_EQ(bench.take_log(),
            "send 1>3 SIGNAL barrier seq=0 round=1\n"
            "complete ctx0 cookie=100 OK\n");
  somebody_asks();
  std::string log;
  for (uint32_t i = 0; i < kLate && log.empty() && bench.advance_to_deadline(); i++)
    log = bench.take_log();
  EXPECT_EQ(log,
            "send 1>2 SIGNAL recycle epoch=0 round=0\n"
            "send 1>0 NACK recycle epoch=0 round=0\n");
}

// While others are late the interval has grown; a signal that comes shortens it again, and the
// timer must follow.
TEST_F(Recycling, ASignalBringsTheTimerForward) {
  finish_first_epoch();
  bench.take_log();
  somebody_asks();
  for (int i = 0; i < 9; i++) {
    ASSERT_TRUE(bench.advance_to_deadline());
    bench.deliver(wire.alive(0));
  }
  bench.deliver(wire.recycle(0, 0, 0));
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 NACK recycle epoch=0 round=1\n");
}

// Nobody can be further than one epoch beyond what we still wait for.
TEST_F(Recycling, APacketFromTooFarAheadIsNoProof) {
  finish_first_epoch();
  bench.take_log();
  const auto before = bench.counters();
  bench.deliver(
      wire.signal(behind(0), kBarrierShape, static_cast<uint32_t>(CONFIG_CHANNELS + kEpoch), 0));
  EXPECT_EQ(bench.counter_changes(before), "+1 drop_future");
  EXPECT_EQ(bench.take_log(), "");
}

// And one that claims it while we are in the midst of the epoch is not remembered as one.
TEST_F(Recycling, WhatWasNoProofIsNoneLaterEither) {
  post_barrier(0);
  bench.deliver(wire.signal(behind(0), kBarrierShape, CONFIG_CHANNELS, 0));
  signals(0);
  run_own(1, kEpoch - 1);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_RECYCLE), 1u);  // its second round waits for rank 0
}

// Questions about recycling are paid for like all others: when the first burst and what grew since
// is spent, they wait.
TEST_F(Recycling, ItsQuestionsArePaidFor) {
  finish_first_epoch();
  for (int i = 0; i < 200; i++) {  // as dear as silence makes them
    bench.deliver(wire.alive(0));
    bench.advance(default_timeouts().nack_max_ns);
    bench.port.take_sent();
  }
  post_doubling(kEpoch, 64);
  bench.finish_all_dma();
  uint32_t questions = 0;
  for (int i = 0; i < 50; i++) {
    bench.deliver(wire.alive(0));
    bench.advance(default_timeouts().nack_max_ns);
    for (const Frame& frame : bench.port.take_sent()) {
      questions += frame.header.type == PEAL_PACKET_NACK ? 1 : 0;
    }
  }
  EXPECT_LE(questions, 55u);  // one in every probe interval, whatever it is about
}

}  // namespace
}  // namespace peal::test
