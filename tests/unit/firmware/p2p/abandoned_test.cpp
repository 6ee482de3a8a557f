// SPDX-License-Identifier: BSD-2-Clause
// What comes of an iteration that has failed is taken, and changes nothing.
#include "firmware/p2p/abandoned.h"

#include "firmware/group/member.h"
#include "tests/unit/firmware/p2p/talk_fixture.h"

namespace peal::test {
namespace {

class Abandoned : public TalkTest {
 protected:
  static constexpr uint16_t kName = 7;
  static constexpr uint16_t kProgram = kName + 1;  // as packets have it

  // Iterations 4 and 5 have failed on rank 2.
  void fail() {
    bench.deliver(wire.failed(2, {.from = 4,
                                  .to = 6,
                                  .rank = 2,
                                  .index = 0,
                                  .program = kName,
                                  .status = PEAL_STATUS_BAD_KEY,
                                  .reason = PEAL_PROGRAM_REASON_NONE,
                                  .hops = 0,
                                  .begun = 0}));
    bench.take_log();
  }
  [[nodiscard]] Frame put_of(uint16_t program, uint64_t iteration, uint32_t number) const {
    const peal_p2p_notice notice = {PEAL_P2P_NO_QUEUE, 0, 0, iteration};
    return asking(talk(PEAL_PACKET_PUT, kSender, handle, number,
                       peal_p2p_put{8 * uint64_t{number}, memory.key, program, 0, notice},
                       std::vector<uint8_t>(4, 0x77)));
  }
  [[nodiscard]] Frame message(uint16_t program, uint64_t iteration, uint32_t number,
                              size_t bytes = 0) const {
    return talk(PEAL_PACKET_ANNOUNCE, kSender, handle, number,
                peal_p2p_announce{5, bytes == 0 ? 3000 : bytes, 77 + number, program, 0, iteration},
                std::vector<uint8_t>(bytes, 0x66));
  }
  static peal_p2p_skip missing(uint64_t iteration) {
    return {.iteration = iteration,
            .index = 6,
            .program = kProgram,
            .status = PEAL_STATUS_BAD_KEY,
            .how = 0,
            .told = {},
            .reserved = {}};
  }
  void post_receive() {
    peal_submission entry{};
    entry.operation = PEAL_OPERATION_RECEIVE;
    entry.member = member.handle();
    entry.cookie = 1;
    entry.root = kSender;
    entry.sequence = 5;
    entry.block_bytes = 4096;
    entry.receive_key = memory.key;
    bench.submit(entry);
  }
};

TEST_F(Abandoned, APutIsAcknowledgedAndNotWritten) {
  fail();
  EXPECT_EQ(answer(put_of(kProgram, 4, 0)), "send 1>0 ACK landed=1\n");
  EXPECT_EQ(answer(put_of(kProgram, 5, 1)), "send 1>0 ACK landed=2\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_THROWN_AWAY), 2u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_WRITE_BYTES), 0u);
}

// Whose start ended well waits for nothing of it, and what is told behind it next is true.
TEST_F(Abandoned, WhatComesLateForAStartThatWasWellIsWritten) {
  fail();
  queue::Queue& own = bench.card().queues.queues[1];
  own.in_use = true;
  own.member = member.handle();
  own.origin.slot = kProgram;
  own.origin.iteration = 6;
  own.failed_before = 5;
  bench.deliver(put_of(kProgram, 4, 0));
  EXPECT_EQ(bench.port.dma_count(), 0u);
  bench.deliver(put_of(kProgram, 5, 1));
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_THROWN_AWAY), 1u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_WRITE_BYTES), 4u);
  own.origin.iteration = 5;  // it is to come
  bench.deliver(put_of(kProgram, 5, 2));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_THROWN_AWAY), 2u);
  own = {};
}

TEST_F(Abandoned, WhatIsOfAnotherTimeOrProgramIsWritten) {
  fail();
  bench.deliver(put_of(kProgram, 3, 0));
  bench.deliver(put_of(kProgram, 6, 1));
  bench.deliver(put_of(kProgram + 1, 4, 2));
  bench.deliver(put_of(0, 4, 3));
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_THROWN_AWAY), 0u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_WRITE_BYTES), 16u);
}

