// SPDX-License-Identifier: BSD-2-Clause
// Recursive doubling (N a power of two) and Bruck's order (other N) as one rank sees them: step by
// step, early, repeated, malformed, lost.
#include "firmware/collective/allgather/doubling.h"

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr size_t kBlock = 64;

class DoublingBase : public GroupTest {
 protected:
  using GroupTest::GroupTest;
  // What the partner of step k sends: `blocks` blocks from `first` on, going round.
  Frame step(uint32_t k, uint32_t first, uint32_t blocks, uint64_t sequence = 0,
             size_t block = kBlock) {
    std::vector<uint8_t> payload;
    for (uint32_t i = 0; i < blocks; i++) {
      const auto one = pattern_block(sequence, (first + i) % ranks, 0, block);
      payload.insert(payload.end(), one.begin(), one.end());
    }
    Frame frame =
        wire.doubling(doubling_shape(block), static_cast<uint32_t>(sequence), 0, k, 0, payload);
    frame.header.origin = frame.header.sender;
    seal(frame);
    return frame;
  }
  std::string change(const Frame& frame) {
    const auto before = bench.counters();
    bench.deliver(frame);
    return bench.counter_changes(before);
  }
  OperationShape shape = doubling_shape(kBlock);
};

// Rank 1 of 4: step 0 with 0, step 1 with 3.
class Doubling : public DoublingBase {
 protected:
  Frame first() { return step(0, 0, 1); }
  Frame second() { return step(1, 2, 2); }
};

TEST_F(Doubling, InOrder) {
  post_doubling(0, kBlock);
  EXPECT_EQ(bench.take_log(), "dma_read send+0 64\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=64\n");
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, pattern_block(0, 1, 0, kBlock));
  bench.deliver(first());
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128\n");
  const auto expected = pattern_result(0, ranks, kBlock);
  EXPECT_EQ(bench.port.take_sent()[0].payload,
            std::vector<uint8_t>(expected.begin(), expected.begin() + 2 * kBlock));
  bench.deliver(second());
  EXPECT_EQ(bench.take_wire_log().find("complete"), std::string::npos);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(Doubling, LaterStepFirst) {
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(second());
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.deliver(first());
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128\n"
            "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(Doubling, EverythingBeforeThePost) {
  bench.deliver(second());
  bench.deliver(first());
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 2u);
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=64\n"
            "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128\n"
            "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(Doubling, DuplicateChangesNothing) {
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  bench.deliver(first());
  bench.finish_all_dma();
  bench.take_log();
  Frame again = first();
  std::fill(again.payload.begin(), again.payload.end(), uint8_t{0x99});
  seal(again);
  EXPECT_NE(change(again).find("+1 duplicate"), std::string::npos);
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(second());
  bench.finish_all_dma();
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
  EXPECT_NE(change(again).find("+1 duplicate"), std::string::npos);
}

struct BadField {
  const char* name;
  void (*spoil)(peal_wire_header& header);
  const char* counted;
};

