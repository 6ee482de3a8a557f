// SPDX-License-Identifier: BSD-2-Clause
// Several transmit engines: each has connections of its own, which packets name, and what goes by
// one neither waits for nor gets into another's. (For cards that have several.)
#include "firmware/group/member.h"
#include "firmware/p2p/p2p.h"
#include "tests/unit/firmware/p2p/p2p_fixture.h"
#include "tests/unit/firmware/p2p/talk_fixture.h"

namespace peal::test {
namespace {

constexpr size_t kChunk = p2p::kChunkBytes;
static_assert(CONFIG_TRANSMIT_ENGINES > 1);

Frame by_engine(uint8_t engine, Frame frame) {
  frame.header.edge = engine;
  seal(frame);
  return frame;
}

class Engines : public PointToPoint {
 protected:
  Member& member_of(uint32_t rank) {
    return *find_member(cluster.bench(rank).card(), cluster.member(rank).handle());
  }
  static p2p::Ticket ticket(uint64_t cookie) { return {p2p::Owner::kHost, 0, 0, cookie}; }
  // As a queue of that engine's asks for it, for a host that hears of it.
  uint64_t put_by(uint8_t engine, uint32_t rank, uint32_t other, uint64_t bytes, uint64_t there) {
    CardBench& bench = cluster.bench(rank);
    const uint64_t cookie = ++cookies;
    bench.card().contexts[bench.context()].outstanding++;
    peal_descriptor what = {};
    what.queue = PEAL_NO_QUEUE;
    what.rank = other;
    what.offset = what.remote_offset = there;
    what.bytes = bytes;
    what.remote_key = to[other].key;
    p2p::Origin origin = {};
    origin.engine = engine;
    EXPECT_TRUE(p2p::start_put(
        bench.card(), member_of(rank),
        {.what = what, .origin = origin, .region = from[rank].region, .index = 0}, ticket(cookie)));
    p2p::advance(bench.card());
    return cookie;
  }
  uint64_t send_by(uint8_t engine, uint32_t rank, uint32_t other, uint64_t tag, uint64_t bytes) {
    CardBench& bench = cluster.bench(rank);
    const uint64_t cookie = ++cookies;
    bench.card().contexts[bench.context()].outstanding++;
    EXPECT_TRUE(p2p::start_send(
        bench.card(), member_of(rank),
        {.to = other, .from = {from[rank].region, 0}, .bytes = bytes, .tag = tag, .engine = engine},
        ticket(cookie)));
    p2p::advance(bench.card());
    return cookie;
  }
};

TEST_F(Engines, EachHasItsOwnConnectionAndItsPacketsLeaveByIt) {
  const uint64_t first = put_by(0, 0, 1, 100, 0);
  const uint64_t second = put_by(1, 0, 1, 100, 200);
  ASSERT_TRUE(run_until_ended(0, first));
  ASSERT_TRUE(run_until_ended(0, second));
  EXPECT_TRUE(same(0, 0, 1, 0, 100));
  EXPECT_TRUE(same(0, 200, 1, 200, 100));
  EXPECT_EQ(cluster.bench(0).counter(PEAL_COUNTER_CONNECTIONS_OPENED), 2u);
  size_t by_second = 0;
  for (const Frame& frame : cluster.trace()) by_second += frame.header.edge == 1 ? 1 : 0;
  EXPECT_EQ(2 * by_second, cluster.trace().size()) << "both have done the same";
  expect_quiet();
}

// Everything that engine 0 sends is lost; engine 1 does not notice.
TEST_F(Engines, OneDoesNotWaitForAnother) {
  bool lossy = true;
  cluster.fate = [&](const Frame& frame) { return lossy && frame.header.edge == 0 ? 0u : 1u; };
  const uint64_t stuck = put_by(0, 0, 1, 3 * kChunk, 0);
  const uint64_t passes = put_by(1, 0, 1, 3 * kChunk, 4 * kChunk);
  ASSERT_TRUE(run_until_ended(0, passes));
  EXPECT_EQ(ended(0, stuck), "");
  EXPECT_TRUE(same(0, 4 * kChunk, 1, 4 * kChunk, 3 * kChunk));
  EXPECT_EQ(untouched(1, 0, 3 * kChunk), 3 * kChunk);
  lossy = false;
  ASSERT_TRUE(run_until_ended(0, stuck));
  EXPECT_TRUE(same(0, 0, 1, 0, 3 * kChunk));
  expect_quiet();
}

// A receive takes a message by whatever engine it comes, also one that has come before; its answers
// go back by the same.
TEST_F(Engines, AReceiveTakesAMessageOfAnyEngine) {
  for (const uint64_t bytes : {uint64_t{50}, uint64_t{5 * kChunk}}) {
    std::fill(bytes_to(1).begin(), bytes_to(1).end(), uint8_t{0xee});
    const uint64_t early = send_by(1, 0, 1, 7, bytes);
    cluster.settle();
    const uint64_t received = receive(1, 0, 7, bytes);
    ASSERT_TRUE(run_until_ended(1, received)) << bytes;
    ASSERT_TRUE(run_until_ended(0, early)) << bytes;
    EXPECT_EQ(ended(1, received), "OK");
    EXPECT_TRUE(same(0, 0, 1, 0, bytes));
    const uint64_t posted = receive(1, 0, 8, bytes, 8 * kChunk);
    const uint64_t sent = send_by(1, 0, 1, 8, bytes);
    ASSERT_TRUE(run_until_ended(1, posted)) << bytes;
    ASSERT_TRUE(run_until_ended(0, sent)) << bytes;
    EXPECT_TRUE(same(0, 0, 1, 8 * kChunk, bytes));
  }
  expect_quiet();
}

class EngineTalk : public TalkTest {};

TEST_F(EngineTalk, AnOpenIsAcceptedByTheEngineThatItNames) {
  const Frame open_by_1 =
      by_engine(1, talk(PEAL_PACKET_OPEN, kSender, 0, 0, peal_p2p_open{kPlayed ^ 1, 0}));
  EXPECT_EQ(answer(open_by_1), "send 1>0 ACCEPT by engine 1\n");
  EXPECT_EQ(answer(open_by_1), "send 1>0 ACCEPT by engine 1\n") << "again, of the same life";
  EXPECT_EQ(bench.counter(PEAL_COUNTER_CONNECTIONS_OPENED), 2u);
}

TEST_F(EngineTalk, AConnectionOfAnotherEngineIsNotMeant) {
  EXPECT_EQ(change(by_engine(1, put(0, 0, 3))), "+1 drop_connection");
  EXPECT_EQ(change(by_engine(CONFIG_TRANSMIT_ENGINES, put(0, 0, 3))), "+1 drop_p2p_field");
  EXPECT_EQ(change(put(0, 0, 3)), "+1 received, +3 dma_write_bytes, +1 dma_operations");
}

}  // namespace
}  // namespace peal::test
