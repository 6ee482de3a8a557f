// SPDX-License-Identifier: BSD-2-Clause
// Bounded running ahead: K operations, then only what recycling allows; parked beyond that, refused
// beyond the quota. Who says what to whom, in which tree.
#include "firmware/group/recycling.h"

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kLate = 32;  // plenty of deadlines

// Rank 1 of 4. Of what rank 0 broadcasts (relays) it tells rank 3 that it is over, hears of rank 0
// that it is for all, and tells rank 3. Of its own it is the root, and hears ranks 0 and 3.
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
  void run_relays(uint64_t sequence, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
      post_relay(sequence + i);
      deliver_relay(sequence + i);
    }
  }
  // What this rank's own broadcasts are recycled by.
  void both_below(uint64_t epoch) {
    for (uint32_t hop = 0; hop < 2; hop++) {
      bench.deliver(wire.recycle_below(static_cast<uint32_t>(epoch), rank, hop));
    }
  }
  // Somebody whom this rank is to tell asks.
  void somebody_asks() {
    bench.deliver(wire.recycle_nack(PEAL_RECYCLE_ALL, 0, rank, 1));
    EXPECT_EQ(bench.take_log(), "send 1>3 NOT_YET recycle epoch=0 all root=1 hop=1\n");
  }
  [[nodiscard]] uint64_t recycled() { return bench.card().members[0].recycled; }
  void lose_something() { bench.card().members[0].patience.lossless = false; }
  static std::string complete(uint64_t sequence) {
    return "complete ctx0 cookie=" + std::to_string(100 + sequence) + " OK\n";
  }
  inline static const std::string kTellsBelow =
      "send 1>3 SIGNAL recycle epoch=0 below root=0 hop=1\n";
  inline static const std::string kTellsAll = "send 1>3 SIGNAL recycle epoch=0 all root=0 hop=1\n";
};

TEST_F(Recycling, StartsWhenTheWholeEpochIsLocallyComplete) {
  post_relay(0);
  run_relays(1, kEpoch - 1);
  bench.take_log();
  deliver_relay(0);
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 frag=0 len=8\n" +
                                       complete(0) + kTellsBelow);
  bench.deliver(wire.recycle_all(0, 0, 0));
  EXPECT_EQ(bench.take_log(), kTellsAll);
  EXPECT_EQ(recycled(), 1u);
}

// Of rank 2's broadcasts it tells rank 2, behind rank 3.
TEST_F(Recycling, WhoHasOthersBelowWaitsForThem) {
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) {
    bench.submit(broadcast_entry(member, sequence, 100 + sequence, 2, 8, 0, receive.key));
    bench.deliver(wire.binomial(binomial_shape(8, 2), static_cast<uint32_t>(sequence), 0, 0,
                                pattern_block(sequence, 2, 0, 8)));
    bench.finish_all_dma();
  }
  bench.take_log();
  bench.deliver(wire.recycle_below(0, 2, 1));
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL recycle epoch=0 below root=2 hop=0\n");
  EXPECT_EQ(recycled(), 0u);
  // In another tree it says so anew.
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), kTellsBelow);
}

TEST_F(Recycling, CostsAPacketForEachEpochWhereTheRootGoesOn) {
  run_relays(0, 10 * kEpoch);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_RECYCLE), 10u);
  EXPECT_EQ(recycled(), 8u);
}

TEST_F(Recycling, CostsTheRootNothing) {
  for (uint64_t epoch = 0; epoch < 10; epoch++) {
    run_own(epoch * kEpoch, kEpoch);
    both_below(epoch);
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_RECYCLE), 0u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_COMMANDS_PARKED), 0u);
  EXPECT_EQ(recycled(), 10u);
  ASSERT_TRUE(bench.advance_to_deadline());  // one last look
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

