// SPDX-License-Identifier: BSD-2-Clause
// What several loops share: the rings, the bells, and the pool's packets.
#include "emulator/nic/wire_rings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/nic/ring_wire.h"
#include "tests/unit/emulator/two_cards.h"

namespace peal::nic {
namespace {

class WireRingsTest : public ::testing::Test {
 protected:
  WireRingsTest() {
    test::start_dpdk();
    EXPECT_EQ(pool_.create(64, 1, 2), "");
  }
  ~WireRingsTest() override { EXPECT_EQ(pool_.in_use(), 0u); }

  // How often that bell was rung since it was asked before.
  static uint64_t rung(const WireRings& rings, uint32_t loop) {
    uint64_t count = 0;
    return read(rings.bell_fd(loop), &count, sizeof(count)) == sizeof(count) ? count : 0;
  }

  PacketPool pool_;
};

TEST_F(WireRingsTest, CardsBelongToLoopsInTurn) {
  WireRings rings(pool_);
  ASSERT_EQ(rings.create(5, WireRings::Producers::kOne, 3), "");
  EXPECT_EQ(rings.loops(), 3u);
  EXPECT_EQ(rings.cards(), 5u);
  std::string loops;
  for (uint32_t card = 0; card < 5; card++) loops += std::to_string(rings.loop_of(card));
  EXPECT_EQ(loops, "01201");
}

TEST_F(WireRingsTest, ABellIsRungOnceForWhoSleeps) {
  WireRings rings(pool_);
  ASSERT_EQ(rings.create(3, WireRings::Producers::kOne, 3), "");
  rings.ring_bells(7);
  EXPECT_EQ(rung(rings, 0) + rung(rings, 1) + rung(rings, 2), 0u) << "all are awake";
  rings.set_sleeping(1, true);
  rings.set_sleeping(2, true);
  rings.ring_bells(3);
  rings.ring_bells(3);
  EXPECT_EQ(rung(rings, 0), 0u);
  EXPECT_EQ(rung(rings, 1), 1u);
  EXPECT_EQ(rung(rings, 2), 0u) << "nothing is for it";
  rings.set_sleeping(2, false);
  rings.ring_bells(4);
  EXPECT_EQ(rung(rings, 2), 0u);
}

TEST_F(WireRingsTest, FramesCrossBetweenLoopsAndWakeTheReceivers) {
  WireRings rings(pool_);
  ASSERT_EQ(rings.create(4, WireRings::Producers::kOne, 2), "");
  std::array<RingWire, 2> wires = {RingWire(pool_), RingWire(pool_)};
  for (uint32_t i = 0; i < 2; i++) {
    wires[i].join(rings, i, 0);
    rings.set_sleeping(i, true);
  }
  const auto send = [&](uint32_t from_loop, uint32_t to_card) {
    Packet* const packet = pool_.allocate();
    ASSERT_NE(packet, nullptr);
    packet->header->sequence = 10 * from_loop + to_card;
    wires[from_loop].enqueue(to_card, packet, 0);
    wires[from_loop].wake_receivers();
  };
  send(0, 2);
  EXPECT_EQ(rung(rings, 0) + rung(rings, 1), 0u) << "a loop's own cards are its own to look after";
  send(0, 3);
  EXPECT_EQ(rung(rings, 0), 0u);
  EXPECT_EQ(rung(rings, 1), 1u);
  send(1, 2);
  EXPECT_EQ(rung(rings, 0), 1u);
  EXPECT_EQ(rung(rings, 1), 0u);
  std::string came;
  Packet* packet = nullptr;
  for (const uint32_t card : {2u, 3u}) {
    while (wires[card % 2].receive(card, &packet, 1) == 1) {
      came += std::to_string(packet->header->sequence) + " ";
      pool_.release(packet);
    }
  }
  EXPECT_EQ(came, "2 12 3 ");
  send(1, 0);  // nobody receives it: it is given back at the end
}

// All that K broadcasts may have under way to one card, at the least.
TEST_F(WireRingsTest, RingsOfManyLoopsAreShorterButNotShort) {
  for (const auto& [loops, frames] :
       {std::pair{1u, 8192u}, {2u, 4096u}, {3u, 2048u}, {64u, 1024u}}) {
    WireRings rings(pool_);
    ASSERT_EQ(rings.create(2, WireRings::Producers::kOne, loops), "");
    for (uint32_t i = 0; i < loops; i++) {
      EXPECT_EQ(rte_ring_get_size(rings.rings_to(1)[i]), frames) << loops;
    }
    EXPECT_GE(WireRings::memory_bytes(2, loops), uint64_t{2} * loops * frames * sizeof(void*));
  }
}

// Whoever sends most keeps nobody from a card.
TEST_F(WireRingsTest, FramesOfAllLoopsAreTakenInTurn) {
  constexpr uint32_t kLoops = 3;
  constexpr uint32_t kFrames = 8;  // of each
  WireRings rings(pool_);
  ASSERT_EQ(rings.create(kLoops, WireRings::Producers::kOne, kLoops), "");
  std::vector<std::unique_ptr<RingWire>> wires;
  for (uint32_t i = 0; i < kLoops; i++) {
    wires.push_back(std::make_unique<RingWire>(pool_));
    wires[i]->join(rings, i, 0);
    for (uint32_t frame = 0; frame < kFrames; frame++) {
      Packet* const packet = pool_.allocate();
      ASSERT_NE(packet, nullptr);
      packet->header->sequence = 10 * i + frame;
      wires[i]->enqueue(1, packet, 0);
    }
  }
  EXPECT_EQ(wires[1]->frames(1), kLoops * kFrames);
  EXPECT_FALSE(wires[0]->has_frames(0));
  std::string came;
  std::array<Packet*, 4> packets{};
  while (wires[1]->has_frames(1)) {
    const uint32_t count = wires[1]->receive(1, packets.data(), packets.size());
    ASSERT_GT(count, 0u);
    for (uint32_t i = 0; i < count; i++) {
      came += std::to_string(packets[i]->header->sequence) + " ";
      pool_.release(packets[i]);
    }
  }
  EXPECT_EQ(came, "0 1 2 3 10 11 12 13 20 21 22 23 4 5 6 7 14 15 16 17 24 25 26 27 ");
  EXPECT_EQ(wires[1]->frames(1), 0u);
}

// Each takes and gives references to the same payloads; the last one gives them back.
TEST_F(WireRingsTest, SeveralLoopsShareAPayload) {
  constexpr uint32_t kTimes = 20'000;
  std::array<Packet*, 4> owners{};
  for (Packet*& owner : owners) owner = pool_.allocate();
  const auto share = [&] {
    for (uint32_t i = 0; i < kTimes; i++) {
      Packet* const shared = pool_.share(owners[i % owners.size()]);
      ASSERT_NE(shared, nullptr);
      pool_.release(shared);
    }
  };
  std::thread other(share);
  share();
  other.join();
  EXPECT_EQ(pool_.in_use(), owners.size());
  for (Packet* const owner : owners) pool_.release(owner);
}

}  // namespace
}  // namespace peal::nic
