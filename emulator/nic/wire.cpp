// SPDX-License-Identifier: BSD-2-Clause
// Faults and traces, and the bursts that cards take from their rings.
#include "emulator/nic/wire.h"

#include <rte_errno.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace peal::nic {

Wire::Wire(PacketPool& pool, WireOptions options)
    : pool_(pool),
      options_(std::move(options)),
      injector_(options_.faults, options_.seed),
      special_(injector_.active() || options_.trace != nullptr) {
  if (injector_.active()) held_.reserve(kHeldMax);
}

Wire::~Wire() {
  for (const Held& held : held_) pool_.release(held.packet);
  for (rte_ring* ring : rings_) {
    void* mbuf = nullptr;
    while (rte_ring_sc_dequeue(ring, &mbuf) == 0)
      pool_.release(PacketPool::packet_of(static_cast<rte_mbuf*>(mbuf)));
    rte_ring_free(ring);
  }
}

std::string Wire::create(uint32_t cards) {
  for (uint32_t i = 0; i < cards; i++) {
    const std::string name = "peal_wire_" + std::to_string(i);
    rte_ring* const ring =
        rte_ring_create(name.c_str(), kRingFrames, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (ring == nullptr)
      return "cannot create the wire ring of card " + std::to_string(i) + ": " +
             rte_strerror(rte_errno);
    rings_.push_back(ring);
  }
  return {};
}

void Wire::send_specially(uint32_t from, uint32_t to, Packet* packet) {
  if (options_.trace != nullptr) {
    const std::string line = emulator::packet_text(*packet->header, to) + '\n';
    std::fwrite(line.data(), 1, line.size(), options_.trace);
  }
  const auto frame_bytes = static_cast<uint32_t>(sizeof(peal_wire_header)) + packet->payload_bytes;
  const emulator::Verdict verdict = injector_.judge(from, to, frame_bytes, now_);
  if (verdict.copies == 0) {
    pool_.release(packet);
    return;
  }
  if (verdict.copies == 2) {
    // The second copy has a header of its own and the same payload.
    Packet* const second = pool_.share(packet);
    if (second != nullptr) {
      std::memcpy(second->header, packet->header, sizeof(peal_wire_header));
      deliver(to, second, verdict.copy[1]);
    } else {
      counts_.no_copy++;
    }
  }
  deliver(to, packet, verdict.copy[0]);
}

void Wire::deliver(uint32_t to, Packet* packet, const emulator::FrameCopy& copy) {
  if (copy.corrupt_bit != emulator::kNoBit) {
    // Others may hold the same payload; the damage is done to a copy.
    Packet* const damaged = pool_.copy(packet);
    if (damaged == nullptr) {
      counts_.no_copy++;
    } else {
      pool_.release(packet);
      packet = damaged;
      const uint32_t byte = copy.corrupt_bit / 8;
      const auto bit = static_cast<uint8_t>(1u << (copy.corrupt_bit % 8));
      constexpr uint32_t kHeader = sizeof(peal_wire_header);
      if (byte < kHeader) {
        reinterpret_cast<uint8_t*>(packet->header)[byte] ^= bit;
      } else if (byte - kHeader < packet->payload_bytes) {
        packet->payload[byte - kHeader] ^= bit;
      }
    }
  }
  if (copy.delay_ns > 0) {
    if (held_.size() < kHeldMax) {
      held_.push_back({now_ + copy.delay_ns, serial_++, to, packet});
      std::push_heap(held_.begin(), held_.end(), later);
      return;
    }
    counts_.held_full++;
  }
  enqueue(to, packet);
}

bool Wire::release_due() {
  bool any = false;
  while (!held_.empty() && held_.front().due_ns <= now_) {
    std::pop_heap(held_.begin(), held_.end(), later);
    const Held held = held_.back();
    held_.pop_back();
    enqueue(held.to, held.packet);
    any = true;
  }
  return any;
}

uint32_t Wire::receive(uint32_t card, Packet** packets, uint32_t limit) {
  constexpr uint32_t kBurst = 32;
  std::array<void*, kBurst> mbufs;
  const uint32_t count =
      rte_ring_sc_dequeue_burst(rings_[card], mbufs.data(), std::min(limit, kBurst), nullptr);
  for (uint32_t i = 0; i < count; i++)
    packets[i] = PacketPool::packet_of(static_cast<rte_mbuf*>(mbufs[i]));
  return count;
}

}  // namespace peal::nic