// Where another one may begin the next epoch, it must be told.
TEST_F(Recycling, TheRootTellsAllWhereOthersBegin) {
  const std::string told =
      "send 1>2 SIGNAL recycle epoch=0 all root=1 hop=0\n"
      "send 1>3 SIGNAL recycle epoch=0 all root=1 hop=1\n";
  finish_first_epoch();
  both_below(0);
  bench.take_log();
  post_relay(kEpoch);
  EXPECT_EQ(bench.take_log(), told);
  deliver_relay(kEpoch);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_RECYCLE), 2u);
}

TEST_F(Recycling, TheRootTellsAllWhereOthersHaveBegun) {
  finish_first_epoch();
  deliver_relay(kEpoch);
  bench.take_log();
  both_below(0);
  EXPECT_EQ(bench.take_log(),
            "send 1>2 SIGNAL recycle epoch=0 all root=1 hop=0\n"
            "send 1>3 SIGNAL recycle epoch=0 all root=1 hop=1\n");
}

// It proves the epoch itself, to everybody.
TEST_F(Recycling, TheRootTellsNobodyWhereABarrierDoes) {
  run_own(0, kEpoch + kEpoch / 2);
  both_below(0);
  bench.take_log();
  play_barrier(kEpoch + kEpoch / 2);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_RECYCLE), 0u);
}

TEST_F(Recycling, WhoAsksTheRootIsTold) {
  finish_first_epoch();
  both_below(0);
  bench.take_log();
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_ALL, 0, 1, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL recycle epoch=0 all root=1 hop=0\n");
  // Who has asked before it is known is told as soon as it is.
  run_own(kEpoch, kEpoch);
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_ALL, 1, 1, 1));
  bench.take_log();
  both_below(1);
  EXPECT_EQ(bench.take_log(),
            "send 1>2 SIGNAL recycle epoch=1 all root=1 hop=0\n"
            "send 1>3 SIGNAL recycle epoch=1 all root=1 hop=1\n");
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
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_RECYCLE), 2u);
}

// Whoever was refused what proves an epoch needs the signals of its own: those who were not send
// theirs when they hear of it, by a signal or by a question.
TEST_F(Recycling, AnEpochWithoutSignalsHasThemWhenSomebodyNeedsThem) {
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) play_barrier(sequence);
  bench.take_log();
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), kTellsBelow);
  bench.deliver(wire.recycle_all(0, 0, 0));
  EXPECT_EQ(bench.take_log(), kTellsAll);
  for (uint64_t sequence = kEpoch; sequence < 2 * kEpoch; sequence++) play_barrier(sequence);
  bench.take_log();
  // (Its sender was refused rank 2's broadcast, say.)
  bench.deliver(wire.recycle_below(1, 2, 1));
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL recycle epoch=1 below root=0 hop=1\n");
}

// And it asks for them: an epoch that proves nothing ends with signals, which prove the one before,
// too.
TEST_F(Recycling, ALostSignalBehindAnEpochWithoutThemIsAskedFor) {
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) play_barrier(sequence);
  run_own(kEpoch, kEpoch);
  post_barrier(2 * kEpoch);
  bench.take_log();
  ASSERT_TRUE(bench.advance_to_deadline());
  EXPECT_EQ(bench.take_log(), "send 1>0 NACK recycle epoch=1 below root=1 hop=0\n");
  both_below(1);
  EXPECT_EQ(bench.take_log(),
            "send 1>2 SIGNAL recycle epoch=1 all root=1 hop=0\n"
            "send 1>3 SIGNAL recycle epoch=1 all root=1 hop=1\n"
            "send 1>2 SIGNAL barrier seq=" +
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
  bench.take_log();
  bench.deliver(wire.recycle_all(0, 0, 0));
  EXPECT_EQ(bench.take_log(), kTellsAll + "send 1>2 SIGNAL barrier seq=" +
                                  std::to_string(CONFIG_CHANNELS) + " round=0\n");
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
  deliver_recycling(0);
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
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL barrier seq=" + seq +
                                  " round=0\n"
                                  "send 1>3 SIGNAL barrier seq=" +
                                  seq + " round=1\n");
}

