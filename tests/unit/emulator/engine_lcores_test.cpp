// SPDX-License-Identifier: BSD-2-Clause
// Transmit engines on lcores of their own: order within an engine, what finds no room, sleep and
// the end. The lcores are real threads; every wait here ends by what they do, not by time.
#include "emulator/nic/engine_lcores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "tests/unit/emulator/two_cards.h"

namespace peal::nic {
namespace {

constexpr uint32_t kEngines = 3;
constexpr uint32_t kCards = 2;
constexpr uint32_t kRoom = 1023;  // of a receiver's ring

// With as many lcores as the parameter says.
class EngineLcoresTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  EngineLcoresTest() {
    test::start_dpdk();
    EXPECT_EQ(pool_.create(4096), "");
    for (uint32_t card = 0; card < kCards; card++) {
      receivers_.push_back(rte_ring_create(("receiver_" + std::to_string(card)).c_str(), kRoom + 1,
                                           SOCKET_ID_ANY, RING_F_SC_DEQ));
      EXPECT_NE(receivers_.back(), nullptr);
    }
    engines_.emplace(pool_);
    EXPECT_EQ(engines_->start(kEngines, GetParam(), receivers_), "");
  }
  ~EngineLcoresTest() override {
    engines_.reset();
    for (uint32_t card = 0; card < kCards; card++) receive(card);
    for (rte_ring* ring : receivers_) rte_ring_free(ring);
    EXPECT_EQ(pool_.in_use(), 0u);
  }

  void push(uint32_t mark, uint32_t engine, uint32_t to_card) {
    Packet* const packet = pool_.allocate();
    ASSERT_NE(packet, nullptr);
    packet->header->sequence = mark;
    packet->header->edge = static_cast<uint8_t>(engine);
    ASSERT_TRUE(engines_->push(engine, to_card, packet));
  }
  void until_all_is_there() {
    while (engines_->under_way() > 0) sched_yield();
  }
  // The marks of what a card receives, by engine, in order.
  std::map<uint32_t, std::vector<uint32_t>> receive(uint32_t card) {
    std::map<uint32_t, std::vector<uint32_t>> marks;
    void* mbuf = nullptr;
    while (rte_ring_sc_dequeue(receivers_[card], &mbuf) == 0) {
      Packet* const packet = PacketPool::packet_of(static_cast<rte_mbuf*>(mbuf));
      marks[packet->header->edge].push_back(packet->header->sequence);
      pool_.release(packet);
    }
    return marks;
  }
  [[nodiscard]] uint64_t carried() const {
    const std::vector<uint64_t> all = engines_->carried();
    EXPECT_EQ(all.size(), GetParam());
    return std::accumulate(all.begin(), all.end(), uint64_t{0});
  }

  PacketPool pool_;
  std::vector<rte_ring*> receivers_;
  std::optional<EngineLcores> engines_;
};

TEST_P(EngineLcoresTest, EachEngineKeepsItsOrder) {
  constexpr uint32_t kFrames = 300;
  for (uint32_t mark = 0; mark < kFrames; mark++) {
    for (uint32_t engine = 0; engine < kEngines; engine++) push(mark, engine, mark % kCards);
  }
  until_all_is_there();
  for (uint32_t card = 0; card < kCards; card++) {
    const auto marks = receive(card);
    ASSERT_EQ(marks.size(), kEngines);
    for (const auto& [engine, of_it] : marks) {
      ASSERT_EQ(of_it.size(), kFrames / kCards) << engine;
      for (uint32_t i = 0; i < of_it.size(); i++) EXPECT_EQ(of_it[i], kCards * i + card);
    }
  }
  EXPECT_EQ(carried(), uint64_t{kFrames} * kEngines);
  EXPECT_EQ(engines_->collect(), 0u);
}

TEST_P(EngineLcoresTest, WhatFindsNoRoomComesBack) {
  constexpr uint32_t kMore = 20;
  for (uint32_t mark = 0; mark < kRoom + kMore; mark++) push(mark, mark % kEngines, 1);
  push(7, 0, 0);  // behind those, and has room
  until_all_is_there();
  EXPECT_EQ(engines_->collect(), kMore);
  EXPECT_EQ(pool_.in_use(), kRoom + 1);
  EXPECT_EQ(receive(0)[0], std::vector<uint32_t>{7});
  size_t received = 0;
  for (const auto& [engine, marks] : receive(1)) {
    EXPECT_TRUE(std::is_sorted(marks.begin(), marks.end())) << engine;
    received += marks.size();
  }
  EXPECT_EQ(received, kRoom);
}

TEST_P(EngineLcoresTest, TheyGoOnAfterAPause) {
  for (uint32_t round = 0; round < 50; round++) {
    engines_->pause();
    engines_->resume();
    for (uint32_t engine = 0; engine < kEngines; engine++) push(round, engine, 0);
    until_all_is_there();
  }
  EXPECT_EQ(carried(), 50u * kEngines);
}

// The pool is counted when the test ends.
TEST_P(EngineLcoresTest, TheEndWaitsForNothingThatIsUnderWay) {
  for (uint32_t mark = 0; mark < kRoom + 200; mark++) push(mark, mark % kEngines, 1);
}

TEST_P(EngineLcoresTest, TheyEndInTheirSleep) { engines_->pause(); }

INSTANTIATE_TEST_SUITE_P(Lcores, EngineLcoresTest,
                         testing::Range(uint32_t{1}, test::kEngineLcores + 1));

TEST(EngineLcores, WhatEalHasNotIsNoLcore) {
  test::start_dpdk();
  PacketPool pool;
  ASSERT_EQ(pool.create(64), "");
  EngineLcores engines(pool);
  EXPECT_EQ(engines.start(8, test::kEngineLcores + 1, {}),
            "lcore " + std::to_string(test::kEngineLcores + 1) +
                " of the transmit engines does not start");
}

}  // namespace
}  // namespace peal::nic
