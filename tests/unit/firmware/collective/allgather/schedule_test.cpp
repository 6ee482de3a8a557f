// SPDX-License-Identifier: BSD-2-Clause
// The schedule in steps, carried out on paper: after the last step every rank holds every block
// once, whatever N is, and what one sends is what the other expects.
#include "firmware/collective/allgather/schedule.h"

#include <gtest/gtest.h>

#include <vector>

namespace peal::test {
namespace {

class Schedule : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Schedule,
                         ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 31, 32, 33, 64,
                                           100, 127, 128, 129));

TEST_P(Schedule, GathersEveryBlockOnce) {
  const uint32_t ranks = GetParam();
  constexpr uint32_t kNothing = ~0u;
  std::vector<std::vector<uint32_t>> held(ranks, std::vector<uint32_t>(ranks, kNothing));
  for (uint32_t rank = 0; rank < ranks; rank++) {
    held[rank][schedule::own_position(rank, ranks)] = rank;
  }
  for (uint32_t k = 0; k < ceil_log2(ranks); k++) {
    const auto before = held;
    for (uint32_t rank = 0; rank < ranks; rank++) {
      const schedule::Step mine = schedule::step(k, rank, ranks);
      const schedule::Step theirs = schedule::step(k, mine.from, ranks);
      ASSERT_EQ(theirs.to, rank);
      ASSERT_EQ(theirs.blocks, mine.blocks);
      ASSERT_LE(mine.receive_first + mine.blocks, ranks);
      for (uint32_t i = 0; i < mine.blocks; i++) {
        const uint32_t block = before[mine.from][theirs.send_first + i];
        ASSERT_NE(block, kNothing) << "step " << k << ": rank " << mine.from << " has it not yet";
        ASSERT_EQ(held[rank][mine.receive_first + i], kNothing) << "received twice";
        held[rank][mine.receive_first + i] = block;
      }
    }
  }
  for (uint32_t rank = 0; rank < ranks; rank++) {
    for (uint32_t position = 0; position < ranks; position++) {
      EXPECT_EQ(held[rank][position], schedule::rank_at(position, rank, ranks));
    }
  }
}

TEST_P(Schedule, PartnersArePeers) {
  const uint32_t ranks = GetParam();
  for (uint32_t rank = 0; rank < ranks; rank++) {
    for (uint32_t k = 0; k < ceil_log2(ranks); k++) {
      EXPECT_NE(peer_entry(rank, schedule::step(k, rank, ranks).to, ranks), kNoPeer);
      EXPECT_NE(peer_entry(rank, schedule::step(k, rank, ranks).from, ranks), kNoPeer);
    }
  }
}

}  // namespace
}  // namespace peal::test