// Who broadcasts does not wait for those who have lost what came before: it may be one further on.
TEST_F(Recycling, APacketThreeEpochsOnProvesTwo) {
  run_relays(0, CONFIG_CHANNELS);
  deliver_relay(CONFIG_CHANNELS + kEpoch);
  EXPECT_EQ(recycled(), 2u);
  run_relays(CONFIG_CHANNELS, kEpoch);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_COMMANDS_PARKED), 0u);
}

TEST_F(Recycling, AnEpochThatIsNotFinishedIsNotProvedByThoseBehindIt) {
  run_relays(0, kEpoch);
  post_relay(kEpoch);
  deliver_relay(CONFIG_CHANNELS + kEpoch);
  EXPECT_EQ(recycled(), 0u);
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
  both_below(0);
  EXPECT_EQ(bench.take_log(), "");
  finish_first_epoch();
  EXPECT_EQ(recycled(), 1u);
}

TEST_F(Recycling, DuplicateOldAndFutureSignals) {
  bench.deliver(wire.recycle_below(0, 1, 0));
  EXPECT_EQ(change(wire.recycle_below(0, 1, 0)), "+1 duplicate");
  for (const uint32_t epoch : {2u, 0x7fffffffu}) {
    EXPECT_EQ(change(wire.recycle_below(epoch, 1, 0)), "+1 drop_future") << epoch;
    EXPECT_EQ(change(wire.recycle_all(epoch, 0, 0)), "+1 drop_future") << epoch;
    EXPECT_EQ(change(wire.recycle_nack(PEAL_RECYCLE_ALL, epoch, 1, 0)), "+1 drop_future") << epoch;
  }
  // Never was one.
  EXPECT_EQ(change(wire.recycle_below(0xffffffff, 1, 0)), "+1 drop_stale");
  EXPECT_EQ(change(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0xffffffff, 0, 1)), "+1 drop_stale");
  // This rank has not finished it.
  EXPECT_EQ(change(wire.recycle_all(0, 0, 0)), "+1 drop_future");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Recycling, PacketsThatLeadAlongNoEdge) {
  EXPECT_EQ(change(wire.recycle_below(0, 0, 0)), "+1 drop_hop");  // nobody is below it there
  EXPECT_EQ(change(wire.recycle_all(0, 0, 1)), "+1 drop_hop");    // rank 0 tells it by hop 0
  EXPECT_EQ(change(wire.recycle_all(0, 1, 0)), "+1 drop_hop");    // the root is told by nobody
  EXPECT_EQ(change(wire.recycle_below(0, 4, 0)), "+1 drop_origin");
  EXPECT_EQ(change(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 0)), "+1 drop_hop");
  EXPECT_EQ(change(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 1, 0)), "+1 drop_hop");
  EXPECT_EQ(change(wire.recycle_nack(PEAL_RECYCLE_ALL, 0, 0, 0)), "+1 drop_hop");
  EXPECT_EQ(change(wire.recycle_nack(2, 0, 0, 1)), "+1 drop_piece");
  Frame frame = wire.recycle_below(0, 1, 0);
  frame.header.hop = 2;  // there is none among four
  seal(frame);
  EXPECT_EQ(change(frame), "+1 drop_hop");
  frame = wire.recycle_below(0, 1, 0);
  frame.header.sender = 2;
  frame.header.identity = wire.probe(2).header.identity;
  seal(frame);
  EXPECT_EQ(change(frame), "+1 drop_sender");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Recycling, LostSignalIsAskedFor) {
  finish_first_epoch();
  bench.take_log();
  somebody_asks();
  const TimeNs began = bench.now;
  ASSERT_TRUE(bench.advance_to_deadline());
  const TimeNs patience = bench.now - began;
  EXPECT_EQ(bench.take_log(), "send 1>0 NACK recycle epoch=0 below root=1 hop=0\n");
  bench.deliver(wire.recycle_not_yet(PEAL_RECYCLE_BELOW, 0, 1, 0));
  bench.advance(2 * patience - 1);
  EXPECT_EQ(bench.take_log(), "");
  bench.advance(1);
  EXPECT_EQ(bench.take_log(), "send 1>0 NACK recycle epoch=0 below root=1 hop=0\n");
}

