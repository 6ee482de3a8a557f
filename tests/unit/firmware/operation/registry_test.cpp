// SPDX-License-Identifier: BSD-2-Clause
// The rows of the registry: each is found by what it serves, and has every function that the rest
// of the card may call.
#include "firmware/operation/algorithm.h"

#include <gtest/gtest.h>

#include <vector>

namespace peal::test {
namespace {

std::vector<const Algorithm*> rows() {
  std::vector<const Algorithm*> found;
  for (uint8_t operation = 0; operation < PEAL_OPERATION_COUNT; operation++) {
    for (uint8_t algorithm = 0; algorithm < PEAL_ALGORITHM_COUNT; algorithm++) {
      const Algorithm* row = find_algorithm(operation, algorithm);
      if (row == nullptr) continue;
      EXPECT_EQ(row->operation, operation);
      EXPECT_EQ(row->algorithm, algorithm);
      found.push_back(row);
    }
  }
  return found;
}

bool takes(const Algorithm& row, peal_packet_type type) {
  return (row.packets.types >> type & 1) != 0;
}

TEST(Registry, EveryAlgorithmServesSomething) {
  std::vector<bool> serves(PEAL_ALGORITHM_COUNT);
  for (const Algorithm* row : rows()) serves[row->algorithm] = true;
#define PEAL_EXPECT_SERVES(value, symbol, name, text) \
  EXPECT_TRUE(serves[value] || (value) == PEAL_ALGORITHM_NONE) << (name);
  PEAL_ALGORITHMS(PEAL_EXPECT_SERVES)
#undef PEAL_EXPECT_SERVES
}

TEST(Registry, RowsHaveWhatTheirPacketsAskFor) {
  ASSERT_FALSE(rows().empty());
  for (const Algorithm* row : rows()) {
    SCOPED_TRACE(int{row->operation} * 100 + row->algorithm);
    const AlgorithmFunctions& does = row->does;
    EXPECT_TRUE(does.check && does.open && does.post && does.on_nack && does.advance && does.chase);
    EXPECT_EQ(does.on_data != nullptr, takes(*row, PEAL_PACKET_DATA));
    EXPECT_EQ(does.on_signal != nullptr, takes(*row, PEAL_PACKET_SIGNAL));
    // Whoever repairs must be asked, and says when it has nothing;
    // ranks may disagree about anything.
    EXPECT_TRUE(takes(*row, PEAL_PACKET_NACK) && takes(*row, PEAL_PACKET_NOT_YET));
    EXPECT_TRUE(takes(*row, PEAL_PACKET_REFUSE));
    // Packets of the group itself are of no operation.
    EXPECT_FALSE(takes(*row, PEAL_PACKET_DEATH) || takes(*row, PEAL_PACKET_PROBE) ||
                 takes(*row, PEAL_PACKET_ALIVE) || takes(*row, PEAL_PACKET_FAREWELL));
    // Blocks come in pieces, and pieces need a reason why their places may be used again.
    EXPECT_EQ(row->packets.blocks, does.on_data != nullptr);
    EXPECT_EQ(row->release != Release::kNoPieces, row->packets.blocks);
    EXPECT_EQ(does.on_dma != nullptr, row->packets.blocks);
  }
}

// So epochs with them need no signals (docs/decisions/0043, 0077).
TEST(Registry, AllButBroadcastsSynchronise) {
  for (const uint8_t operation : {PEAL_OPERATION_ALLGATHERV, PEAL_OPERATION_ALLTOALLV}) {
    EXPECT_TRUE(find_algorithm(operation, PEAL_ALGORITHM_DIRECT)->synchronises);
  }
  EXPECT_TRUE(find_algorithm(PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_BRUCK)->synchronises);
  EXPECT_FALSE(find_algorithm(PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL)->synchronises);
}

TEST(Registry, WhatNobodyServesIsNotFound) {
  EXPECT_EQ(find_algorithm(PEAL_OPERATION_NONE, PEAL_ALGORITHM_NONE), nullptr);
  EXPECT_EQ(find_algorithm(PEAL_OPERATION_RECYCLE, PEAL_ALGORITHM_BINOMIAL), nullptr);
  EXPECT_EQ(find_algorithm(PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_RECURSIVE_DOUBLING), nullptr);
  EXPECT_EQ(find_algorithm(PEAL_OPERATION_COUNT, PEAL_ALGORITHM_DISSEMINATION), nullptr);
  EXPECT_EQ(find_algorithm(PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_COUNT), nullptr);
  EXPECT_EQ(find_algorithm(0xff, 0xff), nullptr);
}

}  // namespace
}  // namespace peal::test
