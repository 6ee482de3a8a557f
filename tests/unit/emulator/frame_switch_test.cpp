// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/frame_switch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/unit/emulator/two_cards.h"

namespace peal::nic {
namespace {

class FrameSwitchTest : public ::testing::Test {
 protected:
  FrameSwitchTest() {
    test::start_dpdk();
    EXPECT_EQ(pool_.create(64), "");
  }
  ~FrameSwitchTest() override { EXPECT_EQ(pool_.in_use(), 0u); }

  void send(FrameSwitch& cards, uint32_t from, uint32_t to, uint16_t length) {
    Packet* const packet = pool_.allocate();
    ASSERT_NE(packet, nullptr);
    std::memset(packet->header, 0, sizeof(*packet->header));
    emulator::card_mac(to, packet->header->destination);
    packet->header->type = PEAL_PACKET_SIGNAL;
    packet->header->length = length;
    cards.send(from, packet);
  }
  uint32_t take(FrameSwitch& cards, uint32_t card) {
    Packet* packets[8];
    const uint32_t count = cards.receive(card, packets, 8);
    for (uint32_t i = 0; i < count; i++) pool_.release(packets[i]);
    return count;
  }

  PacketPool pool_;
};

TEST_F(FrameSwitchTest, AFrameGoesToTheCardOfItsAddress) {
  FrameSwitch cards(pool_, {});
  ASSERT_EQ(cards.create(3), "");
  send(cards, 0, 2, 10);
  EXPECT_EQ(take(cards, 0), 0u);
  EXPECT_EQ(take(cards, 1), 0u);
  EXPECT_EQ(take(cards, 2), 1u);
  EXPECT_EQ(cards.counts().sent, 1u);
  EXPECT_EQ(cards.counts().sent_bytes, 74u);
}

TEST_F(FrameSwitchTest, WhatIsForNoCardIsCountedAndDropped) {
  FrameSwitch cards(pool_, {});
  ASSERT_EQ(cards.create(2), "");
  send(cards, 0, 2, 0);
  EXPECT_EQ(cards.counts().no_such_card, 1u);
  EXPECT_EQ(cards.rings().counts().delivered, 0u);
}

TEST_F(FrameSwitchTest, FaultsComeBeforeTheRingsAndTheTraceBeforeTheFaults) {
  char* text = nullptr;
  size_t bytes = 0;
  std::FILE* const trace = open_memstream(&text, &bytes);
  ASSERT_NE(trace, nullptr);
  {
    SwitchOptions options;
    options.faults.loss = 1;
    options.trace = trace;
    FrameSwitch cards(pool_, options);
    ASSERT_EQ(cards.create(2), "");
    send(cards, 0, 1, 0);
    EXPECT_EQ(take(cards, 1), 0u);
    EXPECT_EQ(cards.faults().injector().counts().lost, 1u);
  }
  std::fclose(trace);
  EXPECT_EQ(std::string(text, bytes),
            "0>1 SIGNAL none none seq=0 piece=0 origin=0 hop=0 frag=0 len=0\n");
  std::free(text);
}

}  // namespace
}  // namespace peal::nic
