// SPDX-License-Identifier: BSD-2-Clause
// Whatever comes from the wire, the host and the pools: the card stays within its memory, its books
// balance, and when the group ends every request has ended, once.
#include <map>

#include "firmware/card_types.h"
#include "tests/support/talk_draw.h"
#include "tests/unit/card_fixture.h"
#include "tests/unit/cluster_fixture.h"

namespace peal::test {
namespace {

struct HostileRun {
  static BenchOptions options() {
    BenchOptions options;
    options.index = 1;
    options.keeps_early = true;
    return options;
  }
  explicit HostileRun(uint32_t seed)
      : bench(options()),
        memory(bench.add_memory("memory", 60000)),
        member(bench.join(4, 1)),
        random(seed),
        draw(random, member, memory) {
    bench.port.log_dma = false;
  }

  void event() {
    switch (random.below(16)) {
      case 0:
        bench.port.fail_allocations = {random.below(4), random.below(4)};
        break;
      case 1:
        bench.port.refuse_dmas = {random.below(4), random.below(4)};
        break;
      case 2:
        bench.port.fault_dmas = {random.below(6), random.below(2)};
        break;
      case 3:
        bench.advance(TimeNs{random.below(256)} * 20'000);
        break;
      case 4:
      case 5:
        if (bench.port.dma_count() > 0)
          bench.finish_dma(random.below(static_cast<uint32_t>(bench.port.dma_count())));
        break;
      case 6:
        bench.finish_all_dma();
        break;
      case 7:
      case 8:
        pending[++cookie] = true;
        bench.submit(draw.submission(cookie));
        break;
      default:
        bench.deliver(draw.packet());
        break;
    }
    reap();
  }
  void reap() {
    draw.learn(bench.port.take_sent());
    for (const auto& [context, entry] : bench.port.take_completions()) {
      (void)context;
      ended[static_cast<peal_status>(entry.status)]++;
      // (A submission that was spoilt may have lost its name.)
      if (pending.count(entry.cookie) == 0) strangers++;
      pending.erase(entry.cookie);
    }
    bench.port.take_log();
  }

  CardBench bench;
  Memory memory;
  Membership member;
  Random random;
  TalkDraw<Random> draw;
  std::map<uint64_t, bool> pending;
  std::map<peal_status, uint32_t> ended;
  uint64_t cookie = 0;
  uint32_t strangers = 0;
};

class Hostile : public ::testing::TestWithParam<uint32_t> {};

TEST_P(Hostile, TheBooksBalance) {
  HostileRun run(GetParam());
  auto& [bench, memory, member, random, draw, pending, ended, cookie, strangers] = run;
  for (uint32_t i = 0; i < 600; i++) run.event();
  bench.port.fail_allocations = bench.port.refuse_dmas = bench.port.fault_dmas = {};
  (void)card_abandon_group(bench.card(), bench.context(), member.handle(), bench.now);
  bench.finish_all_dma();
  bench.advance(1'000'000);
  bench.finish_all_dma();
  run.reap();
  const p2p::State& state = bench.card().p2p;
  EXPECT_EQ(state.connections_used, 0u);
  EXPECT_EQ(state.requests_used, 0u);
  EXPECT_EQ(state.services_used, 0u);
  EXPECT_EQ(state.fences, 0u);
  EXPECT_EQ(state.tokens_used, 0u);
  EXPECT_EQ(state.waiter_count, 0u);
  EXPECT_EQ(state.reads, 0u);
  EXPECT_LE(pending.size(), strangers) << "some request has not ended";
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 0u);
  RegionId region = 0;
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), memory.key, &region),
            PEAL_STATUS_OK)
      << "something still holds the key";
  EXPECT_EQ(bench.problems(), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, Hostile, testing::Range(1u, 151u));

// A corner that no seed reaches is not tested.
TEST(HostileReaches, EveryCorner) {
  std::vector<uint64_t> sum(PEAL_COUNTER_COUNT);
  std::map<peal_status, uint32_t> ended;
  for (uint32_t seed = 1; seed < 60; seed++) {
    HostileRun run(seed);
    for (uint32_t i = 0; i < 600; i++) run.event();
    for (uint32_t i = 0; i < PEAL_COUNTER_COUNT; i++) sum[i] += run.bench.counters()[i];
    for (const auto& [status, count] : run.ended) ended[status] += count;
    (void)card_abandon_group(run.bench.card(), run.bench.context(), run.member.handle(),
                             run.bench.now);
    run.bench.finish_all_dma();
  }
  for (const peal_counter counter :
       {PEAL_COUNTER_SENT_P2P, PEAL_COUNTER_SENT_P2P_AGAIN, PEAL_COUNTER_P2P_TIMEOUTS,
        PEAL_COUNTER_P2P_REFUSED, PEAL_COUNTER_P2P_UNEXPECTED, PEAL_COUNTER_CONNECTIONS_CLOSED,
        PEAL_COUNTER_DROP_CONNECTION, PEAL_COUNTER_DROP_P2P_ORDER, PEAL_COUNTER_DROP_P2P_FIELD,
        PEAL_COUNTER_DUPLICATE, PEAL_COUNTER_NO_PACKET, PEAL_COUNTER_DMA_FAULT,
        PEAL_COUNTER_DROP_LENGTH, PEAL_COUNTER_DROP_STRANGER}) {
    EXPECT_GT(sum[counter], 0u) << card_counter_name(counter);
  }
  for (const peal_status status :
       {PEAL_STATUS_OK, PEAL_STATUS_TRUNCATED, PEAL_STATUS_DMA_FAULT, PEAL_STATUS_BAD_KEY,
        PEAL_STATUS_BAD_BOUNDS, PEAL_STATUS_BAD_RANK, PEAL_STATUS_BAD_FLAGS}) {
    EXPECT_GT(ended[status], 0u) << status_text(status);
  }
}

}  // namespace
}  // namespace peal::test