// A signal behind one that was lost says that, too, and explains the gap.
TEST_F(Recycling, ALaterSignalSaysWhatAnEarlierOneWouldHave) {
  run_own(0, CONFIG_CHANNELS);
  bench.take_log();
  bench.deliver(WireMaker::numbered(wire.recycle_below(1, 1, 0), 2));
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(wire.recycle_below(0, 1, 1));
  EXPECT_EQ(recycled(), 1u);
  bench.deliver(wire.recycle_below(1, 1, 1));
  EXPECT_EQ(recycled(), 2u);
}

// But not where they are of different trees.
TEST_F(Recycling, ALaterSignalOfAnotherTreeSaysNothingOfTheEarlierOne) {
  run_own(0, kEpoch);
  run_relays(kEpoch, kEpoch - 1);
  bench.submit(broadcast_entry(member, 2 * kEpoch - 1, 7, 2, 8, 0, receive.key));
  bench.deliver(wire.binomial(binomial_shape(8, 2), static_cast<uint32_t>(2 * kEpoch - 1), 0, 0,
                              pattern_block(0, 2, 0, 8)));
  bench.finish_all_dma();
  bench.deliver(wire.recycle_below(0, 1, 0));
  bench.deliver(wire.recycle_below(1, 2, 1));  // rank 3's, of rank 2's tree
  EXPECT_EQ(recycled(), 0u);
}

// Data that proves an epoch begins with another rank; this rank waits for it a while.
TEST_F(Recycling, WhatComesWithDataIsAskedForLate) {
  run_relays(0, CONFIG_CHANNELS);
  bench.take_log();
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
  post_relay(CONFIG_CHANNELS);
  bench.advance(kNack);
  bench.advance(2 * kNack);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NACK), 0u);
  bench.advance(4 * kNack);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK recycle epoch=0 all root=0 hop=0\n");
}

TEST_F(Recycling, WherePacketsAreLostItIsAskedForSooner) {
  run_relays(0, CONFIG_CHANNELS);
  lose_something();
  post_relay(CONFIG_CHANNELS);
  bench.advance(kNack);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NACK), 0u);
  bench.take_log();
  bench.advance(2 * kNack);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK recycle epoch=0 all root=0 hop=0\n");
}

// Who signals that an epoch is over says besides that packets were lost, to who sees no loss of his
// own; and who answers does.
TEST_F(Recycling, SignalsAndAnswersSayThatPacketsWereLost) {
  run_relays(0, kEpoch - 1);
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 1));
  for (const Frame& frame : bench.port.take_sent())
    EXPECT_EQ(frame.header.flags & PEAL_PACKET_LOSSES, 0);
  bench.card().members[0].membership.losses = true;
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 1));
  const peal_wire_header answer = bench.port.take_sent().at(0).header;
  EXPECT_EQ(answer.type, PEAL_PACKET_NOT_YET);
  EXPECT_NE(answer.flags & PEAL_PACKET_LOSSES, 0);
  run_relays(kEpoch - 1, 1);
  const peal_wire_header signal = bench.port.take_sent().back().header;
  EXPECT_EQ(signal.type, PEAL_PACKET_SIGNAL);
  EXPECT_NE(signal.flags & PEAL_PACKET_LOSSES, 0);
}

TEST_F(Recycling, ASignalTellsOfLosses) {
  finish_first_epoch();
  Frame frame = wire.recycle_below(0, 1, 0);
  frame.header.flags |= PEAL_PACKET_LOSSES;
  seal(frame);
  EXPECT_TRUE(bench.card().members[0].patience.lossless);
  bench.deliver(frame);
  EXPECT_FALSE(bench.card().members[0].patience.lossless);
}

