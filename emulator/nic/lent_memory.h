// SPDX-License-Identifier: BSD-2-Clause
// Host memory that packets carry by its address. What a card reads for others, while its host does
// not change it (Port::dma_read_lent()), stays where it is; each card that the packet was sent to
// copies it, once, to where it belongs. So no packet's memory is written and read for it.
// docs/decisions/0066, 0067
//
// Whose the bytes are is one word of the packet in which the payload would lie (PacketSlot::lent):
// the card that lends, a state, and how many copy them now, where they are for several. A card at
// the other end may be of another loop, on another thread; who changes the word first goes on, and
// who comes second waits for the end of one copy. Who takes back what is for several waits until
// none of them copies, and each copies it to its host once, and perhaps once to its channel.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "emulator/nic/packet_pool.h"
#include "firmware/port.h"
#include "peal_config.h"

namespace peal::nic {

// What one card lends. For its loop's thread, but for what says otherwise.
class alignas(kLentBits + 1) LentMemory {
 public:
  // Shorter blocks are copied twice as soon as it is found out where they lie.
  static constexpr uint32_t kLeast = CONFIG_MTU_BYTES / 2;
  static constexpr uint32_t kPlaces = 256;

  LentMemory() = default;
  ~LentMemory() { take_back_all(); }
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  // The packet carries as many bytes as it says (payload_bytes) from there, which `who` lends. It
  // is fresh, and no other shares its payload yet. Where there are no places any more, the oldest
  // one is taken back first.
  void lend(Packet* packet, const uint8_t* source, LenderId who, ReadFor whom = ReadFor::kOneCard);
  // What `who` has lent, and packets still carry, is in these, and the host may change it. Waits
  // for copies of it that are being made.
  void take_back(LenderId who) {
    if (first_ != next_) take_back_of(who);
  }
  // Before this memory goes, of which nothing should be lent by then.
  void take_back_from(const uint8_t* base, uint64_t bytes);
  void take_back_all();

  // How a card gets at bytes of a packet, which another card's host may have lent.
  struct Claim {
    const uint8_t* from;  // where they lie; null: they were delivered, and are nowhere
    bool lent;            // and not in the packet
    bool ends;            // deliver() must follow when they are copied: others wait for it
  };
  // Did the packet's payload begin as lent memory? Any thread's, for a packet that it holds.
  static bool was_lent(const Packet* packet) {
    return packet->payload_bytes >= kLeast &&
           word_of(packet).load(std::memory_order_acquire) != kHere;
  }
  [[nodiscard]] Claim claim(const Packet* packet, const uint8_t* bytes, uint32_t count) const;
  static void deliver(const Packet* packet);
  // The bytes are in the packet, for whoever copies from there later. False: they were delivered.
  bool bring(const Packet* packet) const;
  static bool is_delivered(const Packet* packet) {
    return state_of(word_of(packet).load(std::memory_order_acquire)) == kDelivered;
  }

 private:
  struct Place {
    std::atomic<PacketSlot*> slot{nullptr};  // null: given back, by whoever had it
    uintptr_t word = 0;                      // the packet's, as long as nobody copies
    const uint8_t* source = nullptr;
    LenderId who = 0;
  };

  static std::atomic<uintptr_t>& word_of(const Packet* packet) {
    return PacketPool::owner_of(packet)->lent;
  }
  static uintptr_t state_of(uintptr_t word) { return word & kLentStates; }
  static bool is_for_several(uintptr_t word) { return (word & kForSeveral) != 0; }
  [[nodiscard]] bool is_own(uintptr_t word) const {
    return (word & ~kLentBits) == reinterpret_cast<uintptr_t>(this);
  }
  static void free_place(PacketSlot* slot);
  static bool change(PacketSlot* slot, uintptr_t from, LentState to);
  static bool begin_copy(PacketSlot* slot, uintptr_t word);
  static void copy_in(PacketSlot* slot);
  void take_back_of(LenderId who);
  void take_back_one(Place& place) const;
  void forget_given_back();

  std::array<Place, kPlaces> places_;  // in turn
  uint32_t first_ = 0;                 // the oldest that may be out; counts, not indices
  uint32_t next_ = 0;
};

}  // namespace peal::nic
