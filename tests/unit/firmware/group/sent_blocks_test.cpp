// SPDX-License-Identifier: BSD-2-Clause
// Packets that stay: found by what they hold, let go one by one or all at once. (What stays, and
// for how long: collective/alltoall/sent_blocks_test.cpp.)
#include "firmware/group/sent_blocks.h"

#include "firmware/wire/transmit.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

class StayingPackets : public GroupTest {
 protected:
  StayingPackets() : GroupTest(4, 1, {.sent_packets = CONFIG_SENT_BLOCKS}) {}

  Scope scope() { return {bench.card(), bench.card().members[0], operation()}; }
  Operation& operation() { return bench.card().members[0].operations[0]; }
  // One that nothing else holds.
  Packet* keep(uint32_t part, uint32_t number) {
    Packet* packet = take_packet(bench.card());
    sent_block_keep(scope(), packet, part, number);
    return packet;
  }
};

TEST_F(StayingPackets, AreFoundByPartAndNumber) {
  const Packet* first = keep(1, 7);
  const Packet* second = keep(2, 7);
  const Packet* third = keep(1, 8);
  EXPECT_EQ(sent_block_find(scope(), 1, 7), first);
  EXPECT_EQ(sent_block_find(scope(), 2, 7), second);
  EXPECT_EQ(sent_block_find(scope(), 1, 8), third);
  EXPECT_EQ(sent_block_find(scope(), 2, 8), nullptr);
  expect_staying(3);
  sent_blocks_drop(bench.card(), bench.card().members[0], operation());
  expect_staying(0);
}

// The first, one between, the last: the others are still there.
TEST_F(StayingPackets, OneIsLetGoAndNoOther) {
  for (uint32_t gone = 0; gone < 4; gone++) {
    const Packet* kept[4];
    for (uint32_t part = 0; part < 4; part++) kept[part] = keep(part / 2, part % 2);
    sent_block_let_go(scope(), gone / 2, gone % 2);
    expect_staying(3);
    for (uint32_t part = 0; part < 4; part++)
      EXPECT_EQ(sent_block_find(scope(), part / 2, part % 2), part == gone ? nullptr : kept[part])
          << gone;
    sent_blocks_drop(bench.card(), bench.card().members[0], operation());
    expect_staying(0);
  }
}

// The record serves the next one.
TEST_F(StayingPackets, LettingGoMakesRoom) {
  const Card& card = bench.card();
  const Member& own = card.members[0];
  uint32_t kept = 0;
  while (has_room_for_sent(card, own)) keep(kept++, 0);
  EXPECT_EQ(kept, share_of_sent(CONFIG_SENT_BLOCKS));
  for (uint32_t part = 0; part < kept; part++) {
    sent_block_let_go(scope(), part, 0);
    EXPECT_TRUE(has_room_for_sent(card, own)) << part;
    keep(kept + part, 0);
    EXPECT_FALSE(has_room_for_sent(card, own)) << part;
  }
  while (operation().sent_first != 0) sent_block_let_go(scope(), kept++, 0);
  expect_staying(0);
}

// What holds it besides, a transfer say, holds it on.
TEST_F(StayingPackets, WhatElseHoldsItHoldsItOn) {
  Packet* packet = keep(0, 0);
  ++packet->holds;
  sent_block_let_go(scope(), 0, 0);
  EXPECT_EQ(sent_block_find(scope(), 0, 0), nullptr);
  EXPECT_EQ(bench.port.packets_unsent(), 1u);
  unhold_packet(bench.card(), packet);
  expect_staying(0);
}

}  // namespace
}  // namespace peal::test
