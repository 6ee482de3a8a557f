// SPDX-License-Identifier: BSD-2-Clause
// Exchanges in steps as one rank sees them, whichever plan they follow: step by step, early,
// repeated, malformed, lost.
#include "firmware/collective/stepping.h"

#include "tests/unit/bad_fields.h"
#include "tests/unit/firmware/collective/alltoall/bruck_fixture.h"

namespace peal::test {
namespace {

struct Exchange {
  const char* name;
  bool alltoall;
  uint32_t first_from;   // who sends rank 1 of 4 its step 0; all else is between it and 0, and 3
  uint32_t first_bytes;  // of step 0
};
void PrintTo(const Exchange& exchange, std::ostream* out) { *out << exchange.name; }

class Stepping : public BruckTest, public ::testing::WithParamInterface<Exchange> {
 protected:
  void post(size_t block = kSmall) {
    if (GetParam().alltoall) {
      BruckTest::post(0, block);
    } else {
      post_doubling(0, block);
    }
  }
  [[nodiscard]] OperationShape shape() const {
    return GetParam().alltoall ? bruck_shape(kSmall) : doubling_shape(kSmall);
  }
  // What a rank sends in a step.
  [[nodiscard]] std::vector<uint8_t> sent_by(uint32_t sender, uint32_t k,
                                             size_t block = kSmall) const {
    if (GetParam().alltoall) return lot(sender, k, 0, 0, block);
    std::vector<uint8_t> payload;
    for (uint32_t i = 0; i < 1u << k; i++) {
      const auto one = pattern_block(0, (sender & ~((1u << k) - 1)) + i, 0, block);
      payload.insert(payload.end(), one.begin(), one.end());
    }
    return payload;
  }
  [[nodiscard]] Frame step(uint32_t k, size_t block = kSmall) const {
    if (GetParam().alltoall) return BruckTest::step(k, 0, block);
    return wire.doubling(doubling_shape(block), 0, 0, k, 0, sent_by(rank ^ 1u << k, k, block));
  }
  void deliver_all(size_t block = kSmall) {
    bench.deliver(step(0, block));
    bench.finish_all_dma();
    bench.deliver(step(1, block));
    bench.finish_all_dma();
  }
  [[nodiscard]] long wrong_byte() {
    return GetParam().alltoall ? BruckTest::wrong_byte(0, kSmall)
                               : GroupTest::wrong_byte(0, kSmall);
  }
  // The one packet of a step, as the log has it.
  [[nodiscard]] static std::string data(uint32_t k, const std::string& more = "") {
    const uint32_t bytes = k == 0 ? GetParam().first_bytes : 2 * kSmall;
    return "send 1>" + std::string(k == 0 ? "0" : "3") +
           " DATA seq=0 piece=0 step=" + std::to_string(k) +
           " frag=0 len=" + std::to_string(bytes) + more + "\n";
  }
  [[nodiscard]] static std::string first_partner() {
    return "send 1>" + std::to_string(GetParam().first_from);
  }
  std::string answer(uint32_t from, uint32_t k) {
    bench.take_log();
    bench.port.take_sent();
    bench.deliver(wire.nack(from, shape(), 0, 0, 1, k));
    bench.finish_all_dma();
    return bench.take_wire_log();
  }
};

INSTANTIATE_TEST_SUITE_P(Of4, Stepping,
                         ::testing::Values(Exchange{"Doubling", false, 0, 64},
                                           Exchange{"Bruck", true, 2, 128}),
                         [](const auto& exchange) { return std::string(exchange.param.name); });

TEST_P(Stepping, LaterStepFirst) {
  post();
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(step(1));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(step(0));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), data(1) + "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(), -1);
}

TEST_P(Stepping, EverythingBeforeThePost) {
  bench.deliver(step(1));
  bench.deliver(step(0));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 2u);
  post();
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), data(0) + data(1) + "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(), -1);
}

TEST_P(Stepping, DuplicateChangesNothing) {
  post();
  bench.finish_all_dma();
  bench.deliver(step(0));
  bench.finish_all_dma();
  bench.take_log();
  Frame again = step(0);
  std::fill(again.payload.begin(), again.payload.end(), uint8_t{0x99});
  seal(again);
  EXPECT_EQ(change(again), "+1 duplicate");
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(step(1));
  bench.finish_all_dma();
  EXPECT_EQ(wrong_byte(), -1);
  EXPECT_EQ(change(again), "+1 duplicate");
}

TEST_P(Stepping, FieldsThatCannotBe) {
  post();
  bench.finish_all_dma();
  bench.take_log();
  using H = peal_wire_header;
  expect_dropped(bench, step(0), fields_that_cannot_be());
  const auto partner = static_cast<uint16_t>(GetParam().first_from);
  const auto stranger = static_cast<uint16_t>(2 - partner);
  const std::vector<BadField> kBad = {
      {"step", [](H& h) { h.hop = 2; }, "+1 drop_hop"},
      {"step of another partner", [](H& h) { h.hop = 1; }, "+1 drop_sender"},
      {"fragment", [](H& h) { h.fragment = 1; }, "+1 drop_fragment"},
      {"origin itself", [](H& h) { h.origin = 1; }, "+1 drop_origin"},
      {"origin beyond", [](H& h) { h.origin = 4; }, "+1 drop_origin"},
      {"origin not the sender", [](H& h) { h.origin = 3; }, "+1 drop_sender"},
      {"sender not the origin", from_rank(stranger), "+1 drop_sender"},
      {"sender",
       [stranger](H& h) {
         from_rank(stranger)(h);
         h.origin = stranger;
       },
       "+1 drop_sender"},
      {"operation", [](H& h) { h.operation = PEAL_OPERATION_BARRIER; }, "+1 drop_type"},
      {"type", [](H& h) { h.type = PEAL_PACKET_SIGNAL; }, "+1 drop_type"},
  };
  expect_dropped(bench, step(0), kBad);
  Frame shorter = step(0);
  shorter.payload.pop_back();
  seal(shorter);
  EXPECT_EQ(change(shorter), "+1 drop_length");
  deliver_all();
  EXPECT_EQ(wrong_byte(), -1);
}