TEST_F(Abandoned, WhatIsBeingWrittenIsKnown) {
  const Member& own = *find_member(bench.card(), member.handle());
  bench.deliver(put_of(kProgram, 4, 0));
  EXPECT_TRUE(p2p::is_landing(bench.card(), own, kProgram, 4, 5));
  EXPECT_FALSE(p2p::is_landing(bench.card(), own, kProgram, 5, 9));
  EXPECT_FALSE(p2p::is_landing(bench.card(), own, kProgram, 0, 4));
  EXPECT_FALSE(p2p::is_landing(bench.card(), own, kProgram + 1, 4, 5));
  bench.finish_all_dma();
  EXPECT_FALSE(p2p::is_landing(bench.card(), own, kProgram, 4, 5));
}

// Who skips a packet of a put says whose: that iteration has failed there, and what is told behind
// it is told when that is known here.
TEST_F(Abandoned, APutThatIsSkippedHasFailedItsIteration) {
  bench.deliver(put_by(memory.key ^ 0x10000, 0, 0, 3));
  bench.deliver(put(1, 8, 3, {3, 0, 1, 4}));
  bench.finish_all_dma();
  bench.take_log();
  const uint64_t before = bench.counter(PEAL_COUNTER_NOTICES_REFUSED);
  const std::string sent = answer(skip(0, missing(4)));
  EXPECT_NE(sent.find("send 1>2 FAILURE program=7 from=4 to=5 rank=0"), std::string::npos) << sent;
  EXPECT_NE(sent.find("send 1>0 FAILURE program=7 from=4 to=5 rank=0"), std::string::npos) << sent;
  EXPECT_NE(sent.find("send 1>0 ACK landed=2\n"), std::string::npos) << sent;
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NOTICES_REFUSED), before + 1) << "there is no such queue";
  const queue::FailedIterations& failed = bench.card().queues.failed[0];
  EXPECT_EQ(failed.why.status, PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(failed.why.index, 6u);
  EXPECT_FALSE(failed.together);
  // Another packet of that put says no more.
  EXPECT_EQ(answer(asking(skip(2, missing(4)))), "send 1>0 ACK landed=3\n");
  EXPECT_EQ(bench.card().queues.failed_top, 1u);
}

TEST_F(Abandoned, HowItsStartsFailIsTold) {
  peal_p2p_skip body = missing(4);
  body.how = PEAL_SKIP_TOGETHER;
  bench.deliver(skip(0, body));
  EXPECT_TRUE(bench.card().queues.failed[0].together);
}

TEST_F(Abandoned, WhomItTellsHasFailedWithIt) {
  peal_p2p_skip body = missing(4);
  body.told[0] = kProgram + 1;
  body.told[1] = kProgram + 2;
  bench.deliver(skip(0, body));
  const queue::QueuePool& pool = bench.card().queues;
  ASSERT_EQ(pool.failed_top, 3u);
  for (uint16_t i = 0; i < 3; ++i) EXPECT_EQ(pool.failed[i].name, kName + i);
}

// Until there is a place for that, its number is not taken.
TEST_F(Abandoned, ASkipThatCannotBeNotedComesAgain) {
  queue::QueuePool& pool = bench.card().queues;
  for (; pool.failed_top < queue::kFailedOfContext; ++pool.failed_top) {
    queue::FailedIterations& each = pool.failed[pool.failed_top];
    each.in_use = true;
    each.name = 100;
    each.member = member.handle();
    each.to = 1;
    each.untold = 1;
    each.next_ns = kNever;
  }
  EXPECT_EQ(change(skip(0, missing(4))), "+1 received, +1 no_failure");
  EXPECT_EQ(answer(asking(put(1, 0, 3))), "send 1>0 ACK landed=0 behind=0x1\n");
  pool.failed[0].untold = 0;
  EXPECT_NE(answer(skip(0, missing(4))).find("send 1>0 ACK landed=2\n"), std::string::npos);
}