TEST_F(Doubling, FieldsThatCannotBe) {
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  using H = peal_wire_header;
  const BadField kBad[] = {
      {"step", [](H& h) { h.hop = 2; }, "+1 drop_hop"},
      {"step 255", [](H& h) { h.hop = 255; }, "+1 drop_hop"},
      {"step of another partner", [](H& h) { h.hop = 1; }, "+1 drop_sender"},
      {"piece", [](H& h) { h.piece = 1; }, "+1 drop_piece"},
      {"fragment", [](H& h) { h.fragment = 1; }, "+1 drop_fragment"},
      {"fragment all ones", [](H& h) { h.fragment = 0xff; }, "+1 drop_fragment"},
      {"origin itself", [](H& h) { h.origin = 1; }, "+1 drop_origin"},
      {"origin beyond", [](H& h) { h.origin = 4; }, "+1 drop_origin"},
      {"sender",
       [](H& h) {
         h.sender = h.origin = 2;
         h.identity = identity_of(2);
       },
       "+1 drop_sender"},
      {"sequence", [](H& h) { h.sequence = CONFIG_CHANNELS; }, "+1 drop_future"},
      {"signature", [](H& h) { h.signature ^= 0x80000000u; }, "+1 drop_signature"},
  };
  for (const BadField& bad : kBad) {
    Frame frame = first();
    bad.spoil(frame.header);
    seal(frame);
    EXPECT_EQ(change(frame), bad.counted) << bad.name;
    EXPECT_EQ(bench.take_log(), "") << bad.name;
  }
  Frame shorter = first();
  shorter.payload.pop_back();
  seal(shorter);
  EXPECT_EQ(change(shorter), "+1 drop_length");
  bench.deliver(first());
  bench.deliver(second());
  bench.finish_all_dma();
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(Doubling, MissingStepIsAskedOfItsPartner) {
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  bench.deliver(second());
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK seq=0 piece=0 step=0 missing=0x1\n");
}

TEST_F(Doubling, NacksAreRepairedOrAnsweredNotYet) {
  const auto answer = [&](uint32_t from, uint32_t k) {
    bench.take_log();
    bench.deliver(wire.nack(from, shape, 0, 0, 1, k));
    bench.finish_all_dma();
    return bench.take_wire_log();
  };
  EXPECT_EQ(answer(0, 0), "send 1>0 NOT_YET seq=0 piece=0 step=0 late\n");
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(answer(0, 0), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=64 repair\n");
  EXPECT_EQ(answer(3, 1), "send 1>3 NOT_YET seq=0 piece=0 step=1\n");
  bench.deliver(first());
  bench.deliver(second());
  bench.finish_all_dma();
  // The user takes both buffers back; the repairs are right all the same.
  scribble_send();
  auto& result = bench.port.bytes(receive.region);
  std::fill(result.begin(), result.end(), uint8_t{0x5c});
  bench.port.take_sent();
  EXPECT_EQ(answer(0, 0), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=64 repair\n");
  EXPECT_EQ(bench.port.take_sent()[0].payload, pattern_block(0, 1, 0, kBlock));
  EXPECT_EQ(answer(3, 1), "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128 repair\n");
  const auto expected = pattern_result(0, ranks, kBlock);
  EXPECT_EQ(bench.port.take_sent()[0].payload,
            std::vector<uint8_t>(expected.begin(), expected.begin() + 2 * kBlock));
}

// What the card spends on repairs is bounded; whoever asks beyond that still hears something.
TEST_F(Doubling, BeyondTheBudgetOfRepairsTheAnswerIsNotYet) {
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  uint32_t repaired = 0;
  for (uint32_t asked = 0; asked < 1000; asked++) {
    bench.deliver(wire.nack(0, shape, 0, 0, 1, 0));
    bench.finish_all_dma();
    const std::string log = bench.take_wire_log();
    bench.port.take_sent();  // the pool is small
    if (log == "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=64 repair\n") {
      repaired++;
    } else {
      ASSERT_EQ(log, "send 1>0 NOT_YET seq=0 piece=0 step=0\n") << asked;
    }
  }
  EXPECT_EQ(repaired + bench.counter(PEAL_COUNTER_HELD_BACK_REPAIR), 1000u);
  EXPECT_GT(bench.counter(PEAL_COUNTER_HELD_BACK_REPAIR), 0u);
}

TEST_F(Doubling, NacksThatMakeNoSense) {
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  EXPECT_EQ(change(wire.nack(3, shape, 0, 0, 1, 0)), "+1 drop_sender");
  EXPECT_EQ(change(wire.nack(0, shape, 0, 0, 1, 2)), "+1 drop_hop");
  EXPECT_EQ(change(wire.nack(0, shape, 0, 1, 1, 0)), "+1 drop_piece");
  EXPECT_EQ(change(wire.nack(0, shape, 0, 0, 1, 0, 2)), "+1 drop_fragment");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Doubling, NoBytes) {
  post_doubling(0, 0);
  bench.deliver(step(0, 0, 1, 0, 0));
  bench.deliver(step(1, 2, 2, 0, 0));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(),
            "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=0\n"
            "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=0\n"
            "complete ctx0 cookie=100 OK\n");
}

TEST_F(Doubling, FaultyDmaEndsTheOperationByName) {
  bench.port.fault_dmas = {0, 1};
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  EXPECT_NE(bench.take_log().find("complete ctx0 cookie=100 DMA_FAULT"), std::string::npos);
}

// Rank 3 of 5: step k receives from 3 + 2^k and sends to 3 - 2^k; blocks of ranks 3, 4, 0, 1, 2 in
// this order.
class Bruck : public DoublingBase {
 protected:
  Bruck() : DoublingBase(5, 3) {}
};

TEST_F(Bruck, InOrder) {
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 3>2 DATA seq=0 piece=0 step=0 frag=0 len=64\n");
  bench.deliver(step(0, 4, 1));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 3>1 DATA seq=0 piece=0 step=1 frag=0 len=128\n");
  bench.deliver(step(1, 0, 2));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 3>4 DATA seq=0 piece=0 step=2 frag=0 len=64\n");
  bench.deliver(step(2, 2, 1));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

class DoublingOf1 : public DoublingBase {
 protected:
  DoublingOf1() : DoublingBase(1, 0) {}
};

TEST_F(DoublingOf1, CopiesTheBlock) {
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
  post_broadcast(1, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=101 OK\n");
  EXPECT_EQ(wrong_byte(1, kBlock), -1);
}

// Large steps are cut into fragments, each NACKed by its bit.
TEST_F(Doubling, FragmentsOfALargeStep) {
  const size_t block = CONFIG_MTU_BYTES;
  ASSERT_GE(CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW) / 4, block);
  post_doubling(0, block);
  bench.finish_all_dma();
  bench.deliver(step(0, 0, 1, 0, block));
  bench.finish_all_dma();
  EXPECT_NE(bench.take_wire_log().find("send 1>3 DATA seq=0 piece=0 step=1 frag=1"),
            std::string::npos);
  const auto fragment = [&](uint32_t number) {
    Frame frame = wire.doubling(doubling_shape(block), 0, 0, 1, number,
                                pattern_block(0, 2 + number, 0, block));
    frame.header.origin = frame.header.sender;
    seal(frame);
    return frame;
  };
  bench.deliver(fragment(1));
  bench.finish_all_dma();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_NE(bench.take_wire_log().find("send 1>3 NACK seq=0 piece=0 step=1 missing=0x1\n"),
            std::string::npos);
  bench.deliver(wire.nack(3, doubling_shape(block), 0, 0, 1, 1, 2));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>3 DATA seq=0 piece=0 step=1 frag=1 len=" + std::to_string(block) + " repair\n");
  bench.deliver(fragment(0));
  bench.finish_all_dma();
  EXPECT_NE(bench.take_wire_log().find("complete ctx0 cookie=100 OK\n"), std::string::npos);
  EXPECT_EQ(wrong_byte(0, block), -1);
}

// The second step waits for the first: asking for both would be asking twice.
TEST_F(Doubling, OneStepIsAskedForAtATime) {
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK seq=0 piece=0 step=0 missing=0x1\n");
}

// Nothing else would bring it back: the partner may already have everything but this.
TEST_F(Doubling, AStepWithoutAPacketIsTriedAgainSoon) {
  post_doubling(0, kBlock);
  bench.port.fail_allocations = {0, 1};
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=64\n");
}

TEST_F(Doubling, ASilentPartnerIsProbed) {
  post_doubling(0, kBlock);
  bench.finish_all_dma();
  bench.advance(default_timeouts().nack_ns + default_timeouts().probe_interval_ns);
  EXPECT_NE(bench.take_wire_log().find("send 1>0 PROBE\n"), std::string::npos);
}

// What goes out in a step is read from the channel, so it must lie there: the own block...
TEST_F(Doubling, TheFirstStepWaitsForTheOwnBlockInTheChannel) {
  post_doubling(0, kBlockMax);
  bench.take_log();
  bench.finish_dma();  // read, and on its way into the channel
  const std::string log = bench.take_log();
  EXPECT_NE(log.find("dma_write"), std::string::npos) << log;
  EXPECT_EQ(log.find("dma_read"), std::string::npos) << log;
}

// ... and what the partners sent.
TEST_F(Doubling, TheNextStepWaitsForTheBytesInTheChannel) {
  post_doubling(0, kBlockMax);
  bench.finish_all_dma();
  bench.take_log();
  const uint32_t piece = CONFIG_MTU_BYTES;
  Frame frame = wire.doubling(doubling_shape(kBlockMax), 0, 0, 0, 0, pattern_block(0, 0, 0, piece));
  frame.header.origin = frame.header.sender;
  seal(frame);
  bench.deliver(frame);
  ASSERT_EQ(bench.port.dma_count(), 1u);
  EXPECT_EQ(bench.take_log().find("dma_read"), std::string::npos);
  bench.finish_all_dma();
  EXPECT_NE(bench.take_log().find("send 1>3 DATA seq=0 piece=0 step=1 frag=0"), std::string::npos);
}

// Staging is given out in runs: what is free in front of another operation's part may be too short.
TEST_F(Doubling, OperationsShareNoStaging) {
  constexpr size_t kTwoUnits = CONFIG_STAGING_BYTES / 16 / 4 + 8;
  for (uint64_t sequence = 0; sequence < 2; sequence++) {
    post_doubling(sequence, kBlock);
    bench.finish_all_dma();
  }
  bench.deliver(step(0, 0, 1, 0));
  bench.deliver(step(1, 2, 2, 0));
  bench.deliver(step(0, 0, 1, 1));
  bench.finish_all_dma();
  ASSERT_EQ(bench.port.take_completions().size(), 1u);  // the first unit is free again
  post_doubling(2, kTwoUnits);
  bench.finish_all_dma();
  bench.deliver(step(1, 2, 2, 2, kTwoUnits));
  bench.deliver(step(1, 2, 2, 1));
  bench.finish_all_dma();
  ASSERT_EQ(bench.port.take_completions().size(), 1u);
  EXPECT_EQ(wrong_byte(1, kBlock), -1);
}

}  // namespace
}  // namespace peal::test
