// SPDX-License-Identifier: BSD-2-Clause
// The order of blocks, carried out on paper: after the last step every rank holds, for every rank,
// the block that is meant for it; what was sent in a step still lies where it was; and what one
// sends is what the other expects.
#include "firmware/collective/alltoall/bruck_order.h"

#include <gtest/gtest.h>

#include <vector>

#include "firmware/operation/layout.h"

namespace peal::test {
namespace {

using namespace bruck_order;

struct Block {
  uint32_t from;
  uint32_t to;
  bool operator==(const Block&) const = default;
};
constexpr Block kNothing = {~0u, ~0u};

class BruckOrder : public ::testing::TestWithParam<uint32_t> {
 protected:
  const uint32_t ranks = GetParam();
  const uint32_t rounds = ceil_log2(ranks);
};
INSTANTIATE_TEST_SUITE_P(Ranks, BruckOrder,
                         ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 31, 32, 33, 64,
                                           100, 127, 128, 129));

TEST_P(BruckOrder, BringsEveryBlockToItsRankAndOverwritesNone) {
  std::vector<std::vector<Block>> image(ranks, std::vector<Block>(image_blocks(ranks), kNothing));
  const auto put = [&](uint32_t rank, uint32_t position, Block block) {
    ASSERT_LT(position, image[rank].size());
    ASSERT_EQ(image[rank][position], kNothing) << "position " << position << " is taken";
    image[rank][position] = block;
  };
  for (uint32_t rank = 0; rank < ranks; rank++) {
    for (uint32_t way = 0; way < ranks; way++)
      put(rank, position_of(way, 0, ranks), {rank, minus(rank, way, ranks)});
  }
  for (uint32_t k = 0; k < rounds; k++) {
    const auto before = image;
    for (uint32_t rank = 0; rank < ranks; rank++) {
      const Rank from = plus(rank, 1u << k, ranks);
      for (uint32_t index = 0; index < step_blocks(k, ranks); index++) {
        const Block block = before[from][area_of(k, ranks) + index];
        ASSERT_NE(block, kNothing) << "step " << k << ": rank " << from << " has it not yet";
        ASSERT_EQ(minus(block.from, block.to, ranks), way_of(k, index));
        put(rank, position_of(way_of(k, index), k + 1, ranks), block);
      }
    }
  }
  for (uint32_t rank = 0; rank < ranks; rank++) {
    for (uint32_t position = 0; position < image[rank].size(); position++) {
      ASSERT_NE(image[rank][position], kNothing) << "nobody uses position " << position;
    }
    for (uint32_t way = 0; way < ranks; way++) {
      const Block arrived = {plus(rank, way, ranks), rank};
      EXPECT_EQ(image[rank][way], arrived);
    }
  }
}

TEST_P(BruckOrder, RunsLieSideBySideWhereTheyAreReceived) {
  for (uint32_t k = 0; k < rounds; k++) {
    const uint32_t blocks = step_blocks(k, ranks);
    for (uint32_t index = 0; index + 1 < blocks; index++) {
      const uint32_t here = position_of(way_of(k, index), k + 1, ranks);
      const uint32_t next = position_of(way_of(k, index + 1), k + 1, ranks);
      if (run_blocks(k, index) > 1) {
        ASSERT_EQ(next, here + 1) << "step " << k << " index " << index;
      }
    }
  }
}

// Whatever the length of a block: within the MTU, within the DMA that a packet may take, whole, and
// countable in a word of bits.
TEST_P(BruckOrder, PacketsOfAStep) {
  const uint32_t longest = piece_bytes_for(image_blocks(ranks));
  for (const uint32_t bytes : {1u, 7u, 8u, 64u, 65u, 500u, 1024u, longest}) {
    if (bytes > longest) continue;
    for (uint32_t k = 0; k < rounds; k++) {
      const uint32_t blocks = fragment_blocks(k, bytes);
      ASSERT_GT(blocks, 0u);
      ASSERT_LE(blocks * bytes, static_cast<uint32_t>(CONFIG_MTU_BYTES));
      const uint32_t packets = fragment_count(k, ranks, bytes);
      ASSERT_LE(packets, 64u);
      ASSERT_GE(packets * blocks, step_blocks(k, ranks));
      ASSERT_LT((packets - 1) * blocks, step_blocks(k, ranks));
      for (uint32_t first = 0; first < step_blocks(k, ranks); first += blocks) {
        const uint32_t end = std::min(first + blocks, step_blocks(k, ranks));
        uint32_t runs = 0;
        for (uint32_t index = first; index < end; index += run_blocks(k, index)) runs++;
        ASSERT_LE(runs, kRunsMax) << "step " << k << " of blocks of " << bytes;
      }
    }
  }
}

TEST(BruckOrderOfEight, IsTheOneInTheBook) {
  std::vector<std::vector<uint32_t>> ways(3);
  for (uint32_t k = 0; k < 3; k++) {
    for (uint32_t index = 0; index < step_blocks(k, 8); index++)
      ways[k].push_back(way_of(k, index));
  }
  EXPECT_EQ(ways[0], (std::vector<uint32_t>{1, 3, 5, 7}));
  EXPECT_EQ(ways[1], (std::vector<uint32_t>{2, 3, 6, 7}));
  EXPECT_EQ(ways[2], (std::vector<uint32_t>{4, 5, 6, 7}));
  EXPECT_EQ(image_blocks(8), 20u);
  EXPECT_EQ(fragment_count(0, 8, 0), 1u);
}

}  // namespace
}  // namespace peal::test
