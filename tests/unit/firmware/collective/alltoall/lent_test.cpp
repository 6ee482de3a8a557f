// SPDX-License-Identifier: BSD-2-Clause
// Blocks for one rank, which the port may leave in host memory: which these are, and when they are
// the host's again.
#include "firmware/card.h"
#include "tests/support/log_lines.h"
#include "tests/unit/firmware/collective/alltoall/direct_fixture.h"

namespace peal::test {
namespace {

class Lent : public DirectTest {
 protected:
  explicit Lent(uint32_t sent_packets = 2 * CONFIG_PIECE_WINDOW * 8)
      : DirectTest(false, sent_packets) {
    bench.port.lends = true;
  }
  // The reads of the own blocks since the last call, and those of them that are lent.
  std::string lent() {
    const std::string log = bench.take_log();
    const size_t reads = count_lines_that_begin(lines_with(log, "dma_read given"), "");
    const std::string lines = lines_that_begin(log, "lent by ");
    return std::to_string(count_lines_that_begin(lines, "")) + " of " + std::to_string(reads);
  }
  // Who lends, by all lines, if it is always the same.
  [[nodiscard]] std::string lender() {
    const std::string lines = lines_that_begin(bench.take_log(), "lent by ");
    return lines.substr(8, lines.find(':') - 8);
  }
};

TEST_F(Lent, AllOwnBlocksOfOtherRanksAndItsOwn) {
  post();
  bench.finish_all_dma();
  EXPECT_EQ(lent(), "8 of 8");
}

TEST_F(Lent, NoneInPlace) {
  post_in_place();
  bench.finish_all_dma();
  const std::string log = bench.take_log();
  EXPECT_GT(count_lines_that_begin(log, "dma_read"), 0u);
  EXPECT_EQ(lines_with(log, "lent by"), "");
}

// What is taken back is what was lent, before the host hears of the end, and once.
TEST_F(Lent, TheHostHasItBackBeforeItHears) {
  post();
  const std::string who = lender();
  bench.finish_all_dma();
  bench.take_log();
  deliver_all();
  const std::string log = bench.take_log();
  EXPECT_EQ(lines_that_begin(log, "take_back") + lines_that_begin(log, "complete"),
            "take_back " + who + "\ncomplete ctx0 cookie=100 OK\n");
  EXPECT_LT(log.find("take_back"), log.find("complete"));
}

TEST_F(Lent, EachOperationLendsForItself) {
  post();
  const std::string first = lender();
  AlltoallTest::post(1, kBlock);
  EXPECT_NE(lender(), first);
}

TEST_F(Lent, ARefusalGivesItBackFirst) {
  post();
  const std::string who = lender();
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(
      wire.direct(4, direct_shape(kBlock + 8), 0, 0, pattern_between(0, 4, rank, 0, kBlock + 8)));
  bench.finish_all_dma();
  const std::string log = bench.take_log();
  EXPECT_EQ(lines_that_begin(log, "take_back") + lines_that_begin(log, "complete"),
            "take_back " + who + "\ncomplete ctx0 cookie=100 MISMATCH rank=4\n");
  EXPECT_LT(log.find("take_back"), log.find("complete"));
}

// At once, for the host may be told otherwise (its context is closed), and what was lent since when
// the last transfer is over.
TEST_F(Lent, ADeathGivesItBackFirst) {
  post();
  const std::string who = lender();
  bench.deliver(wire.death(2, 4));
  EXPECT_EQ(distinct_lines(lines_that_begin(bench.take_log(), "take_back")),
            "take_back " + who + "\n");
  bench.finish_all_dma();
  const std::string log = bench.take_log();
  EXPECT_EQ(distinct_lines(lines_that_begin(log, "take_back") + lines_that_begin(log, "complete")),
            "take_back " + who + "\ncomplete ctx0 cookie=100 PEER_DEAD rank=4\n");
  EXPECT_LT(log.rfind("take_back"), log.find("complete"));
}

// The question was older than what it asks for; there is nothing to send.
TEST_F(Lent, WhatWasDeliveredIsNotSentAgain) {
  post();
  bench.finish_all_dma();
  deliver_all();
  bench.port.delivered = true;
  bench.port.take_sent();
  EXPECT_EQ(change(wire.nack(2, direct_shape(kBlock), 0, 0, rank, 0)), "+1 drop_stale");
  EXPECT_TRUE(bench.port.take_sent().empty());
  bench.port.delivered = false;
  EXPECT_EQ(answer(2), "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64 repair\n");
}

// What the port does not take at once is lent when it does.
TEST_F(Lent, AReadThatWaitedIsStillLent) {
  bench.port.refuse_dmas = {0, kAlways};
  post();
  EXPECT_EQ(lent(), "0 of 0");
  bench.port.refuse_dmas = {};
  bench.advance_to_deadline();
  bench.finish_all_dma();
  EXPECT_EQ(lent(), "8 of 8");
}

}  // namespace
}  // namespace peal::test
