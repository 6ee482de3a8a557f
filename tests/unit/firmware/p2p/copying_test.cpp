// SPDX-License-Identifier: BSD-2-Clause
// Puts of a rank to itself.
#include "firmware/p2p/copying.h"

#include <numeric>

#include "firmware/group/member.h"
#include "firmware/p2p/timing.h"
#include "tests/support/log_lines.h"
#include "tests/unit/firmware/p2p/talk_fixture.h"

namespace peal::test {
namespace {

class Copying : public TalkTest {
 protected:
  static constexpr uint32_t kOwn = 1;

  Copying() : target(bench.add_memory("target", 4 * p2p::kChunkBytes)) {
    source = bench.add_memory("source", 4 * p2p::kChunkBytes);
    auto& bytes = bench.port.bytes(source.region);
    std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  }
  void copy(uint64_t cookie, uint64_t bytes, uint64_t from = 0, uint64_t to = 0) {
    peal_submission entry{};
    entry.operation = PEAL_OPERATION_PUT;
    entry.member = member.handle();
    entry.cookie = cookie;
    entry.root = kOwn;
    entry.block_bytes = bytes;
    if (bytes > 0) {
      entry.send_key = source.key;
      entry.send_offset = from;
      entry.receive_key = target.key;
      entry.receive_offset = to;
    }
    bench.submit(entry);
  }
  // The same for a program, or for nobody's; it tells queue 9, if anybody.
  void put(uint64_t cookie, uint64_t bytes, bool tells, uint16_t slot) {
    peal_descriptor what = {};
    what.rank = kOwn;
    what.queue = tells ? 9 : PEAL_NO_QUEUE;
    what.steps = tells ? 1 : 0;
    what.bytes = bytes;
    what.key = source.key;
    what.remote_key = target.key;
    p2p::Origin origin = p2p::kNoProgram;
    origin.slot = slot;
    ++bench.card().contexts[bench.context()].outstanding;
    ASSERT_TRUE(
        p2p::start_put(bench.card(), *find_member(bench.card(), member.handle()),
                       {.what = what, .origin = origin, .region = source.region, .index = 0},
                       {p2p::Owner::kHost, 0, 0, cookie}));
  }
  [[nodiscard]] bool same(uint64_t bytes, uint64_t from = 0, uint64_t to = 0) {
    return std::memcmp(bench.port.bytes(source.region).data() + from,
                       bench.port.bytes(target.region).data() + to, bytes) == 0;
  }

  Memory target;
  Memory source;
};

TEST_F(Copying, NoPacketIsSent) {
  copy(7, 100, 5, 30);
  EXPECT_EQ(bench.take_log(), "dma_read source+5 100\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "dma_write target+30 100\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=7 OK\n");
  EXPECT_TRUE(same(100, 5, 30));
}

TEST_F(Copying, ALongOneGoesByTwoChunksAtATime) {
  copy(7, 3 * p2p::kChunkBytes + 9);
  size_t most = 0;
  while (bench.port.dma_count() > 0) {
    most = std::max(most, bench.port.dma_count());
    bench.finish_dma(bench.port.dma_count() - 1);  // in whatever order
  }
  EXPECT_EQ(most, 2u);
  EXPECT_TRUE(same(3 * p2p::kChunkBytes + 9));
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"), "complete ctx0 cookie=7 OK\n");
}

// Whoever is told of one knows that those before it are in memory.
TEST_F(Copying, OneComesAfterTheOther) {
  copy(1, 8);
  copy(2, 8, 8, 8);
  copy(3, 0);
  EXPECT_EQ(bench.take_log(), "dma_read source+0 8\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(),
            "dma_write target+0 8\n"
            "dma_read source+8 8\n"
            "complete ctx0 cookie=1 OK\n"
            "dma_write target+8 8\n"
            "complete ctx0 cookie=2 OK\n"
            "complete ctx0 cookie=3 OK\n");
}

TEST_F(Copying, TheQueueIsToldWhenTheBytesAreThere) {
  put(7, 8, true, 0);
  bench.finish_dma();
  const auto before = bench.counters();
  bench.finish_dma();
  EXPECT_NE(bench.counter_changes(before).find("+1 notices_refused"), std::string::npos)
      << "there is no queue 9";
}

TEST_F(Copying, MemoryIsLookedAtAsItsOwnerDoes) {
  copy(1, 8, 0, 4 * p2p::kChunkBytes - 7);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=1 BAD_BOUNDS rank=1\n");
  target = send;  // which may be read only
  copy(2, 8);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=2 BAD_ACCESS rank=1\n");
  target.key ^= 0x5a5a0000;
  copy(3, 8);
  copy(4, 0);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=3 BAD_KEY rank=1\n"
            "complete ctx0 cookie=4 OK\n")
      << "the next one goes on";
}

// Whichever chunk comes first: its own place may be good, or be so because it has come around.
TEST_F(Copying, OfOneThatDoesNotFitNothingIsWritten) {
  for (const uint64_t to :
       {2 * uint64_t{p2p::kChunkBytes} + 1, ~uint64_t{0} - p2p::kChunkBytes + 1}) {
    copy(1, 2 * p2p::kChunkBytes, 0, to);
    ASSERT_EQ(bench.port.dma_count(), 2u);
    bench.finish_dma(to > 4 * uint64_t{p2p::kChunkBytes} ? 1 : 0);
    bench.finish_all_dma();
    EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
              "complete ctx0 cookie=1 BAD_BOUNDS rank=1\n");
    EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_WRITE_BYTES), 0u);
  }
}

