// SPDX-License-Identifier: BSD-2-Clause
// Lives of connections: how they begin and end, and that nothing of one gets into another.
#include "firmware/p2p/opening.h"

#include <algorithm>

#include "tests/unit/firmware/p2p/p2p_fixture.h"
#include "tests/unit/firmware/p2p/talk_fixture.h"

namespace peal::test {
namespace {

TEST_F(TalkTest, ARepeatedOpenIsAnsweredAlike) {
  EXPECT_EQ(open(kSender, kPlayed), handle);
  EXPECT_EQ(open(kSender, kPlayed ^ 0x10000), 0u) << "one of an earlier life";
  EXPECT_EQ(bench.counter(PEAL_COUNTER_CONNECTIONS_OPENED), 1u);
}

TEST_F(TalkTest, NothingIsSentBeforeTheOtherSideHasProvedThatItIsThere) {
  const uint32_t stale = open(2, 0x5005'0001);
  ASSERT_NE(stale, 0u);
  bench.take_log();
  post_put(8, 2);
  EXPECT_EQ(bench.take_log(), "");
  // That rank knows nothing of it: what waits asks for a life of its own.
  bench.deliver(talk(PEAL_PACKET_CLOSED, 2, stale, 0, std::vector<uint8_t>{}));
  EXPECT_EQ(bench.take_log(), "send 1>2 OPEN\n");
}

// A question of an earlier life came first. That nobody wants the answer to it says nothing of the
// answer to the second.
TEST_F(TalkTest, TheEndOfAnEarlierLifesAnswerEndsNoOther) {
  const uint32_t earlier = open(2, 0x5005'0001);
  const uint32_t later = open(2, 0x5006'0001);
  ASSERT_NE(later, 0u);
  EXPECT_NE(later, earlier);
  EXPECT_EQ(open(2, 0x5006'0001), later) << "the same question again";
  EXPECT_EQ(change(talk(PEAL_PACKET_CLOSED, 2, earlier, 0, std::vector<uint8_t>{})),
            "+1 drop_connection");
  bench.deliver(talk(PEAL_PACKET_ACK, 2, later, 0, peal_p2p_ack{0}));
  bench.take_log();
  post_put(8, 2);
  EXPECT_EQ(bench.take_log(), "send 1>2 PUT seq=0 landed=0 offset=0 len=0 ask\n");
}

// Nor may it take the answer's place when it comes behind the later one: whoever asked later has
// the answer, perhaps, and uses it. Lives are counted modulo 2^32.
TEST_F(TalkTest, AQuestionOfAnEarlierLifeThatComesBehindIsNobodys) {
  const uint32_t later = open(2, 0x5006'0001, 3);
  ASSERT_NE(later, 0u);
  EXPECT_EQ(open(2, 0x5005'0001, 2), 0u);
  EXPECT_EQ(open(2, 0x5005'0001, 0xfffffff0), 0u);
  EXPECT_EQ(open(2, 0x5006'0001, 3), later);
  bench.deliver(talk(PEAL_PACKET_ACK, 2, later, 0, peal_p2p_ack{0}));
  bench.take_log();
  post_put(8, 2);
  EXPECT_EQ(bench.take_log(), "send 1>2 PUT seq=0 landed=0 offset=0 len=0 ask\n");
}

// The same with two cards, the first of which has the answer and talks when its question of long
// ago comes to the other: without an order of lives it would talk for ever to nobody.
TEST_F(PointToPoint, AQuestionOfAnEarlierLifeEndsNoTalk) {
  ASSERT_TRUE(run_until_ended(0, put(0, 1, 100)));
  expect_quiet();
  const auto is_question = [](const Frame& frame) {
    return frame.header.type == PEAL_PACKET_OPEN && frame.header.sender == 0;
  };
  const auto& trace = cluster.trace();
  const Frame earlier = *std::find_if(trace.begin(), trace.end(), is_question);
  bool cut = true;
  cluster.fate = [&](const Frame& frame) {
    return cut && frame.header.sender == 0 && frame.header.type >= PEAL_PACKET_ACK ? 0u : 1u;
  };
  const uint64_t second = put(0, 1, 100, 64);
  cluster.settle();
  cluster.bench(1).deliver(earlier);
  cluster.settle();
  cut = false;
  EXPECT_TRUE(run_until_ended(0, second));
  EXPECT_EQ(ended(0, second), "OK");
}

TEST_F(TalkTest, AnAcceptThatNobodyWantsIsClosed) {
  EXPECT_EQ(answer(talk(PEAL_PACKET_ACCEPT, 2, 0x1234'0001, 0, peal_p2p_open{9, 0})),
            "send 1>2 CLOSED\n");
  EXPECT_EQ(answer(talk(PEAL_PACKET_CLOSE, 2, 0x1234'0001, 0, peal_p2p_open{9, 0})),
            "send 1>2 CLOSED\n");
}

TEST_F(TalkTest, ACloseIsAnsweredWhenAllIsAcknowledged) {
  post_put(8, kSender);
  bench.take_log();
  const Frame close = talk(PEAL_PACKET_CLOSE, kSender, handle, 0, peal_p2p_open{kPlayed, 0});
  EXPECT_EQ(answer(close), "") << "a put is not acknowledged yet";
  post_put(9, kSender);
  EXPECT_EQ(bench.take_log(), "") << "nothing new by a life that ends";
  bench.deliver(ack(1));
  EXPECT_EQ(bench.take_log(), "send 1>0 CLOSED\nsend 1>0 OPEN\ncomplete ctx0 cookie=8 OK\n");
  EXPECT_EQ(answer(close), "send 1>0 CLOSED\n") << "as often as it is asked";
  bench.take_log();
  EXPECT_EQ(change(put(0, 0, 3)), "+1 drop_connection") << "a packet of the life that is over";
}

TEST_F(TalkTest, ACloseIsAnsweredThoughThereIsNothingElseToSend) {
  post_put(8, kSender);
  bench.deliver(talk(PEAL_PACKET_CLOSE, kSender, handle, 0, peal_p2p_open{kPlayed, 0}));
  bench.take_log();
  bench.deliver(ack(1));
  EXPECT_EQ(bench.take_log(), "send 1>0 CLOSED\ncomplete ctx0 cookie=8 OK\n");
}

TEST_F(TalkTest, AnotherRanksOrLifesCloseClosesNothing) {
  EXPECT_EQ(change(talk(PEAL_PACKET_CLOSE, kSender, handle, 0, peal_p2p_open{77, 0})),
            "+1 drop_connection");
  EXPECT_EQ(change(talk(PEAL_PACKET_CLOSED, kSender, handle, 0, std::vector<uint8_t>{})),
            "+1 drop_connection");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_CONNECTIONS_CLOSED), 0u);
}

// Connections are given back when they are idle, taken again when they are used; what comes late of
// an earlier life does nothing.
TEST_F(PointToPoint, PacketsOfEarlierLivesDoNothing) {
  for (uint32_t life = 0; life < 3; life++) {
    const uint64_t cookie = put(0, 1, 3 * kChunk, 64 * life);
    ASSERT_TRUE(run_until_ended(0, cookie));
    expect_quiet();
    std::fill(bytes_to(1).begin(), bytes_to(1).end(), uint8_t{0xee});
    const std::vector<Frame> earlier = cluster.trace();
    for (const Frame& frame : earlier) {
      const uint32_t to_card = frame.header.destination[PEAL_MAC_BYTES - 1];
      cluster.bench(to_card).deliver(frame);
      cluster.settle();
    }
    EXPECT_EQ(untouched(1, 0, kMemoryBytes), kMemoryBytes) << "written again";
    expect_quiet();
  }
  EXPECT_EQ(cluster.completions(0).size(), 3u);
}

TEST_F(PointToPoint, BothMayOpenAtOnce) {
  const uint64_t one = put(0, 1, 100);
  const uint64_t other = put(1, 0, 100);
  ASSERT_TRUE(run_until_ended(0, one));
  ASSERT_TRUE(run_until_ended(1, other));
  EXPECT_EQ(cluster.total(PEAL_COUNTER_CONNECTIONS_OPENED), 2u);
  EXPECT_EQ(cluster.total(PEAL_COUNTER_P2P_TIMEOUTS), 0u);
  expect_quiet();
}

}  // namespace
}  // namespace peal::test