// The second step waits for the first: asking for both would be asking twice.
TEST_P(Stepping, OneStepIsAskedForAtATime) {
  post();
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_log(), first_partner() + " NACK seq=0 piece=0 step=0 missing=0x1\n");
  bench.deliver(step(0));
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_log(), "send 1>3 NACK seq=0 piece=0 step=1 missing=0x1\n");
}

TEST_P(Stepping, MissingStepIsAskedOfItsPartner) {
  post();
  bench.finish_all_dma();
  bench.deliver(step(1));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_log(), first_partner() + " NACK seq=0 piece=0 step=0 missing=0x1\n");
}

TEST_P(Stepping, NobodyIsAskedBeforeThePost) {
  bench.deliver(step(1));
  bench.finish_all_dma();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_log(), "");
}

TEST_P(Stepping, ASilentPartnerIsProbed) {
  post();
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns + default_timeouts().probe_interval_ns);
  std::string expected;
  for (uint64_t asked = 0; asked < bench.counter(PEAL_COUNTER_SENT_NACK); asked++)
    expected += first_partner() + " NACK seq=0 piece=0 step=0 missing=0x1\n";
  EXPECT_EQ(bench.take_log(), expected + first_partner() + " PROBE\n");
}

TEST_P(Stepping, NacksAreRepairedOrAnsweredNotYet) {
  EXPECT_EQ(answer(0, 0), "send 1>0 NOT_YET seq=0 piece=0 step=0 late\n");
  post();
  bench.finish_all_dma();
  EXPECT_EQ(answer(0, 0), data(0, " repair"));
  EXPECT_EQ(answer(3, 1), "send 1>3 NOT_YET seq=0 piece=0 step=1\n");
  deliver_all();
  // The user takes all buffers back; the repairs are right all the same.
  for (const Memory& memory : {send, receive, given, result}) {
    auto& bytes = bench.port.bytes(memory.region);
    std::fill(bytes.begin(), bytes.end(), uint8_t{0x5c});
  }
  EXPECT_EQ(answer(0, 0), data(0, " repair"));
  EXPECT_EQ(bench.port.take_sent()[0].payload, sent_by(1, 0));
  EXPECT_EQ(answer(3, 1), data(1, " repair"));
  EXPECT_EQ(bench.port.take_sent()[0].payload, sent_by(1, 1));
}

TEST_P(Stepping, NacksThatMakeNoSense) {
  post();
  bench.finish_all_dma();
  bench.take_log();
  EXPECT_EQ(change(wire.nack(3, shape(), 0, 0, 1, 0)), "+1 drop_sender");
  EXPECT_EQ(change(wire.nack(2, shape(), 0, 0, 1, 0)), "+1 drop_sender");
  EXPECT_EQ(change(wire.nack(0, shape(), 0, 0, 1, 2)), "+1 drop_hop");
  EXPECT_EQ(change(wire.nack(0, shape(), 0, 1, 1, 0)), "+1 drop_piece");
  EXPECT_EQ(change(wire.nack(0, shape(), 0, 0, 1, 0, 2)), "+1 drop_fragment");
  EXPECT_EQ(bench.take_log(), "");
}

// What the card spends on repairs is bounded; whoever asks beyond that still hears something.
TEST_P(Stepping, BeyondTheBudgetOfRepairsTheAnswerIsThatItWasSent) {
  post();
  bench.finish_all_dma();
  uint32_t repaired = 0;
  for (uint32_t asked = 0; asked < 1000; asked++) {
    const std::string log = answer(0, 0);
    if (log == data(0, " repair")) {
      repaired++;
    } else {
      ASSERT_EQ(log, "send 1>0 NOT_YET seq=0 piece=0 step=0 sent\n") << asked;
    }
  }
  EXPECT_EQ(repaired + bench.counter(PEAL_COUNTER_HELD_BACK_REPAIR), 1000u);
  EXPECT_GT(bench.counter(PEAL_COUNTER_HELD_BACK_REPAIR), 0u);
}

TEST_P(Stepping, NoBytes) {
  post(0);
  EXPECT_EQ(bench.take_log(), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=0\n");
  deliver_all(0);
  EXPECT_EQ(bench.take_log(),
            "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=0\n"
            "complete ctx0 cookie=100 OK\n");
}

// Nothing else would bring it back: the partner may already have everything but this.
TEST_P(Stepping, AStepWithoutAPacketIsTriedAgainSoon) {
  post();
  bench.port.fail_allocations = {0, 1};
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  EXPECT_EQ(bench.take_wire_log(), data(0));
}

}  // namespace
}  // namespace peal::test
