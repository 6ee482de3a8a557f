// SPDX-License-Identifier: BSD-2-Clause
// A rank whose blocks of a later operation come is over with one before, most likely. What has not
// come of that one is lost, however late ranks have been.
#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <string>

#include "firmware/card_types.h"
#include "tests/support/log_lines.h"
#include "tests/unit/firmware/collective/alltoall/direct_fixture.h"
#include "tests/unit/firmware/collective/alltoallv/parts_fixture.h"

namespace peal::test {
namespace {

// Questions within that time.
std::string asked(CardBench& bench, TimeNs within) {
  bench.take_log();
  bench.advance(within);
  return lines_with(bench.take_wire_log(), " NACK seq=");
}
std::string question(uint32_t to, uint32_t piece, uint32_t missing) {
  char text[80];
  std::snprintf(text, sizeof(text), "send 1>%u NACK seq=0 piece=%u origin=%u missing=0x%x\n", to,
                piece, to, missing);
  return text;
}

// Only ranks 4 and 6 owe something.
class DirectGoneOn : public PatientDirectTest {
 protected:
  void post_and_hear() {
    post(kLong);
    bench.finish_all_dma();
    for (uint32_t sender = 0; sender < ranks; sender++) {
      if (sender == 4 || sender == rank) continue;
      come(sender, 0);
      if (sender != 6) come(sender, 1);
    }
  }
  // It has begun a later operation, of short blocks.
  void begin(uint32_t sender, uint32_t sequence = 1) {
    bench.deliver(wire.direct(sender, direct_shape(kBlock), sequence, 0,
                              pattern_between(sequence, sender, rank, 0, kBlock)));
    bench.finish_all_dma();
  }
};

TEST_F(DirectGoneOn, WhatItOwesIsLost) {
  post_and_hear();
  EXPECT_EQ(asked(bench, 100 * nack), "");
  begin(4);
  EXPECT_EQ(asked(bench, soon), question(4, 0, 3));
  come(4, 0);
  come(4, 1);
  begin(6);
  EXPECT_EQ(asked(bench, soon), question(6, 1, 1));
}

// Pieces of its window, of so many as there are.
TEST_F(DirectGoneOn, AWindowIsAskedFor) {
  post(kMost);
  bench.finish_all_dma();
  begin(4);
  EXPECT_EQ(asked(bench, soon), question(4, 0, (1u << CONFIG_PIECE_WINDOW) - 1));
}

TEST_F(DirectGoneOn, WhatItHasGivenIsNot) {
  post_and_hear();
  begin(3);
  EXPECT_EQ(asked(bench, soon), "");
}

// Whose block is of an operation that this rank has begun, too, need not be over with anything.
TEST_F(DirectGoneOn, ThisRankMayHaveGoneOnAsWell) {
  post_and_hear();
  post_next();
  begin(4);
  EXPECT_EQ(asked(bench, soon), "");
}

// It is over with the oldest of two, and not with the next.
TEST_F(DirectGoneOn, ItMayHaveSeveralUnderWay) {
  bench.card().members[0].patience.lossless = false;
  post_and_hear();
  post_next();
  begin(4, 2);
  EXPECT_EQ(asked(bench, soon), question(4, 0, 3));
}

// So it may when this rank is over with the oldest.
TEST_F(DirectGoneOn, HowManyIsRemembered) {
  bench.card().members[0].patience.lossless = false;
  post_and_hear();
  post_next();
  begin(6, 2);
  come(6, 1);
  come(4, 0);
  come(4, 1);  // the oldest is over
  begin(4, 2);
  EXPECT_EQ(asked(bench, soon), "");
  bench.card().members[0].membership.losses = false;  // with which it would speak for others
  begin(4, 3);
  EXPECT_EQ(asked(bench, soon), "send 1>4 NACK seq=1 piece=0 origin=4 missing=0x1\n");
}

// Also before anything was lost: its own blocks say so.
TEST_F(DirectGoneOn, WithSeveralUnderWayItsOwnAreLostBeforeALoss) {
  post_and_hear();
  post_next();
  begin(4, 2);
  EXPECT_EQ(asked(bench, soon), question(4, 0, 3));
}

// A host may go on with others while the oldest stands still: those that are over do not count.
TEST_F(DirectGoneOn, WhatIsOverIsNotUnderWay) {
  post_and_hear();
  post_next();
  for (uint32_t sender = 0; sender < ranks; sender++) {
    if (sender != rank) begin(sender, 1);
  }
  ASSERT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  bench.take_log();
  begin(4, 2);
  EXPECT_EQ(bench.card().members[0].depth, 1u);
}

// Not for ever: many epochs later programs may have one at a time.
TEST_F(DirectGoneOn, HowManyIsForgotten) {
  Member& self = bench.card().members[0];
  post_and_hear();
  self.depth = 2;
  self.depth_epoch = self.recycled - 64;
  begin(4);
  EXPECT_EQ(asked(bench, soon), "");
  self.depth_epoch = self.recycled - 65;
  begin(6);
  EXPECT_EQ(asked(bench, soon), question(6, 1, 1));
}

// What the host has not posted nobody waits for.
TEST_F(DirectGoneOn, WhatIsNotPostedIsNotWaitedFor) {
  come(4, 1);
  bench.advance(100 * nack);
  come(6, 0);
  begin(6);
  EXPECT_EQ(asked(bench, soon), "");
}

// Which has no pairs.
TEST_F(DirectGoneOn, TheOneBeforeMayBeABarrier) {
  post_barrier(0);
  bench.take_log();
  begin(4);
  EXPECT_EQ(asked(bench, soon), "");
}

// It does not matter how much later the other one is.
TEST_F(DirectGoneOn, ItMayBeFarAhead) {
  post_and_hear();
  begin(4, 3);
  EXPECT_EQ(asked(bench, soon), question(4, 0, 3));
}

// Whoever is asked is the one that is waited for.
TEST_F(DirectGoneOn, WhoWaitsTeachesNothing) {
  Patience& patience = bench.card().members[0].patience;
  patience.wait_ns = 2 * nack;
  post(kBlock);
  bench.finish_all_dma();
  bench.advance(2 * nack);
  bench.deliver(wire.not_yet(4, direct_shape(kBlock), 0, 0, 4, 0, now_us(), PEAL_NOT_YET_WAITS));
  EXPECT_EQ(patience.wait_ns, 2 * nack);
}

// Whoever has gone on has the blocks of all, so all have sent theirs.
class DirectPassed : public PatientDirectTest {
 protected:
  Member& self = bench.card().members[0];

