// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/wire_rings.h"

#include <rte_errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

namespace peal::nic {

WireRings::~WireRings() {
  for (rte_ring* ring : rings_) {
    void* mbuf = nullptr;
    while (rte_ring_sc_dequeue(ring, &mbuf) == 0)
      pool_.release(PacketPool::packet_of(static_cast<rte_mbuf*>(mbuf)));
    rte_ring_free(ring);
  }
}

std::string WireRings::create(uint32_t cards, Producers producers, uint32_t loops) {
  // Of several one may have to give way in the middle of it: then no other one waits.
  const unsigned flags = producers == Producers::kOne ? RING_F_SP_ENQ : RING_F_MP_RTS_ENQ;
  for (uint32_t i = 0; i < cards; i++) {
    const std::string name = "peal_wire_" + std::to_string(i);
    rte_ring* const ring =
        rte_ring_create(name.c_str(), kFrames, SOCKET_ID_ANY, flags | RING_F_SC_DEQ);
    if (ring == nullptr)
      return "cannot create the wire ring of card " + std::to_string(i) + ": " +
             rte_strerror(rte_errno);
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
