// SPDX-License-Identifier: BSD-2-Clause
// Places in the memory of tables: none shared, none lost.
#include "hostlib/address_tables.h"

#include <gtest/gtest.h>

#include <vector>

namespace peal::host {
namespace {

class Tables : public testing::Test {
 protected:
  void bring(uint32_t bytes, uint32_t key) {
    memory.emplace_back(AddressTables::block_bytes(bytes));
    tables.add({memory.back().data(), memory.back().size(), key});
  }
  // Until there is none.
  std::vector<AddressTables::Place> take_all(uint32_t bytes) {
    std::vector<AddressTables::Place> places;
    while (true) {
      const AddressTables::Place place = tables.take(bytes);
      if (place.address == nullptr) return places;
      places.push_back(place);
    }
  }

  std::vector<std::vector<uint8_t>> memory;
  AddressTables tables;
};

TEST_F(Tables, ThereIsNoneBeforeThereIsMemory) {
  EXPECT_EQ(tables.take(160).address, nullptr);
  EXPECT_TRUE(tables.leave().empty());
}

TEST_F(Tables, ManyLieSideBySide) {
  bring(160, 7);
  const std::vector<AddressTables::Place> places = take_all(160);
  ASSERT_EQ(places.size(), memory[0].size() / 192);
  for (size_t i = 0; i < places.size(); i++) {
    EXPECT_EQ(places[i].key, 7u);
    EXPECT_EQ(places[i].offset, 192 * i);
    EXPECT_EQ(places[i].address, memory[0].data() + 192 * i);
  }
}

TEST_F(Tables, WhatIsGivenBackIsTakenAgain) {
  bring(160, 7);
  bring(160, 8);
  const std::vector<AddressTables::Place> places = take_all(160);
  EXPECT_EQ(places.back().key, 8u);
  const AddressTables::Place& one = places[3];
  tables.give(one);
  EXPECT_EQ(tables.take(200).address, nullptr) << "it has room for 192 bytes";
  EXPECT_EQ(tables.take(160).address, one.address);
  tables.give(places.back());
  EXPECT_EQ(tables.take(160).address, places.back().address);
}

TEST_F(Tables, TheLargestGroupHasMemoryOfItsOwn) {
  const uint32_t bytes = 1024 * sizeof(peal_peer_address);
  bring(bytes, 7);
  EXPECT_EQ(take_all(bytes).size(), 1u);
  const std::vector<Allocation> left = tables.leave();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].key, 7u);
  EXPECT_EQ(tables.take(64).address, nullptr);
}

}  // namespace
}  // namespace peal::host
