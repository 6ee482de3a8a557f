// SPDX-License-Identifier: BSD-2-Clause
// A root's memory, which the port may leave where it is for all cards below: what is lent, and when
// it is the host's again.
#include "tests/support/log_lines.h"
#include "tests/unit/firmware/collective/broadcast/binomial_fixture.h"

namespace peal::test {
namespace {

class LentRoot : public BinomialTest {
 protected:
  static constexpr size_t kLong = (kPlaces + 1) * kPiece;

  LentRoot() { bench.port.lends = true; }
  // Who lends to several, by all reads since the last call, which all do.
  std::string lender() {
    const std::string log = bench.take_log();
    const std::string reads = lines_with(log, "dma_read source");
    EXPECT_NE(reads, "");
    EXPECT_EQ(reads, lines_with(reads, " to several: "));
    return reads.substr(8, reads.find(" to several") - 8);
  }
  static std::string ends(const std::string& log) {
    EXPECT_LT(log.rfind("take_back"), log.find("complete"));
    return distinct_lines(lines_that_begin(log, "take_back") + lines_that_begin(log, "complete"));
  }
};

TEST_F(LentRoot, TheHostHasItBackBeforeItHears) {
  post(0, 1, kBlock);
  const std::string who = lender();
  bench.finish_all_dma();
  EXPECT_EQ(ends(bench.take_log()), "take_back " + who + "\ncomplete ctx0 cookie=100 OK\n");
}

TEST_F(LentRoot, NotBeforeAllIsSent) {
  post(0, 1, kLong);
  const std::string who = lender();
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "take_back"), "");
  for (uint32_t hop = 0; hop < 3; hop++)
    bench.deliver(credit(1 + (1 << hop), 1, kLong, hop, kPlaces));
  EXPECT_EQ(lender(), who);
  bench.finish_all_dma();
  EXPECT_EQ(ends(bench.take_log()), "take_back " + who + "\ncomplete ctx0 cookie=100 OK\n");
}

TEST_F(LentRoot, EachOperationLendsForItself) {
  post(0, 1, kBlock);
  const std::string first = lender();
  post(1, 1, kBlock);
  EXPECT_NE(lender(), first);
}

// At once, for the host may be told otherwise, and what was lent since when all is over.
TEST_F(LentRoot, ADeathGivesItBackFirst) {
  post(0, 1, kLong);
  const std::string who = lender();
  bench.deliver(wire.death(2, 4));
  EXPECT_EQ(distinct_lines(lines_that_begin(bench.take_log(), "take_back")),
            "take_back " + who + "\n");
  bench.finish_all_dma();
  EXPECT_EQ(ends(bench.take_log()),
            "take_back " + who + "\ncomplete ctx0 cookie=100 PEER_DEAD rank=4\n");
}

TEST_F(LentRoot, WhoIsBelowLendsNothing) {
  post(0, 0, kBlock);
  bench.deliver(packet(0, 0, kBlock));
  bench.finish_all_dma();
  const std::string log = bench.take_log();
  EXPECT_EQ(lines_with(log, "lent by") + lines_that_begin(log, "take_back"), "");
  EXPECT_EQ(lines_that_begin(log, "complete"), "complete ctx0 cookie=100 OK\n");
}

}  // namespace
}  // namespace peal::test