  DirectPassed() { self.membership.losses = true; }

  void hear(uint32_t sender, uint32_t sequence = 0) { bench.deliver(block(sender, sequence)); }
  [[nodiscard]] Frame block(uint32_t sender, uint32_t sequence) const {
    return wire.direct(sender, direct_shape(kBlock), sequence, 0,
                       pattern_between(sequence, sender, rank, 0, kBlock));
  }
  // This operation, whose blocks come from all but these, but for those that have come.
  void post_and_hear(uint32_t sequence, std::initializer_list<uint32_t> lacking) {
    AlltoallTest::post(sequence, kBlock);
    bench.finish_all_dma();
    for (uint32_t sender = 0; sender < ranks; sender++) {
      const bool lacks = std::find(lacking.begin(), lacking.end(), sender) != lacking.end();
      if (sender != rank && !lacks) hear(sender, sequence);
    }
    bench.finish_all_dma();
  }
  // Questions that this causes at once.
  std::string asked_by(const Frame& frame) {
    bench.take_log();
    bench.deliver(frame);
    return lines_with(bench.take_wire_log(), " NACK seq=");
  }
  static std::string asks(uint32_t to, uint32_t sequence = 0) {
    const std::string other = std::to_string(to);
    return "send 1>" + other + " NACK seq=" + std::to_string(sequence) +
           " piece=0 origin=" + other + " missing=0x1\n";
  }
};

// Before a loss, too; and again, if that was lost.
TEST_F(DirectPassed, WhatItOwesIsAskedForAtOnce) {
  self.membership.losses = false;
  post_and_hear(0, {4, 6});
  EXPECT_EQ(asked_by(block(4, 1)), asks(4));
  EXPECT_EQ(asked(bench, default_timeouts().nack_ns / 4), asks(4));
}

TEST_F(DirectPassed, WhatOthersOweIsAskedForAtOnce) {
  post_and_hear(0, {4, 6});
  EXPECT_EQ(asked_by(block(5, 1)), asks(6) + asks(4));
}

TEST_F(DirectPassed, ButOnce) {
  post_and_hear(0, {4, 6});
  hear(5, 1);
  EXPECT_EQ(asked_by(block(0, 1)), "");
  EXPECT_EQ(asked_by(block(2, 1)), "");
}

TEST_F(DirectPassed, NotBeforeALoss) {
  self.membership.losses = false;
  post_and_hear(0, {4, 6});
  EXPECT_EQ(asked_by(block(5, 1)), "");
}

// The pieces of a long block show what is lost by one another, and overtake each other.
TEST_F(DirectPassed, LongBlocksAreAskedForLater) {
  post(kLong);
  bench.finish_all_dma();
  for (uint32_t sender = 0; sender < ranks; sender++) {
    if (sender == rank) continue;
    if (sender != 6) come(sender, 0);
    if (sender != 4 && sender != 6) come(sender, 1);
  }
  EXPECT_EQ(asked_by(block(5, 1)), "");
}

// Blocks leave in the order of ranks: rank 4's for this one before those for ranks 2 and 3.
TEST_F(DirectPassed, WhereOneWasOnItsWayTheOrderProvesIt) {
  post_and_hear(0, {4});
  hear(5, 1);
  EXPECT_EQ(self.ordered_epoch, 0u);
  hear(4);
  EXPECT_EQ(self.ordered_epoch, self.recycled + 16);
  bench.finish_all_dma();
  post_and_hear(1, {4, 6});
  EXPECT_EQ(asked_by(block(7, 2)), "");
  EXPECT_EQ(asked_by(block(3, 2)), asks(6, 1) + asks(4, 1));
  EXPECT_EQ(asked_by(block(2, 2)), "");
}

TEST_F(DirectPassed, WhoseTurnCameLaterProvesNothing) {
  self.ordered_epoch = self.recycled + 1;
  post_and_hear(0, {4, 6});
  EXPECT_EQ(asked_by(block(5, 1)), asks(6));
  EXPECT_EQ(asked_by(block(7, 1)), "");
  EXPECT_EQ(asked_by(block(2, 1)), asks(4));
}

// A repair says that it was lost.
TEST_F(DirectPassed, WhatIsSentAgainWasNotOnItsWay) {
  post_and_hear(0, {4});
  hear(5, 1);
  Frame repair = block(4, 0);
  WireMaker::make_repair(repair);
  bench.deliver(repair);
  EXPECT_EQ(self.ordered_epoch, 0u);
}

// Nor does a later piece that comes behind others say anything of the order of ranks.
TEST_F(DirectPassed, LaterPiecesMayBeOvertaken) {
  post(3 * kPiece);
  bench.finish_all_dma();
  for (const uint32_t piece : {0u, 2u, 1u}) bench.deliver(from(4, 3 * kPiece, piece));
  EXPECT_EQ(self.ordered_epoch, 0u);
}

// The gap on its edge shows what was asked for; the next one shows that something else is lost.
TEST_F(DirectPassed, AGapThatShowsTheSameAsksNothing) {
  post_and_hear(0, {5});
  EXPECT_EQ(asked_by(block(2, 1)), asks(5));
  EXPECT_EQ(asked_by(WireMaker::numbered(block(5, 1), 2)), "");
  EXPECT_EQ(asked_by(WireMaker::numbered(block(5, 2), 4)), asks(5));
}

// The gap on another's edge shows something else, and is none that has been seen of this one.
TEST_F(DirectPassed, AGapOnAnothersEdgeIsNotItsOwn) {
  post_and_hear(0, {5});
  EXPECT_EQ(asked_by(block(2, 1)), asks(5));
  bench.deliver(WireMaker::numbered(block(3, 1), 2));
  EXPECT_EQ(asked_by(WireMaker::numbered(block(5, 1), 2)), "");
}

// But if that comes all the same it was on its way.
TEST_F(DirectPassed, AGapThatShowsTheSameDoesNotProveIt) {
  post_and_hear(0, {5});
  asked_by(WireMaker::numbered(block(5, 1), 2));
  hear(5);
  EXPECT_EQ(self.ordered_epoch, self.recycled + 16);
}

// As long as the table has not been read nobody knows who owes anything.
class DirectvGoneOn : public PartsTest {
 protected:
  const TimeNs nack = default_timeouts().nack_ns;
  const TimeNs soon = nack / 4;

  DirectvGoneOn() : PartsTest(PEAL_OPERATION_ALLTOALLV) {
    bench.card().members[0].patience.wait_ns = default_timeouts().dead_ns;
    set_all(8);
    set_length(4, rank, 0);
  }
};

TEST_F(DirectvGoneOn, BeforeTheTableIsKnownNobodyIsAsked) {
  post();
  bench.deliver(from(4, 0, 1));
  bench.finish_all_dma();
  EXPECT_EQ(asked(bench, soon), "");
}

// Also who has nothing to give, but an empty packet.
TEST_F(DirectvGoneOn, WhoeverHasGoneOnOwesSomething) {
  post();
  bench.finish_all_dma();
  bench.deliver(from(4, 0, 1));
  bench.finish_all_dma();
  EXPECT_EQ(asked(bench, soon), question(4, 0, 1));
}

}  // namespace
}  // namespace peal::test
