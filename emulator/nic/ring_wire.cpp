// SPDX-License-Identifier: BSD-2-Clause
// What is held back, and the bursts that cards take from their rings.
#include "emulator/nic/ring_wire.h"

#include <algorithm>
#include <array>

#include "peal_config.h"

namespace peal::nic {

RingWire::~RingWire() {
  lcores_.reset();
  for (const Held& held : held_) pool_.release(held.packet);
}

void RingWire::join(WireRings& rings, uint32_t loop, size_t held) {
  held_max_ = std::min(held, kHeldMax);
  held_.reserve(held_max_);
  all_rings_ = &rings;
  rings_ = rings.rings();
  loop_ = loop;
  special_ = rings.loops() > 1;
}

std::string RingWire::create(uint32_t cards, size_t held, uint32_t engine_lcores) {
  own_rings_ = std::make_unique<WireRings>(pool_);
  std::string error = own_rings_->create(
      cards, engine_lcores == 0 ? WireRings::Producers::kOne : WireRings::Producers::kSeveral);
  if (!error.empty()) return error;
  join(*own_rings_, 0, held);
  if (engine_lcores == 0) return {};
  special_ = true;
  lcores_ = std::make_unique<EngineLcores>(pool_);
  return lcores_->start(CONFIG_TRANSMIT_ENGINES, engine_lcores, rings_);
}

bool RingWire::enqueue_specially(uint32_t to_card, Packet* packet, uint32_t engine) {
  if (lcores_ != nullptr) return lcores_->push(engine, to_card, packet);
  touched_loops_ |= uint64_t{1} << all_rings_->loop_of(to_card);
  return rte_ring_enqueue(rings_[to_card], PacketPool::mbuf_of(packet)) == 0;
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
