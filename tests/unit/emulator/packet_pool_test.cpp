// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/packet_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "firmware/payload.h"
#include "peal_config.h"
#include "tests/unit/emulator/two_cards.h"

namespace peal::nic {
namespace {

// Behind the lcore's cache there are far more buffers than ever are out at once. What was given
// back last is taken first, or each packet would be written to memory that no cache knows.
TEST(PacketPool, WhatCameBackLastIsTakenFirst) {
  constexpr uint32_t kBuffers = 6000;
  constexpr uint32_t kOut = 700;      // at once
  constexpr size_t kMost = 2 * kOut;  // with what lies in the cache
  test::start_dpdk();
  PacketPool pool;
  ASSERT_EQ(pool.create(kBuffers), "");
  std::set<const void*> fresh;
  std::set<const void*> shared;
  for (uint32_t round = 0; round < 50; round++) {
    std::vector<Packet*> out;
    for (uint32_t i = 0; i < kOut; i++) {
      Packet* const packet = pool.allocate();
      ASSERT_NE(packet, nullptr);
      fresh.insert(packet);
      out.push_back(packet);
      Packet* const other = pool.share(packet);
      ASSERT_NE(other, nullptr);
      shared.insert(other);
      out.push_back(other);
    }
    for (Packet* packet : out) pool.release(packet);
  }
  EXPECT_LE(fresh.size(), kMost);
  EXPECT_LE(shared.size(), kMost);
  EXPECT_EQ(pool.in_use(), 0u);
}

// DPDK finds what we find, with room for the longest payload, where a line of the cache begins.
TEST(PacketPool, PacketsLieWhereTheirMbufsSay) {
  test::start_dpdk();
  PacketPool pool;
  ASSERT_EQ(pool.create(64), "");
  Packet* const fresh = pool.allocate();
  Packet* const shared = pool.share(fresh);
  for (Packet* const packet : {fresh, shared}) {
    const rte_mbuf* const mbuf = PacketPool::mbuf_of(packet);
    EXPECT_EQ(static_cast<void*>(packet->header), rte_pktmbuf_mtod(mbuf, void*));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(packet->header) % RTE_CACHE_LINE_SIZE, 0u);
  }
  EXPECT_EQ(fresh->payload, reinterpret_cast<uint8_t*>(fresh->header) + sizeof(peal_wire_header));
  EXPECT_EQ(rte_pktmbuf_tailroom(PacketPool::mbuf_of(fresh)),
            sizeof(peal_wire_header) + kPayloadBytes);
  EXPECT_EQ(shared->payload, fresh->payload);
  pool.release(shared);
  pool.release(fresh);
}

// What cards may keep when they have sent it is besides what they have for everything else.
TEST(PacketPool, EachCardHasPacketsForWhatItHasSent) {
  constexpr uint32_t kCards = 3;
  constexpr uint32_t kEach = 64;
  test::start_dpdk();
  PacketPool pool;
  ASSERT_EQ(pool.create(kCards * kEach, kCards), "");
  EXPECT_EQ(pool.buffers_per_card(), kEach);
  EXPECT_EQ(pool.sent_per_card(), std::min<uint32_t>(CONFIG_SENT_BLOCKS, kEach / 4));
  std::vector<Packet*> out;
  while (Packet* const packet = pool.allocate()) out.push_back(packet);
  EXPECT_EQ(out.size(), kCards * (kEach + pool.sent_per_card()));
  for (Packet* packet : out) pool.release(packet);
}

}  // namespace
}  // namespace peal::nic