TEST_F(Abandoned, ASkipThatCannotBeIsRefused) {
  using Spoil = void (*)(peal_p2p_skip&);
  for (const Spoil spoil : {
           Spoil{[](auto& body) { body.iteration = ~uint64_t{0}; }},
           Spoil{[](auto& body) { body.program = 0; }},
           Spoil{[](auto& body) { body.status = PEAL_STATUS_OK; }},
           Spoil{[](auto& body) { body.status = PEAL_STATUS_COUNT; }},
           Spoil{[](auto& body) { body.how = 4; }},
           Spoil{[](auto& body) { body.reserved[0] = 1; }},
           Spoil{[](auto& body) { body.reserved[2] = 1; }},
       }) {
    peal_p2p_skip body = missing(4);
    spoil(body);
    EXPECT_EQ(change(skip(0, body)), "+1 drop_p2p_field");
  }
  for (const peal_p2p_skip& body :
       {peal_p2p_skip{1, 0, 0, 0, 0, {}, {}}, peal_p2p_skip{0, 1, 0, 0, 0, {}, {}},
        peal_p2p_skip{0, 0, 0, 1, 0, {}, {}}, peal_p2p_skip{0, 0, 0, 0, 1, {}, {}},
        peal_p2p_skip{0, 0, 0, 0, 0, {0, 0, 0, 1}, {}}}) {
    EXPECT_EQ(change(skip(0, body)), "+1 drop_p2p_field") << "it is of no program";
  }
  EXPECT_EQ(bench.card().queues.failed_top, 0u);
}

// Its sender hears that it is over, and no receive takes it.
TEST_F(Abandoned, AMessageIsOverForItsSender) {
  fail();
  EXPECT_NE(answer(message(kProgram, 4, 0)).find("send 1>0 DONE seq=0 landed=1 OK"),
            std::string::npos);
  EXPECT_NE(answer(message(kProgram, 5, 1, 100)).find("send 1>0 DONE seq=1 landed=2 OK"),
            std::string::npos);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_THROWN_AWAY), 2u);
  EXPECT_EQ(bench.card().packets_held, 0u);
  post_receive();
  EXPECT_EQ(answer(message(0, 0, 2)), "send 1>0 READY seq=2 landed=3 ask\n");
}

TEST_F(Abandoned, MessagesThatCameBeforeAreThrownAwayWhereTheyLie) {
  bench.deliver(message(kProgram, 3, 0));
  bench.deliver(message(kProgram, 4, 1));
  bench.deliver(message(kProgram, 5, 2, 100));
  bench.take_log();
  fail();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_THROWN_AWAY), 2u);
  EXPECT_EQ(bench.card().packets_held, 0u);
  bench.take_log();
  post_receive();
  EXPECT_NE(bench.take_wire_log().find("READY"), std::string::npos) << "the first is not of it";
  post_receive();
  EXPECT_EQ(bench.take_wire_log().find("READY"), std::string::npos);
}

// Without a record for the answer it is thrown away later, and matches nothing meanwhile.
TEST_F(Abandoned, WhatCannotBeAnsweredNowIsLater) {
  bench.deliver(message(kProgram, 4, 0));
  bench.card().p2p.services_used += p2p::kServices;
  bench.card().p2p.requests_used += p2p::kServices;
  fail();
  EXPECT_EQ(change(message(kProgram, 5, 1)), "+1 no_p2p_request, +1 drop_no_p2p_request");
  post_receive();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_THROWN_AWAY), 0u);
  bench.card().p2p.services_used -= p2p::kServices;
  bench.card().p2p.requests_used -= p2p::kServices;
  bench.take_log();
  bench.advance(20'000);
  EXPECT_NE(bench.take_wire_log().find("send 1>0 DONE seq=0"), std::string::npos);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_THROWN_AWAY), 1u);
}

}  // namespace
}  // namespace peal::test
