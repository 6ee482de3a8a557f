// SPDX-License-Identifier: BSD-2-Clause
// How far a card's direct exchanges may be ahead of what comes, and who waits then: as rank 1 of so
// many sees it that as many operations as may begin before an epoch is proven are more than that.
#include "firmware/operation/lead.h"

#include <cstddef>

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

class Leads : public GroupTest {
 protected:
  static constexpr uint32_t kRanks = kLeadMost > 64 ? 64 : 16;
  static constexpr size_t kPiece =
      CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW) / kRanks & ~size_t{7};
  static constexpr size_t kBytes = CONFIG_PIECE_WINDOW * kPiece;
  static constexpr uint32_t kOfOne = CONFIG_PIECE_WINDOW * (kRanks - 1);  // packets of an operation
  static constexpr uint32_t kWaits = kLeadMost / kOfOne;  // the first operation that must
  static constexpr uint32_t kPosted = CONFIG_CHANNELS - CONFIG_CHANNELS / 4;  // recycling.h
  static_assert(kPosted * kOfOne > kLeadMost && kWaits < kPosted);

  Leads() : GroupTest(kRanks, 1, {.packet_buffers = 1024, .tables = true}) {}

  void post_all() {
    for (uint64_t i = 0; i < kPosted; i++) {
      post_allgather(i, PEAL_ALGORITHM_DIRECT, kBytes);
      bench.finish_all_dma();
    }
  }
  void deliver(uint32_t sender, uint32_t sequence) {
    bench.deliver(wire.direct(sender, {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_DIRECT, kBytes},
                              sequence, 0, pattern_block(sequence, sender, 0, kPiece)));
    bench.finish_all_dma();
  }
  void have_turn() {
    ASSERT_TRUE(bench.advance_to_deadline());
    bench.finish_all_dma();
  }
  // Packets since the last look.
  size_t sent() { return bench.port.take_sent().size(); }
};

TEST_F(Leads, WhatHasALongLeadWaitsForBlocks) {
  post_all();
  EXPECT_EQ(sent(), static_cast<size_t>(kLeadMost));
  deliver(0, kWaits);
  EXPECT_EQ(sent(), 1u);
  deliver(2, 0);  // of one that has sent all
  EXPECT_EQ(sent(), 0u);
  deliver(2, kWaits);  // it may send for that one, too
  EXPECT_EQ(sent(), 2u);
}

// Each has its turn behind what had come before, whatever the others do.
TEST_F(Leads, InItsTurnAnOperationGoesOn) {
  post_all();
  sent();
  const TimeNs posted_ns = bench.now;
  have_turn();
  EXPECT_EQ(bench.now, posted_ns + 1);
  EXPECT_EQ(sent(), (kPosted - kWaits) * kLeadOfTurn);
}

// From whom nothing has come since the turn before is late, and not waited for.
TEST_F(Leads, ALateRankIsNotWaitedForLonger) {
  post_all();
  have_turn();
  have_turn();
  EXPECT_EQ(sent(), kPosted * size_t{kOfOne});
}

// What came before the own host posted is in return for what is sent then.
TEST_F(Leads, WhatCameFirstIsReturned) {
  for (uint32_t sender = 2; sender < kRanks; sender++) deliver(sender, 0);
  post_all();
  EXPECT_EQ(sent(), size_t{kLeadMost} + kRanks - 2);
}

}  // namespace
}  // namespace peal::test
