// SPDX-License-Identifier: BSD-2-Clause
// What ends is settled at the end of the entry point, one thing at a time: ended operations before
// parked commands, in the order in which they ended.
#include "firmware/operation/settle.h"

#include <set>

#include "tests/unit/verdict_fixture.h"

namespace peal::test {
namespace {

using Settle = Verdict;

// One packet proves that recycling is over; everything that was parked starts in that turn, each
// command after the completion of what ended before it.
TEST_F(Settle, WhatWasParkedStartsInOrder) {
  const uint64_t limit = CONFIG_CHANNELS;
  for (uint64_t sequence = 0; sequence < limit; sequence++) post_relay(sequence);
  post_barrier(limit);
  post_own(limit + 1);
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) deliver_relay(sequence);
  bench.take_log();
  bench.deliver(wire.recycle_all(0, 0, 0));
  const std::string first = std::to_string(limit);
  EXPECT_EQ(bench.take_log(),
            "send 1>3 SIGNAL recycle epoch=0 all root=0 hop=1\nsend 1>2 SIGNAL barrier seq=" +
                first + " round=0\ndma_read send+0 8\n");
  bench.finish_all_dma();
}

// A death ends what runs, in the order of places, and what is parked after the first of them, as
// each ends: nobody hears of one command twice.
TEST_F(Settle, EverythingOfADeathEndsOnce) {
  const uint64_t posted = CONFIG_CHANNELS + 3;
  for (uint64_t sequence = 0; sequence < posted; sequence++) post_barrier(sequence);
  bench.take_log();
  bench.deliver(wire.death(2, 3));
  std::set<uint64_t> cookies;
  for (const auto& [context, entry] : bench.port.take_completions()) {
    EXPECT_EQ(entry.status, PEAL_STATUS_PEER_DEAD);
    EXPECT_EQ(entry.failed_rank, 3u);
    EXPECT_TRUE(cookies.insert(entry.cookie).second) << entry.cookie;
  }
  EXPECT_EQ(cookies.size(), posted);
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 0u);
}

// The packet that is being handled may belong to a group that ends before it is looked up.
TEST_F(Settle, APacketMayFindItsGroupGone) {
  run_own(0, 2 * kEpoch);                               // recycling is entered, and not over
  bench.submit(destroy_entry(member, 2 * kEpoch, 77));  // parked behind the recycling
  bench.take_log();
  const std::string last = std::to_string(2 * kEpoch);
  // A signal of the destroy proves that recycling is over; the destroy starts, and hears it.
  bench.deliver(wire.signal(behind(0), kDestroyShape, static_cast<uint32_t>(2 * kEpoch), 0));
  bench.deliver(wire.signal(behind(1), kDestroyShape, static_cast<uint32_t>(2 * kEpoch), 1));
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL destroy seq=" + last +
                                  " round=0\n"
                                  "send 1>3 SIGNAL destroy seq=" +
                                  last +
                                  " round=1\n"
                                  "complete ctx0 cookie=77 OK\n"
                                  "send 1>0 FAREWELL\n"
                                  "send 1>3 FAREWELL\n");
  const auto before = bench.counters();
  bench.deliver(wire.signal(behind(1), kDestroyShape, static_cast<uint32_t>(2 * kEpoch), 1));
  EXPECT_EQ(bench.counter_changes(before), "+1 drop_closed");
}

// What waited for recycling has started before the packet that proves its end is taken: its block
// goes where the user wants it.
TEST_F(Settle, WhatAPacketSetsFreeIsThereToTakeIt) {
  const uint64_t parked = CONFIG_CHANNELS;
  for (uint64_t sequence = 0; sequence < parked; sequence++) {
    post_relay(sequence);
    deliver_relay(sequence);
  }
  post_broadcast(parked, 64);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_COMMANDS_PARKED), 1u);
  const uint64_t early = bench.counter(PEAL_COUNTER_EARLY_DATA);
  bench.take_log();
  bench.deliver(block_of(0, parked, 64));
  EXPECT_NE(bench.take_log(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), early);
  bench.finish_all_dma();
}

// All memberships of a process that is gone end in the same turn.
TEST_F(Settle, EveryMemberOfAClosedContextGoes) {
  bench.join(4, 1, kGroupId + 1);
  bench.join(4, 1, kGroupId + 2);
  card_close_context(bench.card(), bench.context(), bench.now);
  EXPECT_TRUE(card_context_quiet(bench.card(), bench.context()));
}

}  // namespace
}  // namespace peal::test
