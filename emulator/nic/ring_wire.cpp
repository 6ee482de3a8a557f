// SPDX-License-Identifier: BSD-2-Clause
// What is held back, and the bursts that cards take from their rings.
#include "emulator/nic/ring_wire.h"

#include <rte_errno.h>

#include <algorithm>
#include <array>

#include "peal_config.h"

namespace peal::nic {

RingWire::~RingWire() {
  lcores_.reset();
  for (const Held& held : held_) pool_.release(held.packet);
  for (rte_ring* ring : rings_) {
    void* mbuf = nullptr;
    while (rte_ring_sc_dequeue(ring, &mbuf) == 0)
      pool_.release(PacketPool::packet_of(static_cast<rte_mbuf*>(mbuf)));
    rte_ring_free(ring);
  }
}

std::string RingWire::create(uint32_t cards, size_t held, uint32_t engine_lcores) {
  held_max_ = std::min(held, kHeldMax);
  held_.reserve(held_max_);
  const unsigned producers = engine_lcores == 0 ? RING_F_SP_ENQ : 0;
  for (uint32_t i = 0; i < cards; i++) {
    const std::string name = "peal_wire_" + std::to_string(i);
    rte_ring* const ring =
        rte_ring_create(name.c_str(), kRingFrames, SOCKET_ID_ANY, producers | RING_F_SC_DEQ);
    if (ring == nullptr)
      return "cannot create the wire ring of card " + std::to_string(i) + ": " +
             rte_strerror(rte_errno);
    rings_.push_back(ring);
  }
  if (engine_lcores == 0) return {};
  lcores_ = std::make_unique<EngineLcores>(pool_);
  return lcores_->start(CONFIG_TRANSMIT_ENGINES, engine_lcores, rings_);
}

void RingWire::carry(const emulator::Frame& frame) {
  if (frame.arrival_ns > now_) {
    if (held_.size() < held_max_) {
      held_.push_back({frame.arrival_ns, serial_++, frame.to_card, frame.engine, frame.packet});
      std::push_heap(held_.begin(), held_.end(), later);
      return;
    }
    counts_.held_full++;
  }
  enqueue(frame.to_card, frame.packet, frame.engine);
}

bool RingWire::release_due() {
  bool any = false;
  while (!held_.empty() && held_.front().due_ns <= now_) {
    std::pop_heap(held_.begin(), held_.end(), later);
    const Held held = held_.back();
    held_.pop_back();
    enqueue(held.to_card, held.packet, held.engine);
    any = true;
  }
  return any;
}

uint32_t RingWire::receive(uint32_t card, Packet** packets, uint32_t limit) {
  constexpr uint32_t kBurst = 32;
  std::array<void*, kBurst> mbufs;
  const uint32_t count =
      rte_ring_sc_dequeue_burst(rings_[card], mbufs.data(), std::min(limit, kBurst), nullptr);
  for (uint32_t i = 0; i < count; i++)
    packets[i] = PacketPool::packet_of(static_cast<rte_mbuf*>(mbufs[i]));
  return count;
}

}  // namespace peal::nic
