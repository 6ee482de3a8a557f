// SPDX-License-Identifier: BSD-2-Clause
// A rank whose blocks of a later operation come is over with one before, most likely. What has not
// come of that one is lost, however late ranks have been.
#include <cstdio>

#include "firmware/card_types.h"
#include "tests/support/log_lines.h"
#include "tests/unit/firmware/collective/alltoall/direct_fixture.h"
#include "tests/unit/firmware/collective/alltoallv/parts_fixture.h"

namespace peal::test {
namespace {

constexpr size_t kPiece = CONFIG_MTU_BYTES;
constexpr size_t kLong = 2 * kPiece;

// Questions of operation 0 within that time, the least and the most after which what is lost is
// asked for.
std::string asked(CardBench& bench, const char* which = " NACK seq=0",
                  TimeNs within = default_timeouts().nack_ns / 4) {
  bench.take_log();
  bench.advance(within);
  return lines_with(bench.take_wire_log(), which);
}
std::string question(uint32_t to, uint32_t piece, uint32_t missing) {
  char text[80];
  std::snprintf(text, sizeof(text), "send 1>%u NACK seq=0 piece=%u origin=%u missing=0x%x\n", to,
                piece, to, missing);
  return text;
}

// Rank 1 of 8, of whose peers and others only 4 and 6 owe something; it has learned that ranks are
// late, so it asks for nothing in silence.
class DirectGoneOn : public DirectTest {
 protected:
  DirectGoneOn() { bench.card().members[0].patience.wait_ns = default_timeouts().dead_ns; }

  void post_and_hear() {
    post(kLong);
    bench.finish_all_dma();
    for (uint32_t sender = 0; sender < ranks; sender++) {
      if (sender == 4 || sender == rank) continue;
      come(sender, 0);
      if (sender != 6) come(sender, 1);
    }
  }
  void come(uint32_t sender, uint32_t piece) {
    bench.deliver(from(sender, kLong, piece));
    bench.finish_all_dma();
  }
  void post_next() {
    AlltoallTest::post(1, kBlock);
    bench.finish_all_dma();
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
  EXPECT_EQ(asked(bench, " NACK ", 100 * default_timeouts().nack_ns), "");
  begin(4);
  EXPECT_EQ(asked(bench), question(4, 0, 3));
  come(4, 0);
  come(4, 1);
  begin(6);
  EXPECT_EQ(asked(bench), question(6, 1, 1));
}

// Pieces of its window, of so many as there are.
TEST_F(DirectGoneOn, AWindowIsAskedFor) {
  post(kMost);
  bench.finish_all_dma();
  begin(4);
  EXPECT_EQ(asked(bench), question(4, 0, (1u << CONFIG_PIECE_WINDOW) - 1));
}

TEST_F(DirectGoneOn, WhatItHasGivenIsNot) {
  post_and_hear();
  begin(3);
  EXPECT_EQ(asked(bench), "");
}

// That says nothing of how far it is.
TEST_F(DirectGoneOn, ThisRankMayHaveGoneOnAsWell) {
  post_and_hear();
  post_next();
  begin(4);
  EXPECT_EQ(asked(bench), "");
}

// It is over with the oldest of two, and not with the next.
TEST_F(DirectGoneOn, ItMayHaveSeveralUnderWay) {
  post_and_hear();
  post_next();
  begin(4, 2);
  EXPECT_EQ(asked(bench, " NACK "), question(4, 0, 3));
}

// So it may when this rank is over with the oldest.
TEST_F(DirectGoneOn, HowManyIsRemembered) {
  post_and_hear();
  post_next();
  begin(6, 2);
  come(6, 1);
  come(4, 0);
  come(4, 1);  // the oldest is over
  begin(4, 2);
  EXPECT_EQ(asked(bench, " NACK "), "");
  begin(4, 3);
  EXPECT_EQ(asked(bench, " NACK "), "send 1>4 NACK seq=1 piece=0 origin=4 missing=0x1\n");
}

// Not for ever: three epochs later programs may have one at a time.
TEST_F(DirectGoneOn, HowManyIsForgotten) {
  Member& self = bench.card().members[0];
  post_and_hear();
  self.depth = 2;
  self.depth_epoch = self.recycled - 2;
  begin(4);
  EXPECT_EQ(asked(bench), "");
  self.depth_epoch = self.recycled - 3;
  begin(6);
  EXPECT_EQ(asked(bench), question(6, 1, 1));
}

// Nor of one that the host has not posted.
TEST_F(DirectGoneOn, WhatIsNotPostedIsNotWaitedFor) {
  come(4, 1);
  bench.advance(100 * default_timeouts().nack_ns);
  come(6, 0);
  begin(6);
  EXPECT_EQ(asked(bench), "");
}

// Operations of others know of no pairs; whose packets have no gap is asked for nothing.
TEST_F(DirectGoneOn, TheOneBeforeMayBeABarrier) {
  post_barrier(0);
  bench.take_log();
  begin(4);
  EXPECT_EQ(asked(bench), "");
}

// Nor does it matter how much later the other one is.
TEST_F(DirectGoneOn, ItMayBeFarAhead) {
  post_and_hear();
  begin(4, 3);
  EXPECT_EQ(asked(bench), question(4, 0, 3));
}

// As long as the table has not been read nobody knows who owes anything.
class DirectvGoneOn : public PartsTest {
 protected:
  DirectvGoneOn() : PartsTest(PEAL_OPERATION_ALLTOALLV) {
    bench.card().members[0].patience.wait_ns = default_timeouts().dead_ns;
    set_all(8);
    set_length(4, rank, 0);
  }
};

TEST_F(DirectvGoneOn, WhoHasNothingToGiveOwesNothing) {
  post();
  bench.deliver(from(4, 0, 1));
  bench.finish_all_dma();
  set_length(4, rank, 8);  // the next time
  bench.deliver(from(4, 0, 1));
  bench.finish_all_dma();
  EXPECT_EQ(asked(bench), "");
}

TEST_F(DirectvGoneOn, WhoHasSomethingDoes) {
  set_length(4, rank, 8);
  post();
  bench.finish_all_dma();
  bench.deliver(from(4, 0, 1));
  bench.finish_all_dma();
  EXPECT_EQ(asked(bench), question(4, 0, 1));
}

// Rank 6 need not have heard of rank 4, which is late. Who was misled so does not believe the next
// one for a while.
TEST_F(DirectvGoneOn, WhoIsOverMayHaveNothingOfTheLate) {
  const TimeNs nack = default_timeouts().nack_ns;
  Member& self = bench.card().members[0];
  set_length(4, rank, 8);
  post();
  bench.finish_all_dma();
  for (const uint32_t sender : {0u, 2u, 3u, 5u, 6u, 7u}) bench.deliver(from(sender));
  bench.finish_all_dma();
  const auto begin = [&](uint32_t sequence) {
    bench.deliver(from(6, 0, sequence));
    bench.finish_all_dma();
    return asked(bench, " NACK seq=0", nack);
  };
  EXPECT_EQ(begin(1), question(4, 0, 1));
  bench.deliver(wire.not_yet(4, shape(), 0, 0, 4, 0, now_us(), PEAL_NOT_YET_LATE));
  EXPECT_EQ(begin(2), "");
  self.misled_until = self.recycled;
  EXPECT_EQ(begin(3), question(4, 0, 1));
}

}  // namespace
}  // namespace peal::test