// Its own data is waited for by all others: there is nothing that could come.
TEST_F(Recycling, WhoBeginsTheNextEpochAsksAfterOneInterval) {
  run_relays(0, CONFIG_CHANNELS);
  post_own(CONFIG_CHANNELS);
  bench.take_log();
  bench.advance(kNack);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK recycle epoch=0 all root=0 hop=0\n");
}

// Where packets are lost, who is asked asks at once for what it waits for itself, once an epoch.
TEST_F(Recycling, AQuestionIsPassedOnWherePacketsAreLost) {
  run_relays(0, kEpoch);
  lose_something();
  bench.take_log();
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_ALL, 0, 0, 1));
  EXPECT_EQ(bench.take_log(),
            "send 1>0 NACK recycle epoch=0 all root=0 hop=0\n"
            "send 1>3 NOT_YET recycle epoch=0 all root=0 hop=1\n");
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_ALL, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>3 NOT_YET recycle epoch=0 all root=0 hop=1\n");
  bench.deliver(wire.recycle_all(0, 0, 0));
  EXPECT_EQ(bench.take_log(), kTellsAll);
}

// Nothing that was said in this silence is believed where packets are lost: what follows it may be
// all that there is.
TEST_F(Recycling, AnEmptyEdgeIsNotBelievedWherePacketsAreLost) {
  for (const bool loses : {false, true}) {
    SCOPED_TRACE(loses);
    const uint64_t first = loses ? kEpoch : 0;
    run_own(first, kEpoch);
    if (loses) lose_something();
    bench.deliver(wire.recycle_below(static_cast<uint32_t>(first / kEpoch), 1, 1));
    bench.deliver(wire.recycle_nack(PEAL_RECYCLE_ALL, static_cast<uint32_t>(first / kEpoch), 1, 1));
    bench.advance(kNack / 2);
    bench.deliver(WireMaker::numbered(wire.alive(0), 0));
    const uint64_t before = bench.counter(PEAL_COUNTER_SENT_NACK);
    bench.advance(2 * kNack);
    EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NACK) > before, loses);
    bench.deliver(wire.recycle_below(static_cast<uint32_t>(first / kEpoch), 1, 0));
    bench.take_log();
  }
}

// Whoever was refused may mean another tree than the others: all go over to rank 0's.
TEST_F(Recycling, WhoDisagreesGoesOverToRankZerosTree) {
  finish_first_epoch();
  bench.deliver(wire.recycle_below(0, 1, 0));
  bench.take_log();
  bench.deliver(wire.recycle_below(0, 2, 1));
  EXPECT_EQ(bench.take_log(), kTellsBelow);
  // Of the other trees it has said nothing.
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 2, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 NOT_YET recycle epoch=0 below root=2 hop=0 split\n");
  bench.deliver(wire.recycle_below(0, 1, 1));
  EXPECT_EQ(recycled(), 0u);
  bench.deliver(wire.recycle_all(0, 0, 0));
  EXPECT_EQ(recycled(), 1u);
}

TEST_F(Recycling, AQuestionSaysWhichTreeOthersHave) {
  finish_first_epoch();
  bench.take_log();
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), kTellsBelow);
}

// Or an answer.
TEST_F(Recycling, AnAnswerSaysThatOthersHaveAnotherTree) {
  finish_first_epoch();
  bench.take_log();
  bench.deliver(wire.recycle_not_yet(PEAL_RECYCLE_BELOW, 0, 1, 0, now_us(), PEAL_NOT_YET_SPLIT));
  EXPECT_EQ(bench.take_log(), kTellsBelow);
  // Of an epoch that is none of these it says nothing.
  bench.deliver(wire.recycle_not_yet(PEAL_RECYCLE_BELOW, 2, 1, 0, now_us(), PEAL_NOT_YET_SPLIT));
  EXPECT_EQ(bench.take_log(), "");
}

