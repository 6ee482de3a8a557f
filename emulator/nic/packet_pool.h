// SPDX-License-Identifier: BSD-2-Clause
// Packets as DPDK packet buffers. A fresh packet is one mbuf, header and payload together, ready
// for a real wire. A shared packet is a small mbuf with a header of its own that holds a reference
// to the mbuf in which the payload lies; so a forwarded payload is never copied, and nobody sees
// another's header. Reference counts are plain numbers where all cards of a process live on one
// lcore: others (engine_lcores.h) give none back.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "emulator/common/zeroed_memory.h"
#include "firmware/port.h"

namespace peal::nic {

// What has become of host memory that a packet carries, in the low bits of a word; the lender is in
// the others, but for kHere.
enum LentState : uintptr_t {
  kHere = 0,  // the bytes are in the packet
  kLent = 1,
  kBusy = 2,       // somebody copies them, and nobody else may
  kDelivered = 3,  // or nobody has the packet any more
  kLentStates = 3
};
// Beside the state: it is lent for several cards, and so many copy it now.
inline constexpr uintptr_t kForSeveral = 4;
inline constexpr uintptr_t kOneCopies = 8;
inline constexpr uintptr_t kAllCopy = 127 * kOneCopies;
inline constexpr uintptr_t kLentBits = kLentStates | kForSeveral | kAllCopy;

// In the mbuf's private area.
struct alignas(64) PacketSlot {
  Packet packet;                     // first: a Packet* of ours is a PacketSlot*
  PacketSlot* owner;                 // in whose mbuf the payload lies; itself in a fresh packet
  std::atomic<uint32_t> references;  // of an owner: who refers to its payload, itself included
  uint32_t receiver;                 // card to which another lcore carries it
  // Of an owner, whose payload may be host memory (lent_memory.h): who lends it, and a state; where
  // it lies; what is nulled when it is the lender's no more.
  std::atomic<uintptr_t> lent;
  const uint8_t* source;
  std::atomic<PacketSlot*>* place;
};
static_assert(sizeof(PacketSlot) == 64, "what is asked of a packet is in one line");

class PacketPool {
 public:
  PacketPool() = default;
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // `fresh` packets and as many shared ones, for so many cards, which so many loops serve; besides
  // for each card those that it may keep when it has sent them. Empty on success, else what went
  // wrong.
  std::string create(uint32_t fresh, uint32_t cards = 1, uint32_t loops = 1);
  // Fresh packets for each card, if all take alike.
  [[nodiscard]] uint32_t buffers_per_card() const { return buffers_per_card_; }
  // Packets that a card may keep when it has sent them.
  [[nodiscard]] uint32_t sent_per_card() const { return sent_per_card_; }
  // What DPDK must be given, in bytes, for such a pool, whose packets have memory of their own.
  static uint64_t memory_bytes(uint32_t fresh);

  // Null when the pool is empty.
  Packet* allocate() {
    void* object = nullptr;
    if (rte_mempool_get(fresh_, &object) != 0) [[unlikely]]
      return nullptr;
    PacketSlot* const slot = slot_of(static_cast<rte_mbuf*>(object));
    uint8_t* const frame = frame_of(slot);
    slot->packet.header = reinterpret_cast<peal_wire_header*>(frame);
    slot->packet.payload = frame + sizeof(peal_wire_header);
    slot->packet.payload_bytes = 0;
    slot->packet.holds = 0;
    slot->owner = slot;
    slot->references.store(1, std::memory_order_relaxed);
    slot->lent.store(kHere, std::memory_order_relaxed);
    return &slot->packet;
  }

  Packet* share(Packet* packet) {
    void* object = nullptr;
    if (rte_mempool_get(headers_, &object) != 0) [[unlikely]]
      return nullptr;
    PacketSlot* const slot = slot_of(static_cast<rte_mbuf*>(object));
    PacketSlot* const owner = slot_of(packet)->owner;
    slot->packet.header = reinterpret_cast<peal_wire_header*>(frame_of(slot));
    slot->packet.payload = packet->payload;
    slot->packet.payload_bytes = packet->payload_bytes;
    slot->packet.holds = 0;
    slot->owner = owner;
    add_reference(owner);
    return &slot->packet;
  }

  void release(Packet* packet) {
    PacketSlot* const slot = slot_of(packet);
    PacketSlot* const owner = slot->owner;
    if (owner != slot) rte_mempool_put(headers_, mbuf_of(slot));
    if (!was_last_reference(owner)) return;
    if (owner->lent.load(std::memory_order_acquire) != kHere) let_go_of_lent(owner);
    rte_mempool_put(fresh_, mbuf_of(owner));
  }

  // In whose mbuf the payload lies.
  static PacketSlot* owner_of(const Packet* packet) {
    return reinterpret_cast<const PacketSlot*>(packet)->owner;
  }

  // A fresh packet with the same header and payload, for whoever wants to change bytes of it.
  Packet* copy(const Packet* packet);

  // Packets that are out; for leak checks and telemetry. Walks per-lcore caches.
  [[nodiscard]] uint32_t in_use() const;

  // The card to which a packet goes, for whoever carries it there.
  static void set_receiver(Packet* packet, uint32_t card) { slot_of(packet)->receiver = card; }
  static uint32_t receiver(Packet* packet) { return slot_of(packet)->receiver; }

  static rte_mbuf* mbuf_of(PacketSlot* slot) { return reinterpret_cast<rte_mbuf*>(slot) - 1; }
  static rte_mbuf* mbuf_of(Packet* packet) { return mbuf_of(slot_of(packet)); }
  static Packet* packet_of(rte_mbuf* mbuf) { return &slot_of(mbuf)->packet; }

 private:
  static PacketSlot* slot_of(rte_mbuf* mbuf) { return reinterpret_cast<PacketSlot*>(mbuf + 1); }
  // What rte_pktmbuf_mtod() says, without a look at the mbuf, which is in no cache.
  static uint8_t* frame_of(PacketSlot* slot) {
    return reinterpret_cast<uint8_t*>(slot + 1) + RTE_PKTMBUF_HEADROOM;
  }
  static PacketSlot* slot_of(Packet* packet) { return reinterpret_cast<PacketSlot*>(packet); }

  static void let_go_of_lent(PacketSlot* owner);
  void add_reference(PacketSlot* owner) const {
    if (several_loops_) [[unlikely]] {
      owner->references.fetch_add(1, std::memory_order_relaxed);
    } else {
      owner->references.store(owner->references.load(std::memory_order_relaxed) + 1,
                              std::memory_order_relaxed);
    }
  }
  [[nodiscard]] bool was_last_reference(PacketSlot* owner) const {
    if (several_loops_) [[unlikely]]
      return owner->references.fetch_sub(1, std::memory_order_acq_rel) == 1;
    const uint32_t left = owner->references.load(std::memory_order_relaxed) - 1;
    owner->references.store(left, std::memory_order_relaxed);
    return left == 0;
  }

  bool several_loops_ = false;
  uint32_t buffers_per_card_ = 0;
  uint32_t sent_per_card_ = 0;
  emulator::ZeroedMemory fresh_memory_;
  emulator::ZeroedMemory headers_memory_;
  rte_mempool* fresh_ = nullptr;
  rte_mempool* headers_ = nullptr;
};

}  // namespace peal::nic
