// SPDX-License-Identifier: BSD-2-Clause
// What is sent again, and when: one lost packet alone, or, going back, all behind it.
#include "firmware/p2p/acknowledgement.h"

#include "tests/unit/firmware/p2p/p2p_fixture.h"
#include "tests/unit/firmware/p2p/talk_fixture.h"

namespace peal::test {
namespace {

// The PUT of this number is lost, so many times.
std::function<uint32_t(const Frame&)> lose(uint32_t number, uint32_t times = 1) {
  return [number, left = times](const Frame& frame) mutable -> uint32_t {
    if (frame.header.type != PEAL_PACKET_PUT || frame.header.sequence != number || left == 0) {
      return 1;
    }
    left--;
    return 0;
  };
}

TEST_F(PointToPoint, WithoutLossNothingIsSentTwice) {
  const uint64_t cookie = put(0, 1, 39 * kChunk);
  ASSERT_TRUE(run_until_ended(0, cookie));
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_P2P), 39u);
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_P2P_AGAIN), 0u);
  // An OPEN, an ACCEPT and an ACK to begin with, then an ACK for a quarter of a window.
  EXPECT_LE(cluster.total(PEAL_COUNTER_SENT_P2P_CONTROL), 3 + 39 / (p2p::kWindow / 4) + 4);
}

TEST_F(PointToPoint, ALostPacketAloneIsSentAgainAtOnce) {
  const uint64_t first = put(0, 1, kChunk);
  ASSERT_TRUE(run_until_ended(0, first));
  cluster.fate = lose(8);
  const uint64_t cookie = put(0, 1, 39 * kChunk);
  ASSERT_TRUE(run_until_ended(0, cookie));
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_P2P_AGAIN), 1u);
  EXPECT_EQ(cluster.total(PEAL_COUNTER_P2P_TIMEOUTS), 0u) << "what came behind it showed it";
  EXPECT_TRUE(same(0, 0, 1, 0, 39 * kChunk));
}

TEST_F(PointToPoint, TheLastPacketIsMissedByTime) {
  cluster.fate = lose(2, 3);
  const uint64_t cookie = put(0, 1, 3 * kChunk);
  ASSERT_TRUE(run_until_ended(0, cookie));
  // The first question is sent with the oldest packet, unless somebody has said that it came: the
  // sender asks for that at each quarter of a window.
  const uint32_t questions = p2p::kWindow / 4 > 2 ? 1 + 3 : 3;
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_P2P_AGAIN), questions);
  EXPECT_EQ(cluster.total(PEAL_COUNTER_P2P_TIMEOUTS), questions);
  EXPECT_TRUE(same(0, 0, 1, 0, 3 * kChunk));
}

class GoingBack : public PointToPoint {
 protected:
  static BenchOptions going_back() {
    BenchOptions options;
    options.timeouts.go_back_n = true;
    return options;
  }
  GoingBack() : PointToPoint(4, going_back()) {}
};

TEST_F(GoingBack, AllBehindALossIsSentAgain) {
  cluster.fate = lose(1);
  const uint64_t cookie = put(0, 1, 39 * kChunk);
  ASSERT_TRUE(run_until_ended(0, cookie));
  EXPECT_EQ(cluster.total(PEAL_COUNTER_P2P_TIMEOUTS), 1u);
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_P2P_AGAIN), p2p::kWindow / 2);
  EXPECT_EQ(cluster.bench(1).counter(PEAL_COUNTER_DROP_P2P_ORDER), p2p::kWindow / 2 - 2);
  EXPECT_TRUE(same(0, 0, 1, 0, 39 * kChunk));
}

// The wire may bring packets in another order: by less than three they are not lost.
TEST_F(TalkTest, AFewPacketsTheOtherWayRoundAreNotLost) {
  post_put(9, kSender, 4 * kChunk);
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_P2P), 4u);
  bench.deliver(ack(0, 3));
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_P2P_AGAIN), 0u) << "two came before it";
  bench.deliver(ack(0, 7));
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_P2P_AGAIN), 1u) << "three did";
  bench.take_log();
  bench.deliver(ack(4));
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=9 OK\n");
}

TEST_F(TalkTest, ARefusalEndsTheRequestAndItsPacketsAreSkipped) {
  post_put(9, kSender, 3 * kChunk);
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(
      talk(PEAL_PACKET_REFUSED, kSender, handle, 0, peal_p2p_refused{1, PEAL_STATUS_BAD_KEY}));
  EXPECT_EQ(bench.take_log(),
            "send 1>0 SKIP seq=0 landed=0 ask\n"
            "send 1>0 SKIP seq=1 landed=0 ask\n"
            "send 1>0 SKIP seq=2 landed=0 ask\n"
            "complete ctx0 cookie=9 BAD_KEY rank=0\n");
  EXPECT_EQ(change(talk(PEAL_PACKET_REFUSED, kSender, handle, 0,
                        peal_p2p_refused{1, PEAL_STATUS_BAD_KEY})),
            "+1 duplicate");
  EXPECT_EQ(change(talk(PEAL_PACKET_REFUSED, kSender, handle, 0,
                        peal_p2p_refused{3, PEAL_STATUS_BAD_KEY})),
            "+1 duplicate")
      << "none such was sent";
}

// There is no record for a get at its owner, for what would give one back may be behind it: then it
// goes behind that, by another number. Where nothing is, it is repeated once before.
TEST_F(TalkTest, AGetThatFindsNoRecordGoesBehindTheOthers) {
  const auto busy = [&](uint32_t number) {
    return talk(PEAL_PACKET_REFUSED, kSender, handle, 0,
                peal_p2p_refused{number, PEAL_STATUS_BUSY});
  };
  post_get(9, kSender, 8);
  bench.take_log();
  EXPECT_EQ(answer(busy(0)), "") << "nothing is behind it";
  for (uint32_t i = 0; i < p2p::kWindow; i++) post_put(10 + i, kSender);
  bench.take_log();
  EXPECT_EQ(answer(busy(0)), "send 1>0 SKIP seq=0 landed=0 ask\n");
  const p2p::Connection& connection = bench.card().p2p.connections[handle & 0xffff];
  for (uint32_t i = 0; i < p2p::kWindow; i++) bench.deliver(ack(connection.next_number));
  const std::string log = bench.take_log();
  const size_t later = log.find("GET seq=");
  ASSERT_NE(later, std::string::npos) << log;
  EXPECT_LT(log.rfind("PUT seq="), later) << log;
  EXPECT_EQ(log.find("cookie=9 "), std::string::npos) << "it is not over";
}

TEST_F(TalkTest, StatusesThatNoRefusalHasAreDropped) {
  post_put(0, kSender);
  for (const uint32_t status : {uint32_t{PEAL_STATUS_OK}, uint32_t{PEAL_STATUS_PEER_DEAD},
                                uint32_t{PEAL_STATUS_BUSY}, 999u}) {
    EXPECT_EQ(change(talk(PEAL_PACKET_REFUSED, kSender, handle, 0, peal_p2p_refused{0, status})),
              "+1 drop_p2p_field");
  }
}

}  // namespace
}  // namespace peal::test
