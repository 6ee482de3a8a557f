// SPDX-License-Identifier: BSD-2-Clause
// What is over before it is acknowledged: signals, and posted puts.
#include <numeric>

#include "firmware/group/member.h"
#include "firmware/p2p/timing.h"
#include "tests/support/log_lines.h"
#include "tests/unit/firmware/p2p/talk_fixture.h"

namespace peal::test {
namespace {

class Posted : public TalkTest {
 protected:
  static constexpr uint16_t kProgram = 8;  // as packets have it

  Posted() {
    // TalkTest tells the card of no packets, so that it would keep none.
    bench.card().p2p.kept_most = 4;
    auto& bytes = bench.port.bytes(send.region);
    std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  }
  Member& own() { return *find_member(bench.card(), member.handle()); }
  p2p::Connection& connection() { return bench.card().p2p.connections[handle & 0xffff]; }
  static p2p::Origin origin_of(uint64_t iteration, uint16_t program = kProgram) {
    p2p::Origin origin = {};
    origin.iteration = iteration;
    origin.slot = program;
    origin.posted = true;
    return origin;
  }
  // False: its connection cannot number it now.
  bool signal(uint64_t iteration = 4) {
    const peal_descriptor what = told();
    return p2p::start_signal(bench.card(), own(), {.what = what, .origin = origin_of(iteration)});
  }
  void put(uint64_t cookie, uint64_t bytes, uint16_t program = kProgram, bool together = false) {
    p2p::Origin origin = origin_of(4, program);
    origin.together = together;
    peal_descriptor what = told();
    what.bytes = bytes;
    what.key = send.key;
    what.remote_key = 77;
    ++bench.card().contexts[bench.context()].outstanding;
    ASSERT_TRUE(p2p::start_put(bench.card(), own(),
                               {.what = what, .origin = origin, .region = send.region, .index = 3},
                               {p2p::Owner::kHost, 0, 0, cookie}));
  }
  void wait_for_answer() { bench.advance(p2p::answer_time(bench.card(), connection()) + 1); }
  [[nodiscard]] Frame answer(uint32_t landed, uint64_t behind = 0) const {
    Frame frame = ack(landed, behind);
    frame.header.hop = PEAL_P2P_ANSWER;
    seal(frame);
    return frame;
  }
  [[nodiscard]] Frame refusal(uint32_t number, peal_status status) const {
    return talk(PEAL_PACKET_REFUSED, kSender, handle, 0,
                peal_p2p_refused{number, static_cast<uint32_t>(status)});
  }

 private:
  static peal_descriptor told() {
    peal_descriptor what = {};
    what.rank = kSender;
    what.queue = 9;
    what.counter = 2;
    what.steps = 5;
    return what;
  }
};

TEST_F(Posted, ASignalIsOverWhenItHasItsNumber) {
  EXPECT_TRUE(signal(0x1'0000'0006));
  EXPECT_EQ(bench.card().p2p.requests_used, 0u);
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].header.type, PEAL_PACKET_PUT);
  EXPECT_EQ(sent[0].header.hop, 0) << "nobody waits for an answer";
  peal_p2p_put body;
  ASSERT_EQ(sent[0].payload.size(), sizeof(body));
  std::memcpy(&body, sent[0].payload.data(), sizeof(body));
  EXPECT_EQ(body.notice.queue, 9u);
  EXPECT_EQ(body.notice.counter, 2u);
  EXPECT_EQ(body.notice.steps, 5u);
  EXPECT_EQ(body.notice.iteration, 0x1'0000'0006u);
  EXPECT_EQ(body.program, kProgram);
  bench.deliver(ack(1));
}

TEST_F(Posted, AnAnswerIsAskedForWhenHalfAWindowHasNone) {
  std::string asks;
  for (uint32_t i = 0; i < p2p::kWindow / 2; i++) ASSERT_TRUE(signal());
  for (const Frame& frame : bench.port.take_sent()) asks += frame.header.hop != 0 ? "?" : ".";
  EXPECT_EQ(asks, std::string(p2p::kWindow / 2 - 1, '.') + "?");
  bench.deliver(ack(p2p::kWindow / 2));
  EXPECT_EQ(connection().base, connection().next_number);
}

