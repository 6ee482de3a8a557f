// SPDX-License-Identifier: BSD-2-Clause
// Who is asked for what it lacks itself asks, too, and a question that nobody answers is repeated,
// where packets are lost. docs/decisions/0080
#include "firmware/group/inquiry.h"

#include <string>

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

// Rank 1 of four in a barrier, which has long patience and knows of losses: round 0 comes from rank
// 0, and then round 1 goes to rank 3.
class AskedFor : public GroupTest {
 protected:
  AskedFor() : GroupTest(4, 1) {
    note_loss(bench.card(), member_state());
    be_patient(16 * kNack);
  }
  Member& member_state() { return bench.card().members[0]; }
  void be_patient(TimeNs patience_ns) {
    patience = patience_ns;
    member_state().patience.wait_ns = patience_ns;
  }
  void post() {
    post_barrier(0);
    bench.take_log();
  }
  // What it asks soon when rank 3 asks it for round 1.
  std::string asks_when_asked() {
    bench.deliver(wire.nack(3, kBarrierShape, 0, 0, 0, 1));
    bench.take_wire_log();
    bench.advance(2);
    return bench.take_wire_log();
  }
  std::string asks_within(TimeNs time_ns) {
    bench.advance(time_ns);
    return bench.take_wire_log();
  }

  TimeNs patience = 0;
  const std::string question = "send 1>0 NACK barrier seq=0 round=0\n";
};

TEST_F(AskedFor, WhoIsAskedForWhatItLacksAsksOnce) {
  post();
  bench.advance(kNack / kPatienceLeast);
  EXPECT_EQ(asks_when_asked(), question);
  bench.deliver(wire.not_yet(0, kBarrierShape, 0, 0, 0, 0, now_us()));
  bench.advance(kNack);
  EXPECT_EQ(asks_when_asked(), "");
}

// How many pieces the operation had that the record served before does not matter.
TEST_F(AskedFor, WhateverHadTheRecordBefore) {
  member_state().operations[0].piece_count = 50;
  post();
  bench.advance(kNack / kPatienceLeast);
  EXPECT_EQ(asks_when_asked(), question);
}

// Whatever else keeps it from asking: patience is not used up by others' questions.
TEST_F(AskedFor, OthersQuestionsMakeItLookOnce) {
  post();
  bench.advance(kNack);
  member_state().patience.calm = kCalmInVain;
  Inquiry& inquiry = member_state().operations[0].inquiry;
  asks_when_asked();
  const TimeNs interval_ns = inquiry.interval_ns;
  for (int times = 0; times < 8; times++) {
    inquiry.asked = false;  // as if it had been kept from it
    EXPECT_EQ(asks_when_asked(), "");
  }
  EXPECT_EQ(inquiry.interval_ns, interval_ns);
}

TEST_F(AskedFor, NotBeforeTheLeastThatAnybodyWaits) {
  post();
  bench.advance(kNack / kPatienceLeast - 10);
  EXPECT_EQ(asks_when_asked(), "");
}

TEST_F(AskedFor, NotWhereNothingWasLost) {
  member_state().membership.losses = false;
  post();
  bench.advance(kNack);
  EXPECT_EQ(asks_when_asked(), "");
}

// Patience did not ask.
TEST_F(AskedFor, TheAnswerTeachesNothing) {
  post();
  bench.advance(kNack);
  EXPECT_EQ(asks_when_asked(), question);
  bench.deliver(wire.not_yet(0, kBarrierShape, 0, 0, 0, 0, now_us(), PEAL_NOT_YET_LATE));
  EXPECT_EQ(member_state().patience.wait_ns, patience);
  EXPECT_EQ(member_state().patience.calm, kCalmLeast);
}

// Who has what it was asked for sends it, and asks nobody.
TEST_F(AskedFor, NotWhoHasIt) {
  post();
  bench.deliver(wire.signal(0, kBarrierShape, 0, 0));
  bench.advance(kNack);
  bench.take_wire_log();
  EXPECT_EQ(asks_when_asked(), "");
}

// The question or the answer was lost: it is asked again after a first interval, however long
// patience is.
TEST_F(AskedFor, AQuestionThatNobodyAnswersIsRepeated) {
  post();
  EXPECT_EQ(asks_within(patience), question);
  EXPECT_EQ(asks_within(kNack - 1), "");
  EXPECT_EQ(asks_within(1), question);
  bench.deliver(wire.not_yet(0, kBarrierShape, 0, 0, 0, 0, now_us()));
  EXPECT_EQ(asks_within(4 * kNack), "");
}

// But only the first one of a silence, and ever more slowly.
TEST_F(AskedFor, WhoIsSilentForLongIsNotAskedAllTheTime) {
  post();
  for (int doubled = 0; doubled < 16; doubled++) bench.advance(patience);
  uint64_t before = bench.counter(PEAL_COUNTER_SENT_NACK);
  EXPECT_LE(before, 4u + 7u);
  bench.advance(8 * patience);
  EXPECT_LE(bench.counter(PEAL_COUNTER_SENT_NACK) - before, 2u);
}

TEST_F(AskedFor, WhereNothingWasLostItIsNotRepeated) {
  member_state().membership.losses = false;
  post();
  EXPECT_EQ(asks_within(patience), question);
  EXPECT_EQ(asks_within(4 * kNack), "");
}

// Whose patience is short asks soon again anyway.
TEST_F(AskedFor, NorWherePatienceIsShort) {
  be_patient(kNack / 2);
  post();
  EXPECT_EQ(asks_within(patience), question);
  EXPECT_EQ(asks_within(2 * patience - 1), "");
  EXPECT_EQ(asks_within(1), question);
}

// A card with a queue before it waits for that, as others have one, too.
TEST_F(AskedFor, ACardThatIsBehindRepeatsLater) {
  bench.card().behind_ns = 2 * kNack;
  Inquiry inquiry = {};
  inquiry_doubt(bench.card(), member_state(), inquiry, peer_behind(0));
  EXPECT_EQ(inquiry.doubt_ns, 4 * 2 * kNack);
  bench.card().behind_ns = 0;
}

// What a gap has caused is forgotten with the next doubt.
TEST_F(AskedFor, ADoubtOfAnotherKindIsNoGap) {
  Inquiry inquiry = {};
  inquiry_suspect(inquiry, peer_behind(0));
  inquiry.asked_suspect = true;
  EXPECT_TRUE(inquiry_cleared(bench.card(), member_state(), inquiry));
  EXPECT_TRUE(inquiry_has_gap(inquiry, peer_behind(0)));
  EXPECT_FALSE(inquiry_has_gap(inquiry, peer_behind(1)));
  inquiry_doubt(bench.card(), member_state(), inquiry, peer_behind(0));
  EXPECT_FALSE(inquiry_has_gap(inquiry, peer_behind(0)));
}

}  // namespace
}  // namespace peal::test
