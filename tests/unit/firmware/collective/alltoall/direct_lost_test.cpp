// SPDX-License-Identifier: BSD-2-Clause
// What is known to be lost: a pair's blocks come in order, so one that comes shows what is lacking
// before it, also of ranks that are no peers, whose edges have no numbers.
#include <algorithm>
#include <cstdio>

#include "tests/support/log_lines.h"
#include "tests/unit/firmware/collective/alltoall/direct_fixture.h"

namespace peal::test {
namespace {

class DirectLost : public PatientDirectTest {
 protected:
  DirectLost() {
    post(kLong);
    bench.finish_all_dma();
    bench.take_log();
  }
  void say(uint32_t sender, uint32_t reason, uint32_t piece = 0) {
    bench.deliver(wire.not_yet(sender, direct_shape(kLong), 0, piece, sender, 0, now_us(), reason));
  }
  // Questions within this time.
  std::string asked(TimeNs within) {
    bench.take_log();
    bench.advance(within);
    return lines_with(bench.take_wire_log(), " NACK ");
  }
  static std::string question(uint32_t to, uint32_t piece = 0) {
    const std::string rank = std::to_string(to);
    return "send 1>" + rank + " NACK seq=0 piece=" + std::to_string(piece) + " origin=" + rank +
           " missing=0x1\n";
  }
};

TEST_F(DirectLost, WhatComesBehindShowsIt) {
  come(4, 1);
  EXPECT_EQ(asked(soon / 2), "");
  come(0, 0);  // so that there is no silence
  EXPECT_EQ(asked(soon - soon / 2), question(4));
  come(4, 0);
  EXPECT_EQ(asked(16 * nack), "");
}

// That it is to be had soon is no answer, nor that something else is.
TEST_F(DirectLost, APeerIsAskedUntilItComes) {
  come(5, 1);
  EXPECT_EQ(asked(soon), question(5));
  say(5, PEAL_NOT_YET_WAITS);
  EXPECT_EQ(asked(2 * soon), question(5));
  come(5, 0);
  EXPECT_EQ(asked(16 * nack), "");
}

// Who was asked in silence says that it has sent that.
TEST_F(DirectLost, WhatWasSentIsAskedForAgainSoon) {
  say(4, PEAL_NOT_YET_SENT);
  EXPECT_EQ(asked(soon), question(4));
  say(4, PEAL_NOT_YET_LATE);
  EXPECT_EQ(asked(2 * soon), question(4));
}

// What has come meanwhile, or what there is not, is not asked for.
TEST_F(DirectLost, WhatWasSentMayHaveCome) {
  come(4, 0);
  come(6, 1);
  say(4, PEAL_NOT_YET_SENT);
  say(6, PEAL_NOT_YET_SENT, 1);
  say(4, PEAL_NOT_YET_SENT, 7777);
  EXPECT_EQ(asked(soon), question(6));
}

TEST_F(DirectLost, WhatCouldNotBeTaken) {
  come(4, 0);
  const uint32_t in_use = bench.card().dma_in_use;
  bench.card().dma_in_use = CONFIG_DMA_RECORDS;  // as if others had them all
  EXPECT_EQ(change(from(4, kLong, 1)), "+1 drop_no_dma");
  bench.card().dma_in_use = in_use;
  EXPECT_EQ(asked(soon), question(4, 1));
}

// However little patience there is: what is lost together is asked for together.
TEST_F(DirectLost, NotAtOnce) {
  TimeNs& patience_ns = bench.card().members[0].patience.wait_ns;
  patience_ns = nack / 24;
  come(4, 1);
  come(6, 1);
  patience_ns = default_timeouts().dead_ns;
  EXPECT_EQ(asked(nack / 8 - 1), "");
  EXPECT_EQ(asked(1), question(6) + question(4));
}

// Others that cannot be taken, again and again, put off nothing.
TEST_F(DirectLost, WhatCannotBeTakenPutsNothingOff) {
  come(4, 1);
  const uint32_t in_use = bench.card().dma_in_use;
  std::string log;
  for (int i = 0; i < 2; i++) {
    bench.card().dma_in_use = CONFIG_DMA_RECORDS;
    bench.deliver(from(6, kLong, 0));
    bench.card().dma_in_use = in_use;
    log += asked(soon / 2);
  }
  EXPECT_EQ(log, question(6) + question(4));
}

// That rank 6 cannot answer now says nothing of rank 4, nor that the one has come of the other.
TEST_F(DirectLost, OneDoesNotSpeakForTheOthers) {
  come(4, 1);
  come(6, 1);
  EXPECT_EQ(asked(soon), question(6) + question(4));
  say(6, PEAL_NOT_YET_WAITS);
  EXPECT_EQ(asked(2 * soon), question(6) + question(4));
  come(4, 0);
  EXPECT_EQ(asked(soon), question(6));  // soon again
  come(6, 0);
  EXPECT_EQ(asked(16 * nack), "");
}

TEST_F(DirectLost, ItIsAskedForUntilItComes) {
  come(4, 1);
  TimeNs interval = soon;
  for (int look = 0; look < 10; look++) {
    EXPECT_EQ(asked(interval), question(4)) << look;
    say(4, PEAL_NOT_YET_SENT);  // it could not read it now
    interval = std::min(2 * interval, default_timeouts().nack_max_ns);
  }
}

// There is no second piece.
TEST_F(DirectLost, WhatThereIsNotWasNotSent) {
  post_next();
  const OperationShape shape = direct_shape(kBlock);
  bench.deliver(wire.not_yet(4, shape, 1, 1, 4, 0, now_us(), PEAL_NOT_YET_SENT));
  EXPECT_EQ(asked(16 * nack), "");
}

// An answer about what has come leaves no trace.
TEST_F(DirectLost, WhatHadComeLeavesNoDoubt) {
  come(5, 0);
  say(5, PEAL_NOT_YET_SENT);
  bench.take_log();
  bench.deliver(WireMaker::numbered(wire.alive(5), 2));
  EXPECT_EQ(lines_with(bench.take_wire_log(), " NACK "), question(5, 1));
  say(5, PEAL_NOT_YET_LATE);
  EXPECT_EQ(asked(16 * nack), "");
}

// What was lost before the post.
using DirectLostEarly = PatientDirectTest;

TEST_F(DirectLostEarly, IsAskedForSoonAfterIt) {
  bench.deliver(from(5, kLong, 1));
  bench.finish_all_dma();
  bench.advance(1000 * nack + nack / 8);
  post(kLong);
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(nack / 4);
  EXPECT_EQ(lines_with(bench.take_wire_log(), " NACK "),
            "send 1>5 NACK seq=0 piece=0 origin=5 missing=0x1\n");
}

// More pieces than a window.
class DirectLostLong : public PatientDirectTest {
 protected:
  static constexpr uint32_t kWindow = CONFIG_PIECE_WINDOW;
  static constexpr size_t kBytes = (2 * kWindow + 1) * kPiece;