TEST_F(Posted, ASignalHasNoNumberWhereTheWindowIsFull) {
  uint32_t numbered = 0;
  while (signal()) ++numbered;
  EXPECT_EQ(numbered, connection().window);
  bench.deliver(ack(1));
  EXPECT_TRUE(signal());
  bench.deliver(ack(numbered + 1));
}

TEST_F(Posted, NorWhereAPutHasNoneYet) {
  bench.port.fail_allocations = {0, kAlways};
  post_put(7, kSender, 4 * p2p::kChunkBytes);
  EXPECT_FALSE(signal());
  bench.port.fail_allocations = {};
}

// Before anything is sent again, the other side is asked what it has.
TEST_F(Posted, WhatNobodyAskedAboutIsAskedAboutFirst) {
  ASSERT_TRUE(signal());
  ASSERT_TRUE(signal());
  bench.take_log();
  wait_for_answer();
  EXPECT_EQ(bench.take_log(), "send 1>0 ACK landed=0 ask\n");
  bench.deliver(ack(0));
  EXPECT_EQ(bench.take_log(), "") << "it may have left before the question came";
  bench.deliver(answer(0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>0 PUT seq=0 landed=0 offset=0 len=0 queue=9 ask\n");
  bench.deliver(ack(2));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_P2P_TIMEOUTS), 0u);
}

TEST_F(Posted, AnAnswerThatDoesNotComeIsAskedForByWhatIsOldest) {
  ASSERT_TRUE(signal());
  wait_for_answer();
  bench.take_log();
  wait_for_answer();
  EXPECT_EQ(bench.take_log(), "send 1>0 PUT seq=0 landed=0 offset=0 len=0 queue=9 ask\n");
  bench.deliver(ack(1));
}

// What is on its way into memory is not lost.
TEST_F(Posted, AnAnswerWaitsForWhatIsBeingWritten) {
  bench.deliver(TalkTest::put(0, 0, 8));
  bench.take_log();
  Frame question = ack(0);
  question.header.hop = PEAL_P2P_ASK;
  seal(question);
  bench.deliver(question);
  EXPECT_EQ(bench.take_log(), "send 1>0 ACK landed=0\n");
  bench.finish_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "send"), "send 1>0 ACK landed=1 answer\n");
}

TEST_F(Posted, APostedPutIsOverWhenItsBytesAreHere) {
  put(7, 64);
  EXPECT_EQ(bench.take_log(), "dma_read send+0 64\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(),
            "send 1>0 PUT seq=0 landed=0 offset=0 len=64 queue=9\n"
            "complete ctx0 cookie=7 OK\n");
  EXPECT_EQ(bench.card().p2p.kept, 1u);
  bench.deliver(ack(1));
  EXPECT_EQ(bench.card().p2p.kept, 0u);
}

// Its memory is the caller's again: what is sent again is what was read.
TEST_F(Posted, WhatIsSentAgainIsNotReadAgain) {
  put(7, 64);
  bench.finish_dma();
  const auto before = bench.port.take_sent();
  std::ranges::fill(bench.port.bytes(send.region), uint8_t{0xee});
  wait_for_answer();
  bench.deliver(answer(0));
  std::vector<Frame> again;
  for (Frame& frame : bench.port.take_sent()) {
    if (frame.header.type == PEAL_PACKET_PUT) again.push_back(std::move(frame));
  }
  ASSERT_EQ(before.size(), 1u);
  ASSERT_EQ(again.size(), 1u);
  peal_p2p_put body;
  std::memcpy(&body, before[0].payload.data(), sizeof(body));
  EXPECT_EQ(body.program, kProgram);
  EXPECT_EQ(again[0].payload, before[0].payload);
  EXPECT_EQ(again[0].header.sequence, 0u);
  EXPECT_EQ(bench.port.dma_count(), 0u);
  // A packet is needed for it: without one it waits.
  bench.port.fail_allocations = {0, kAlways};
  wait_for_answer();
  EXPECT_TRUE(bench.port.take_sent().empty());
  bench.port.fail_allocations = {};
  bench.advance(p2p::kStarvedNs);
  EXPECT_EQ(bench.port.take_sent().size(), 1u);
  bench.deliver(ack(1));
}

