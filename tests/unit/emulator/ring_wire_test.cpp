// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/ring_wire.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/emulator/two_cards.h"

namespace peal::nic {
namespace {

class RingWireTest : public ::testing::Test {
 protected:
  RingWireTest() {
    test::start_dpdk();
    EXPECT_EQ(pool_.create(64), "");
  }
  ~RingWireTest() override { EXPECT_EQ(pool_.in_use(), 0u); }

  void carry(RingWire& wire, uint32_t mark, TimeNs arrival_ns, uint32_t to_card = 1) {
    Packet* const packet = pool_.allocate();
    ASSERT_NE(packet, nullptr);
    packet->header->sequence = mark;
    wire.carry({packet, 0, to_card, wire.now(), arrival_ns});
  }
  // The marks of what a card receives, in order.
  std::string receive(RingWire& wire, uint32_t card = 1) {
    std::string text;
    Packet* packet = nullptr;
    while (wire.receive(card, &packet, 1) == 1) {
      text += std::to_string(packet->header->sequence) + " ";
      pool_.release(packet);
    }
    return text;
  }

  PacketPool pool_;
};

TEST_F(RingWireTest, WhatIsDueArrivesInOrderAtItsCard) {
  RingWire wire(pool_);
  ASSERT_EQ(wire.create(2, 4), "");
  wire.set_now(100);
  carry(wire, 1, 100);
  carry(wire, 2, 99);
  carry(wire, 3, 100, 0);
  EXPECT_EQ(wire.frames(1), 2u);
  EXPECT_EQ(receive(wire), "1 2 ");
  EXPECT_EQ(receive(wire, 0), "3 ");
  EXPECT_FALSE(wire.has_frames(0) || wire.has_frames(1));
  EXPECT_EQ(wire.counts().delivered, 3u);
}

TEST_F(RingWireTest, WhatIsNotDueWaitsForItsTime) {
  RingWire wire(pool_);
  ASSERT_EQ(wire.create(2, 8), "");
  wire.set_now(100);
  EXPECT_EQ(wire.next_release(), kNever);
  carry(wire, 1, 300);
  carry(wire, 2, 200);
  carry(wire, 3, 300);
  carry(wire, 4, 200);
  carry(wire, 5, 101);
  EXPECT_EQ(wire.next_release(), 101u);
  EXPECT_FALSE(wire.release_due());
  EXPECT_EQ(receive(wire), "");
  wire.set_now(299);
  EXPECT_TRUE(wire.release_due());
  EXPECT_EQ(receive(wire), "5 2 4 ");
  EXPECT_EQ(wire.next_release(), 300u);
  wire.set_now(300);
  EXPECT_TRUE(wire.release_due());
  EXPECT_EQ(receive(wire), "1 3 ");
  EXPECT_EQ(wire.next_release(), kNever);
}

TEST_F(RingWireTest, WhatCannotBeHeldArrivesAtOnce) {
  RingWire wire(pool_);
  ASSERT_EQ(wire.create(2, 1), "");
  wire.set_now(100);
  carry(wire, 1, 200);
  carry(wire, 2, 200);
  EXPECT_EQ(receive(wire), "2 ");
  EXPECT_EQ(wire.counts().held_full, 1u);
}

// The pool is counted when the test ends.
TEST_F(RingWireTest, WhatIsUnderWayIsGivenBackAtTheEnd) {
  RingWire wire(pool_);
  ASSERT_EQ(wire.create(2, 2), "");
  wire.set_now(100);
  carry(wire, 1, 100);
  carry(wire, 2, 200);
  EXPECT_EQ(pool_.in_use(), 2u);
}

}  // namespace
}  // namespace peal::nic