// What a peer has sent says nothing of the tree that it has gone over to.
TEST_F(Recycling, AnEmptyEdgeIsNotBelievedWhereTreesWereOthers) {
  finish_first_epoch();
  bench.deliver(wire.recycle_below(0, 2, 1));
  post_own(kEpoch);
  bench.finish_all_dma();
  run_own(kEpoch + 1, kEpoch - 1);
  post_own(CONFIG_CHANNELS);
  bench.advance(kNack / 2);
  bench.deliver(WireMaker::numbered(wire.alive(0), 0));
  bench.take_log();
  bench.advance(2 * kNack);
  EXPECT_NE(bench.take_wire_log().find("send 1>0 NACK recycle epoch=0 all root=0 hop=0\n"),
            std::string::npos);
}

// Who disagreed with others may have meant another root than they.
TEST_F(Recycling, TheTreeOfAnOperationThatRanksDisagreedAboutIsRankZeros) {
  run_own(0, kEpoch - 1);
  post_own(kEpoch - 1);
  bench.deliver(wire.refuse(0, binomial_shape(8, 1), static_cast<uint32_t>(kEpoch - 1), 3));
  bench.take_log();
  bench.finish_all_dma();
  const std::string log = bench.take_wire_log();
  EXPECT_NE(log.find(kTellsBelow), log.npos) << log;
}

// Of one that failed for another reason all know the root.
TEST_F(Recycling, TheTreeOfAnOperationThatFailedIsItsRoots) {
  run_own(0, kEpoch - 1);
  post_own(kEpoch - 1);
  Frame refusal = wire.refuse(0, binomial_shape(8, 1), static_cast<uint32_t>(kEpoch - 1), 3);
  const peal_verdict verdict{3, PEAL_STATUS_DMA_FAULT};
  std::memcpy(refusal.payload.data(), &verdict, sizeof(verdict));
  seal(refusal);
  bench.deliver(refusal);
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_RECYCLE), 0u);
  both_below(0);
  EXPECT_EQ(recycled(), 1u);
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
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK recycle epoch=0 below root=1 hop=0\n");
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
  both_below(0);
  bench.take_log();
  ASSERT_TRUE(bench.advance_to_deadline());  // one last look
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Recycling, OthersNacksAreRepairedOrAnsweredNotYet) {
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>3 NOT_YET recycle epoch=0 below root=0 hop=1 late\n");
  run_relays(0, kEpoch);
  bench.take_log();
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL recycle epoch=0 below root=0 hop=1 repair\n");
  bench.deliver(wire.recycle_all(0, 0, 0));
  bench.take_log();
  // Long past: whoever still asks is told.
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL recycle epoch=0 below root=0 hop=1 repair\n");
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_ALL, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL recycle epoch=0 all root=0 hop=1 repair\n");
}

// To its receiver it is lost: the next packet of the edge shows it.
TEST_F(Recycling, LostByAnEmptyPoolIsAskedFor) {
  post_relay(0);
  run_relays(1, kEpoch - 1);
  bench.take_log();
  bench.port.fail_allocations = {1, 1};
  deliver_relay(0);
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 frag=0 len=8\n" + complete(0));
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL recycle epoch=0 below root=0 hop=1 repair\n");
  bench.deliver(wire.probe(3));
  EXPECT_EQ(bench.port.take_sent().back().header.edge, static_cast<uint8_t>(kEpoch + 1));
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
  bench.deliver(wire.recycle_below(0, 1, 0));
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 NACK recycle epoch=0 below root=1 hop=1\n");
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
  run_own(kEpoch, kEpoch);
  EXPECT_EQ(change(wire.signal(behind(0), kBarrierShape, 2 * CONFIG_CHANNELS, 0)),
            "+1 drop_future");
  EXPECT_EQ(recycled(), 0u);
}

// And one that claims it while we are in the midst of the epoch is not remembered as one.
TEST_F(Recycling, WhatWasNoProofIsNoneLaterEither) {
  post_barrier(0);
  bench.deliver(wire.signal(behind(0), kBarrierShape, CONFIG_CHANNELS, 0));
  signals(0);
  run_own(1, kEpoch - 1);
  EXPECT_EQ(recycled(), 0u);
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
  EXPECT_GT(questions, 0u);
  EXPECT_LE(questions, 55u);  // one in every probe interval, whatever it is about
}