TEST_F(Posted, WhatCannotBeKeptIsOverWhenItIsAcknowledged) {
  bench.card().p2p.kept_most = 1;
  put(1, 8);
  bench.finish_all_dma();
  bench.take_log();
  put(2, 8);
  bench.take_log();
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "send 1>0 PUT seq=1 landed=0 offset=0 len=8 queue=9 ask\n");
  bench.deliver(ack(2));
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=2 OK\n");
  // Nor without a packet that shares its bytes.
  put(6, 8);
  bench.port.fail_allocations = {0, kAlways};
  bench.finish_dma();
  bench.port.fail_allocations = {};
  bench.take_log();
  EXPECT_EQ(connection().next_number, 3u);
  EXPECT_EQ(bench.card().p2p.kept, 0u);
  bench.deliver(ack(3));
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=6 OK\n");
}

// As an MTU of a collective is one.
TEST_F(Posted, AnMtuIsOnePacket) {
  put(7, CONFIG_MTU_BYTES);
  bench.finish_all_dma();
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload.size(), kPayloadBytes);
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"), "complete ctx0 cookie=7 OK\n");
  bench.deliver(ack(1));
}

TEST_F(Posted, ALongPutIsOverWhenItIsAcknowledged) {
  put(7, p2p::kChunkBytes + 1);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"), "");
  EXPECT_EQ(bench.card().p2p.kept, 0u);
  bench.deliver(ack(2));
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=7 OK\n");
}

// A put that somebody waits for asks, though a signal has got the number behind it meanwhile.
TEST_F(Posted, WhoIsWaitedForAsksThoughASignalFollows) {
  post_put(7, kSender, 8);
  ASSERT_TRUE(signal());
  bench.finish_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "send"),
            "send 1>0 PUT seq=1 landed=0 offset=0 len=0 queue=9\n"
            "send 1>0 PUT seq=0 landed=0 offset=0 len=8 ask\n");
  bench.deliver(ack(2));
}

