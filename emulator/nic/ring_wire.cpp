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
  loops_ = rings.loops();
  for (uint32_t card = 0; card < rings.cards(); card++) {
    const uint32_t to = rings.loop_of(card);
    rte_ring* const* const all = rings.rings_to(card);
    ways_.push_back({all[loop], to == loop ? 0 : uint64_t{1} << to, all, 0});
  }
}

std::string RingWire::create(uint32_t cards, size_t held, uint32_t engine_lcores) {
  own_rings_ = std::make_unique<WireRings>(pool_);
  std::string error = own_rings_->create(
      cards, engine_lcores == 0 ? WireRings::Producers::kOne : WireRings::Producers::kSeveral);
  if (!error.empty()) return error;
  join(*own_rings_, 0, held);
  if (engine_lcores == 0) return {};
  lcores_ = std::make_unique<EngineLcores>(pool_);
  std::vector<rte_ring*> rings;
  for (const Way& way : ways_) rings.push_back(way.ring);
  return lcores_->start(CONFIG_TRANSMIT_ENGINES, engine_lcores, rings);
}

uint32_t RingWire::frames(uint32_t card) const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < loops_; i++) count += rte_ring_count(ways_[card].all[i]);
  return count;
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
  limit = std::min(limit, kBurst);
  Way& way = ways_[card];
  uint32_t count = 0;
  for (uint32_t i = 0; i < loops_ && count < limit; i++) {
    count += rte_ring_sc_dequeue_burst(way.all[way.first], &mbufs[count], limit - count, nullptr);
    way.first = way.first + 1 == loops_ ? 0 : way.first + 1;
  }
  for (uint32_t i = 0; i < count; i++)
    packets[i] = PacketPool::packet_of(static_cast<rte_mbuf*>(mbufs[i]));
  return count;
}

}  // namespace peal::nic
