// SPDX-License-Identifier: BSD-2-Clause
// Who sends next, and how many packets of point-to-point stand before a collective's at most.
#include "firmware/p2p/sending.h"

#include "firmware/p2p/timing.h"
#include "tests/support/log_lines.h"
#include "tests/unit/firmware/p2p/talk_fixture.h"

namespace peal::test {
namespace {

class SendingTest : public TalkTest {
 protected:
  SendingTest() {
    other = open(2, kPlayed);
    bench.deliver(talk(PEAL_PACKET_ACK, 2, other, 0, peal_p2p_ack{0}));
    bench.take_log();
  }
  void post_next(uint32_t whom, uint64_t bytes) { post_put(++cookie, whom, bytes); }
  uint32_t other;
  uint64_t cookie = 0;
};

// So a collective's read waits for no more than these, whatever point-to-point has to send.
TEST_F(SendingTest, OnlyAFewPacketsAreBeingReadAtATime) {
  for (uint32_t i = 0; i < 4; i++) {
    post_next(0, 2 * p2p::kChunkBytes);
    post_next(2, 2 * p2p::kChunkBytes);
  }
  const size_t most = std::min<size_t>(p2p::kReadsMax, 2 * (p2p::kWindow / 2));
  EXPECT_EQ(bench.port.dma_count(), most);
  bench.take_log();
  post_broadcast(0, 64);
  EXPECT_EQ(lines_that_begin(bench.take_log(), "dma_read"), "dma_read send+0 64\n");
  bench.finish_dma();
  EXPECT_LE(bench.port.dma_count(), most + 1);
  bench.finish_all_dma();
}

// Each packet of it would be good by itself, and those behind the wrap go to where memory begins.
TEST_F(SendingTest, NothingIsSentOfAPutThatWrapsAround) {
  for (const uint64_t beyond : {1, 0}) {
    peal_submission entry{};
    entry.operation = PEAL_OPERATION_PUT;
    entry.member = member.handle();
    entry.cookie = ++cookie;
    entry.root = 2;
    entry.block_bytes = 2 * p2p::kChunkBytes;
    entry.send_key = send.key;
    entry.receive_key = 77;
    entry.receive_offset = ~uint64_t{0} - entry.block_bytes + beyond;
    bench.submit(entry);
    EXPECT_EQ(bench.port.dma_count(), beyond != 0 ? 0u : 2u);
  }
  bench.finish_all_dma();
}

// Each packet has to wait for its turn nearly as long as an answer may take: none is sent again
// before the last has been waited for.
TEST_F(SendingTest, PatienceBeginsWithTheLastPacketThatHasLeft) {
  const auto patience = [&] {
    return p2p::answer_time(bench.card(), bench.card().p2p.connections[other & 0xffff]);
  };
  post_next(2, 3 * p2p::kChunkBytes);
  ASSERT_EQ(bench.port.dma_count(), 3u);
  for (int packet = 0; packet < 3; packet++) {
    bench.advance(patience() / 10 * 9);
    bench.finish_dma();
  }
  bench.advance(patience() / 10 * 9);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_P2P_TIMEOUTS), 0u);
  EXPECT_EQ(bench.port.take_sent().size(), 3u);
  bench.advance(patience());
  EXPECT_EQ(bench.counter(PEAL_COUNTER_P2P_TIMEOUTS), 1u);
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_P2P_AGAIN), 1u);
}

TEST_F(SendingTest, ConnectionsTakeTurns) {
  bench.port.fail_allocations = {0, kAlways};  // until both have something to send
  post_next(0, 4 * p2p::kChunkBytes);
  post_next(2, 4 * p2p::kChunkBytes);
  EXPECT_EQ(bench.port.dma_count(), 0u);
  bench.port.fail_allocations = {};
  bench.advance(20'000);
  bench.finish_all_dma();
  std::string order;
  for (const Frame& frame : bench.port.take_sent()) {
    if (frame.header.type != PEAL_PACKET_PUT) continue;
    order += std::to_string(frame.header.destination[PEAL_MAC_BYTES - 1]);
  }
  // (The first had begun, and found nothing: it went behind the other.)
  EXPECT_EQ(order, "20202020");
}

}  // namespace
}  // namespace peal::test