// Nobody can be told that it was not well; so the group is told that its iteration has failed.
TEST_F(Posted, WhatIsRefusedAfterwardsHasFailedItsIteration) {
  put(7, 64);
  bench.finish_dma();
  bench.take_log();
  bench.deliver(refusal(0, PEAL_STATUS_BAD_KEY));
  const std::string log = bench.take_log();
  EXPECT_NE(lines_that_begin(log, "send 1>0 FAILURE"), "");
  EXPECT_NE(lines_that_begin(log, "send 1>2 FAILURE"), "");
  EXPECT_EQ(lines_that_begin(log, "send 1>0 SKIP"),
            "send 1>0 SKIP seq=0 landed=0 program=7 iteration=4 index=3 BAD_KEY late ask\n");
  const queue::FailedIterations& failed = bench.card().queues.failed[0];
  EXPECT_EQ(failed.name, kProgram - 1);
  EXPECT_EQ(failed.from, 4u);
  EXPECT_EQ(failed.to, 5u);
  EXPECT_EQ(failed.why.status, PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(failed.why.index, 3u);
  EXPECT_EQ(failed.why.rank, 1u);
  EXPECT_EQ(bench.card().p2p.kept, 0u);
  EXPECT_EQ(change(refusal(0, PEAL_STATUS_BAD_KEY)), "+1 duplicate");
  bench.deliver(ack(1));
}

// Whether it was over or not.
TEST_F(Posted, ASkipSaysWhomItsProgramTells) {
  queue::Queue& own = bench.card().queues.queues[1];
  own.in_use = true;
  own.member = member.handle();
  own.origin.slot = kProgram;
  own.tells[0] = 21;
  own.tells[1] = 22;
  put(7, p2p::kChunkBytes + 1);
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(refusal(0, PEAL_STATUS_BAD_KEY));
  const std::string of = " landed=0 program=7 iteration=4 index=3 BAD_KEY tells=20 tells=21 ask\n";
  EXPECT_EQ(lines_that_begin(bench.take_log(), "send 1>0 SKIP"),
            "send 1>0 SKIP seq=0" + of + "send 1>0 SKIP seq=1" + of);
  bench.deliver(ack(2));
  own = {};
}

TEST_F(Posted, ASkipSaysWhoseItWas) {
  put(7, p2p::kChunkBytes + 1, kProgram, true);
  put(8, 8, kProgram, true);
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(refusal(0, PEAL_STATUS_BAD_KEY));
  bench.deliver(refusal(2, PEAL_STATUS_BAD_ACCESS));
  const std::string of = " landed=0 program=7 iteration=4 index=3 ";
  EXPECT_EQ(lines_that_begin(bench.take_log(), "send 1>0 SKIP"),
            "send 1>0 SKIP seq=0" + of + "BAD_KEY together ask\n" + "send 1>0 SKIP seq=1" + of +
                "BAD_KEY together ask\n" + "send 1>0 SKIP seq=2" + of +
                "BAD_ACCESS together late ask\n");
  bench.deliver(ack(3));
}

TEST_F(Posted, ARefusalThatCannotBeNotedComesAgain) {
  // All that a client may have are taken, by failures of its own that nobody has heard yet.
  for (uint64_t cookie = 1; bench.card().queues.failed_top < queue::kFailedOfContext || cookie < 2;
       cookie++) {
    put(cookie, 8, static_cast<uint16_t>(100 + cookie));
    bench.finish_dma();
    const auto number = static_cast<uint32_t>(cookie - 1);
    bench.deliver(refusal(number, PEAL_STATUS_BAD_KEY));
    bench.deliver(ack(number + 1));
  }
  const uint32_t number = connection().next_number;
  put(1000, 8);
  bench.finish_dma();
  const auto before = bench.counters();
  bench.deliver(refusal(number, PEAL_STATUS_BAD_KEY));
  EXPECT_EQ(bench.counter_changes(before), "+1 received, +1 p2p_refused, +1 no_failure");
  EXPECT_EQ(bench.card().p2p.kept, 1u) << "it is sent again";
}

// A refusal that says a status that no put gets changes nothing.
TEST_F(Posted, ARefusalHasToBeOneOfAPut) {
  put(7, 64);
  bench.finish_dma();
  EXPECT_EQ(change(refusal(0, PEAL_STATUS_BUSY)), "+1 drop_p2p_field");
  EXPECT_EQ(change(refusal(0, PEAL_STATUS_TOO_MANY)), "+1 drop_p2p_field");
  EXPECT_EQ(bench.card().p2p.kept, 1u);
  bench.deliver(ack(1));
  ASSERT_TRUE(signal());
  EXPECT_EQ(change(refusal(1, PEAL_STATUS_BAD_KEY)), "+1 drop_p2p_field") << "it names no memory";
  bench.deliver(ack(2));
}

// A life does not end before all of it has come.
TEST_F(Posted, WhoLeavesWaitsForWhatNobodyWaitedFor) {
  ASSERT_TRUE(signal());
  bench.take_log();
  bench.deliver(talk(PEAL_PACKET_CLOSE, kSender, handle, 0, peal_p2p_open{kPlayed, 0}));
  EXPECT_EQ(bench.take_log(), "send 1>0 ACK landed=0 ask\n");
  bench.deliver(answer(1));
  EXPECT_EQ(bench.take_log(), "send 1>0 CLOSED\n");
}

}  // namespace
}  // namespace peal::test