  DirectLostLong() {
    post(kBytes);
    bench.finish_all_dma();
  }
  void come(uint32_t piece) {
    bench.deliver(from(4, kBytes, piece));
    bench.finish_all_dma();
  }
  std::string asked() {
    bench.take_log();
    bench.advance(default_timeouts().nack_ns / 4);
    return lines_with(bench.take_wire_log(), " NACK ");
  }
};

TEST_F(DirectLostLong, WhatIsPassedIsNotCountedOn) {
  come(2);
  come(0);
  EXPECT_EQ(asked(), "send 1>4 NACK seq=0 piece=1 origin=4 missing=0x1\n");
}

TEST_F(DirectLostLong, AQuestionNamesAWindowAtMost) {
  come(kWindow + 1);
  char expected[80];
  std::snprintf(expected, sizeof(expected), "send 1>4 NACK seq=0 piece=0 origin=4 missing=0x%x\n",
                (1u << kWindow) - 1);
  EXPECT_EQ(asked(), expected);
}

// Whoever asks for a piece has sent the one W before it, and all before that.
TEST_F(DirectLostLong, WhoAsksHasSentWhatIsAWindowBefore) {
  bench.card().members[0].membership.losses = true;
  bench.take_log();
  const auto answered = [&](uint32_t piece) {
    return lines_with(answer(4, kBytes, piece), " NACK ");
  };
  EXPECT_EQ(answered(kWindow), "send 1>4 NACK seq=0 piece=0 origin=4 missing=0x1\n");
  EXPECT_EQ(answered(kWindow + 1), "send 1>4 NACK seq=0 piece=1 origin=4 missing=0x1\n");
  EXPECT_EQ(answered(kWindow + 1), "");  // it is known, and asked for again soon
  EXPECT_EQ(asked(), "send 1>4 NACK seq=0 piece=0 origin=4 missing=0x3\n");
  come(0);
  EXPECT_EQ(asked(), "send 1>4 NACK seq=0 piece=1 origin=4 missing=0x1\n");
}

// Several at once; and the last piece of a question tells most.
TEST_F(DirectLostLong, OneQuestionNamesAllThatWasSent) {
  bench.card().members[0].membership.losses = true;
  EXPECT_EQ(lines_with(answer(4, kBytes, kWindow, 3), " NACK "),
            "send 1>4 NACK seq=0 piece=0 origin=4 missing=0x3\n");
}

// Where nothing was ever lost it is still being read, most likely.
TEST_F(DirectLostLong, WhoAsksBeforeAnyLossHasItOnItsWay) {
  EXPECT_EQ(lines_with(answer(4, kBytes, kWindow), " NACK "), "");
  EXPECT_TRUE(bench.card().members[0].patience.lossless);
}

// What has come is not asked for. What may be sent already tells nothing, nor what nobody can ask
// for yet.
TEST_F(DirectLostLong, WhoAsksForLessTellsNothing) {
  bench.card().members[0].membership.losses = true;
  EXPECT_EQ(lines_with(answer(4, kBytes, kWindow - 1), " NACK "), "");
  EXPECT_EQ(lines_with(answer(4, kBytes, 2 * kWindow), " NACK "), "");
  come(0);
  bench.take_log();
  EXPECT_EQ(lines_with(answer(4, kBytes, kWindow), " NACK "), "");
}

// From now on silence may be loss.
TEST_F(DirectLostLong, PatienceHearsOfIt) {
  EXPECT_TRUE(bench.card().members[0].patience.lossless);
  come(1);
  EXPECT_FALSE(bench.card().members[0].patience.lossless);
}

// The answer names what cannot be sent again now, not what is on its way.
TEST_F(DirectTest, TheAnswerNamesWhatCannotBeSentAgain) {
  constexpr size_t kPiece = CONFIG_MTU_BYTES;
  constexpr size_t kLong = 2 * kPiece;
  post(kLong);
  bench.finish_all_dma();
  deliver_all(kLong, 0);
  bench.take_log();
  bench.spend_repairs(1);
  EXPECT_EQ(answer(5, kLong, 0, 3),
            "send 1>5 NOT_YET seq=0 piece=1 origin=1 sent\n"
            "send 1>5 DATA seq=0 piece=0 origin=1 hop=0 len=" +
                std::to_string(kPiece) + " repair\n");
}

}  // namespace
}  // namespace peal::test
