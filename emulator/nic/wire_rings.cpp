// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/wire_rings.h"

#include <rte_errno.h>
#include <rte_malloc.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace peal::nic {

namespace {

// Of one loop to one card.
uint32_t frames_of_ring(uint32_t loops) {
  return std::max(WireRings::kFrames / std::bit_ceil(loops), WireRings::kFramesLeast);
}

size_t ring_bytes(uint32_t loops) {
  return static_cast<size_t>(rte_ring_get_memsize(frames_of_ring(loops)));
}

}  // namespace

WireRings::~WireRings() {
  for (rte_ring* ring : rings_) {
    void* mbuf = nullptr;
    while (rte_ring_sc_dequeue(ring, &mbuf) == 0)
      pool_.release(PacketPool::packet_of(static_cast<rte_mbuf*>(mbuf)));
  }
  rte_free(memory_);
}

uint64_t WireRings::memory_bytes(uint32_t cards, uint32_t loops) {
  return uint64_t{cards} * loops * ring_bytes(loops);
}

std::string WireRings::create(uint32_t cards, Producers producers, uint32_t loops) {
  // Of several one may have to give way in the middle of it: then no other one waits.
  const unsigned flags = producers == Producers::kOne ? RING_F_SP_ENQ : RING_F_MP_RTS_ENQ;
  const size_t bytes = ring_bytes(loops);
  memory_ = rte_zmalloc("peal_wire", memory_bytes(cards, loops), RTE_CACHE_LINE_SIZE);
  if (memory_ == nullptr)
    return "cannot create the wire rings of " + std::to_string(cards) + " cards: no memory";
  for (uint32_t i = 0; i < cards * loops; i++) {
    auto* const ring = reinterpret_cast<rte_ring*>(static_cast<uint8_t*>(memory_) + i * bytes);
    const int error =
        rte_ring_init(ring, "peal_wire", frames_of_ring(loops), flags | RING_F_SC_DEQ);
    if (error != 0) return std::string("cannot create a wire ring: ") + rte_strerror(-error);
    rings_.push_back(ring);
  }
  for (uint32_t i = 0; i < loops; i++) {
    bells_.push_back(std::make_unique<Bell>());
    bells_.back()->descriptor = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!bells_.back()->descriptor.valid())
      return std::string("cannot create the bell of a polling core: ") + std::strerror(errno);
  }
  return {};
}

void WireRings::ring_bells(uint64_t loops) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (; loops != 0; loops &= loops - 1) {
    Bell& bell = *bells_[static_cast<uint32_t>(std::countr_zero(loops))];
    if (!bell.sleeping.load(std::memory_order_relaxed) || !bell.sleeping.exchange(false)) continue;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(bell.descriptor.get(), &one, sizeof(one));
  }
}

}  // namespace peal::nic
