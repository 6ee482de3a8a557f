// SPDX-License-Identifier: BSD-2-Clause
// Whose what stays at hand is. (What it is good for, and when it is let go:
// collective/allgather/direct_test.cpp.)
#include "firmware/group/at_hand.h"

#include "firmware/wire/transmit.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

class AtHandLists : public GroupTest {
 protected:
  AtHandLists() : GroupTest(4, 1, {.keeps_early = true}) {}

  // An operation of any member, whether there is such a member or not.
  Scope operation(uint32_t owner) {
    Card& card = bench.card();
    Member& its_member = card.members[owner / kChannels];
    Operation& record = its_member.operations[owner % kChannels];
    its_member.index = static_cast<uint16_t>(owner / kChannels);
    record.timer.slot = static_cast<uint8_t>(owner % kChannels);
    return {card, its_member, record};
  }
  Packet* keep(const Scope& scope, uint32_t number) {
    Packet* packet = take_packet(bench.card());
    at_hand_keep(scope, packet, number, 0, 1);
    return packet;
  }
};

// Some of them share a list, whatever the lists are made by.
TEST_F(AtHandLists, EachOperationFindsItsOwn) {
  constexpr uint32_t kOwners = CONFIG_CARD_MEMBERS * kChannels;
  constexpr uint32_t kNumber = 7;
  for (uint32_t one = 0; one < kOwners; one++) {
    for (uint32_t other = 0; other < one; other++) {
      const Scope first = operation(one);
      const Scope second = operation(other);
      const Packet* firsts = keep(first, kNumber);
      EXPECT_EQ(at_hand_find(second, kNumber), nullptr);
      const Packet* seconds = keep(second, kNumber);
      ASSERT_NE(at_hand_find(first, kNumber), nullptr);
      EXPECT_EQ(at_hand_find(first, kNumber)->packet, firsts) << one << " " << other;
      EXPECT_EQ(at_hand_find(second, kNumber)->packet, seconds) << one << " " << other;
      EXPECT_EQ(at_hand_find(first, kNumber + 1), nullptr);
      at_hand_drop(first);
      EXPECT_EQ(at_hand_find(first, kNumber), nullptr);
      EXPECT_EQ(at_hand_find(second, kNumber)->packet, seconds);
      at_hand_given(second, kNumber);
      EXPECT_EQ(at_hand_find(second, kNumber), nullptr);
    }
  }
  EXPECT_EQ(bench.port.packets_unsent(), 0u);
}

}  // namespace
}  // namespace peal::test
