// SPDX-License-Identifier: BSD-2-Clause
// What a rank of a broadcast tells and learns of lateness: it waits for one other alone.
#include "firmware/base/patience.h"

#include "firmware/group/inquiry.h"
#include "tests/unit/firmware/collective/broadcast/binomial_fixture.h"

namespace peal::test {
namespace {

constexpr TimeNs kMillisecond = 1'000'000;

class BinomialLateness : public BinomialTest {};

// Its parent is all that a rank of a tree waits for, and waits itself, for who is late.
TEST_F(BinomialLateness, AParentThatWaitsTeachesPatience) {
  TimeNs patience = default_timeouts().nack_ns;
  for (uint32_t sequence = 0; sequence < 3; sequence++) {
    post(sequence, 0, kBlock);
    bench.take_log();
    bench.advance(patience - 1);
    EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NACK), sequence);
    bench.advance(1);
    EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NACK), sequence + 1);
    bench.deliver(wire.not_yet(0, binomial_shape(kBlock, 0), sequence, 0, 0, 0, now_us()));
    bench.deliver(packet(sequence, 0, kBlock));
    bench.finish_all_dma();
    patience *= sequence == 0 ? 8 : 16;  // the second silence was long
  }
}

// Whoever asks waits for this rank alone: each question tells it how late ranks are, but one in its
// own time, and none among losses.
TEST_F(BinomialLateness, WhoIsLateLearnsWithEachQuestion) {
  const TimeNs first_ns = default_timeouts().nack_ns;
  Patience& patience = bench.card().members[0].patience;
  const auto after = [&](TimeNs wait_ns) {
    bench.advance(wait_ns);
    bench.deliver(wire.nack(3, binomial_shape(kBlock, 1), 0, 0, 1, 1, 1));
    return patience.wait_ns;
  };
  EXPECT_EQ(after(first_ns), 16 * first_ns);
  EXPECT_EQ(after(16 * first_ns - 1), 16 * first_ns);
  EXPECT_EQ(after(1), 256 * first_ns);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NOT_YET), 3u);
  patience = patience_start(default_timeouts(), bench.now);
  patience.lossless = false;
  EXPECT_EQ(after(first_ns), first_ns);
}

// A host that has been away since its last operation teaches as a silence does, and whoever asks is
// told what it has taught; but not among losses.
TEST_F(BinomialLateness, WhoIsAwayTellsHowPatientThatMakesIt) {
  const TimeNs first_ns = default_timeouts().nack_ns;
  const Patience& patience = bench.card().members[0].patience;
  const auto asked_after = [&](TimeNs wait_ns, uint32_t sequence) {
    bench.advance(wait_ns);
    bench.deliver(wire.nack(3, binomial_shape(kBlock, 1), sequence, 0, 1, 1, 1));
    return bench.take_log();
  };
  const std::string late = "send 1>3 NOT_YET seq=1 piece=0 origin=1 late";
  // There was none yet.
  EXPECT_EQ(asked_after(5 * kMillisecond, 0),
            "send 1>3 NOT_YET seq=0 piece=0 origin=1 late patience=3\n");
  EXPECT_EQ(patience.wait_ns, 16 * first_ns);
  post(0, 1, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  EXPECT_EQ(asked_after(kMillisecond - 1, 1), late + " patience=15\n");
  EXPECT_EQ(patience.wait_ns, 16 * (kMillisecond - 1));
  EXPECT_EQ(asked_after(7 * kMillisecond, 1), late + " patience=127\n");
  EXPECT_EQ(patience.wait_ns, 16 * (8 * kMillisecond - 1));
  EXPECT_EQ(asked_after(70'000 * kMillisecond, 1), late + " patience=1000\n");
  EXPECT_EQ(patience.wait_ns, default_timeouts().dead_ns / kPatienceMost);
  note_loss(bench.card(), bench.card().members[0]);
  const TimeNs after_loss_ns = patience.wait_ns;
  EXPECT_EQ(asked_after(kMillisecond, 1), late + "\n");
  EXPECT_EQ(patience.wait_ns, after_loss_ns);
}

// It waits for somebody else, whose lateness it tells, and not for its host.
TEST_F(BinomialLateness, WhoWaitsForTheLateTellsHowPatientItIs) {
  const Patience& patience = bench.card().members[0].patience;
  post(0, 1, kBlock);
  bench.finish_all_dma();
  bench.advance(50 * kMillisecond);
  post(1, 0, kBlock);
  const auto asked = [&] {
    bench.take_log();
    bench.deliver(wire.nack(3, binomial_shape(kBlock, 0), 1, 0, 0, 1, 1));
    return bench.take_log();
  };
  EXPECT_EQ(asked(), "send 1>3 NOT_YET seq=1 piece=0 origin=0\n");
  bench.advance(default_timeouts().nack_ns);
  bench.deliver(
      wire.not_yet(0, binomial_shape(kBlock, 0), 1, 0, 0, 0, now_us(), PEAL_NOT_YET_LATE, 40));
  EXPECT_EQ(asked(), "send 1>3 NOT_YET seq=1 piece=0 origin=0 late patience=40\n");
  bench.advance(5 * kMillisecond);
  EXPECT_EQ(asked(), "send 1>3 NOT_YET seq=1 piece=0 origin=0 late patience=40\n");
  EXPECT_EQ(patience.wait_ns, 40 * kMillisecond);
}

// As patient as whoever is late, at the least, until something is lost.
TEST_F(BinomialLateness, WhoeverAsksIsTold) {
  const TimeNs first_ns = default_timeouts().nack_ns;
  Patience& patience = bench.card().members[0].patience;
  const auto told = [&](uint32_t sequence, uint32_t patience_ms, bool lossless) {
    patience = patience_start(default_timeouts(), bench.now);
    patience.lossless = lossless;
    post(sequence, 0, kBlock);
    bench.advance(first_ns);
    bench.deliver(wire.not_yet(0, binomial_shape(kBlock, 0), sequence, 0, 0, 0, now_us(),
                               PEAL_NOT_YET_LATE, patience_ms));
    const TimeNs learned_ns = patience.wait_ns;
    bench.deliver(packet(sequence, 0, kBlock));
    bench.finish_all_dma();
    return learned_ns;
  };
  EXPECT_EQ(told(0, 0, true), 16 * first_ns);
  EXPECT_EQ(told(1, 2, true), 16 * first_ns);
  EXPECT_EQ(told(2, 9, true), 9 * kMillisecond);
  EXPECT_EQ(told(3, 65535, true), default_timeouts().dead_ns / kPatienceMost);
  EXPECT_EQ(told(4, 9, false), 2 * first_ns);
}

}  // namespace
}  // namespace peal::test