// A host that has been away since its last operation teaches as a silence does; nothing does where
// it is not the host that is waited for, or packets were lost.
TEST_F(Recycling, WhoIsAwayTellsHowPatientThatMakesIt) {
  const Patience& patience = bench.card().members[0].patience;
  const auto asked_after = [&](TimeNs wait_ns) {
    bench.advance(wait_ns);
    bench.take_log();
    bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 0, 1));
    return bench.take_log();
  };
  const std::string late = "send 1>3 NOT_YET recycle epoch=0 below root=0 hop=1 late";
  EXPECT_EQ(asked_after(9'000'000), late + "\n");  // there was none yet
  EXPECT_EQ(patience.wait_ns, kNack);
  run_relays(0, kEpoch - 1);
  EXPECT_EQ(asked_after(2'500'000), late + " patience=40\n");
  EXPECT_EQ(patience.wait_ns, 40'000'000u);
  lose_something();
  EXPECT_EQ(asked_after(5'000'000), late + "\n");
  EXPECT_EQ(patience.wait_ns, 40'000'000u);
  bench.card().members[0].patience.lossless = true;
  post_relay(kEpoch - 1);  // now it waits for its parent
  EXPECT_EQ(asked_after(1000), "send 1>3 NOT_YET recycle epoch=0 below root=0 hop=1\n");
  EXPECT_EQ(patience.wait_ns, 40'000'000u);
}

// And tells it those who wait for it, who does not wait for its own host.
TEST_F(Recycling, WhoeverAsksIsTold) {
  const Patience& patience = bench.card().members[0].patience;
  run_own(0, CONFIG_CHANNELS);
  bench.advance(kNack);
  bench.deliver(wire.recycle_not_yet(PEAL_RECYCLE_BELOW, 0, 1, 0, now_us(), PEAL_NOT_YET_LATE, 77));
  EXPECT_EQ(patience.wait_ns, 77'000'000u);
  bench.advance(9'000'000);
  bench.take_log();
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_ALL, 0, rank, 1));
  EXPECT_EQ(bench.take_log(),
            "send 1>3 NOT_YET recycle epoch=0 all root=1 hop=1 late patience=77\n");
  EXPECT_EQ(patience.wait_ns, 77'000'000u);
}

// Whoever asks about an epoch has begun it, as who signals.
TEST_F(Recycling, AQuestionOfTwoEpochsOnIsAProof) {
  run_own(0, CONFIG_CHANNELS);
  bench.take_log();
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 2, 0, 1));
  EXPECT_EQ(recycled(), 1u);
  EXPECT_EQ(bench.take_log(), "send 1>3 NOT_YET recycle epoch=2 below root=0 hop=1 late\n");
}

// The root of what has none.
class RecyclingOfRankZero : public GroupTest {
 protected:
  RecyclingOfRankZero() : GroupTest(4, 0) {}
  void play_barrier(uint64_t sequence) {
    post_barrier(sequence);
    for (uint32_t round = 0; round < 2; round++) {
      bench.deliver(
          wire.signal(behind(round), kBarrierShape, static_cast<uint32_t>(sequence), round));
    }
  }
};

// An epoch's own barriers prove the one before: who was refused the last of them needs to be told.
TEST_F(RecyclingOfRankZero, ABarrierIsNoProofOfItsOwnEpoch) {
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) play_barrier(sequence);
  bench.take_log();
  for (uint32_t hop = 0; hop < 2; hop++) bench.deliver(wire.recycle_below(0, 0, hop));
  EXPECT_EQ(bench.take_log(),
            "send 0>1 SIGNAL recycle epoch=0 all root=0 hop=0\n"
            "send 0>2 SIGNAL recycle epoch=0 all root=0 hop=1\n");
}

}  // namespace
}  // namespace peal::test