TEST_F(Copying, AFaultEndsIt) {
  bench.port.fault_dmas = {0, 1};
  copy(1, 8);
  copy(5, 8);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=1 DMA_FAULT rank=1\n"
            "complete ctx0 cookie=5 OK\n");
  bench.port.fault_dmas = {1, 1};
  copy(2, 2 * p2p::kChunkBytes);
  copy(3, 8);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=2 DMA_FAULT rank=1\n"
            "complete ctx0 cookie=3 OK\n");
  bench.port.fault_dmas = {1, 1};  // the write
  copy(4, 8);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=4 DMA_FAULT rank=1\n");
}

// Nothing behind a program's put that has failed is told before its iteration is known to have.
TEST_F(Copying, AProgramsThatFailedStaysTheFirst) {
  bench.port.fault_dmas = {1, 1};
  put(7, 2 * p2p::kChunkBytes, false, 4);
  put(8, 0, true, 4);
  const auto before = bench.counters();
  bench.finish_dma();  // read, and being written
  bench.finish_dma();  // the other one faults
  EXPECT_EQ(bench.counter_changes(before).find("notices"), std::string::npos);
  EXPECT_EQ(bench.card().queues.failed_top, 0u);
  bench.finish_all_dma();
  EXPECT_NE(bench.counter_changes(before).find("+1 notices_stale"), std::string::npos)
      << bench.counter_changes(before);
  EXPECT_EQ(bench.card().queues.failed_top, 1u);
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=7 DMA_FAULT rank=1\n"
            "complete ctx0 cookie=8 OK\n");
}

// Where there is no room to note it, it is asked again.
TEST_F(Copying, WhatCannotBeNotedIsAskedAgain) {
  queue::QueuePool& pool = bench.card().queues;
  for (; pool.failed_top < queue::kFailedOfContext; ++pool.failed_top) {
    queue::FailedIterations& each = pool.failed[pool.failed_top];
    each = {};
    each.in_use = true;
    each.member = member.handle();
    each.name = 77;
    each.to = 1;
    each.untold = 1;
  }
  bench.port.fault_dmas = {0, 1};
  put(7, 8, false, 4);
  copy(8, 8);
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_FAILURE), 1u);
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"), "");
  pool.failed[0] = {};
  bench.advance(p2p::kStarvedNs);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=7 DMA_FAULT rank=1\n"
            "complete ctx0 cookie=8 OK\n");
}

TEST_F(Copying, WithoutPacketsItWaits) {
  bench.port.fail_allocations = {0, kAlways};
  copy(7, 8);
  EXPECT_EQ(bench.port.dma_count(), 0u);
  bench.port.fail_allocations = {};
  bench.advance(p2p::kStarvedNs);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"), "complete ctx0 cookie=7 OK\n");
}

// The group is given up (TearDown) while one is under way and another waits: both end.
TEST_F(Copying, WhatIsUnderWayEndsWithItsGroup) {
  copy(1, 2 * p2p::kChunkBytes);
  copy(2, 8);
  bench.finish_dma();
}

TEST_F(Copying, ItsMemoryIsHeld) {
  copy(7, 8);
  bench.finish_dma();
  RegionId region = 0;
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), target.key, &region),
            PEAL_STATUS_BUSY);
  bench.finish_dma();
  EXPECT_TRUE(same(8));
}

}  // namespace
}  // namespace peal::test
