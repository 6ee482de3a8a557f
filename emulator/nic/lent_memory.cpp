// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/lent_memory.h"

#include <cstring>
#include <thread>

namespace peal::nic {

// The word was changed before, so that who finds the place still taken waits for this.
void LentMemory::free_place(PacketSlot* slot) {
  slot->place->store(nullptr, std::memory_order_release);
}

bool LentMemory::change(PacketSlot* slot, uintptr_t from, LentState to) {
  return slot->lent.compare_exchange_strong(from, (from & ~uintptr_t{kLentStates}) | to,
                                            std::memory_order_acq_rel);
}

// Of what is for several. False: not now, perhaps because another one began.
bool LentMemory::begin_copy(PacketSlot* slot, uintptr_t word) {
  return state_of(word) == kLent && (word & kAllCopy) != kAllCopy &&
         slot->lent.compare_exchange_strong(word, word + kOneCopies, std::memory_order_acq_rel);
}

void LentMemory::copy_in(PacketSlot* slot) {
  std::memcpy(slot->packet.payload, slot->source, slot->packet.payload_bytes);
  slot->lent.store(kHere, std::memory_order_release);
}

void LentMemory::lend(Packet* packet, const uint8_t* source, LenderId who, ReadFor whom) {
  forget_given_back();
  if (next_ - first_ == kPlaces) take_back_one(places_[first_++ % kPlaces]);
  PacketSlot* const slot = PacketPool::owner_of(packet);
  Place& place = places_[next_ % kPlaces];
  slot->source = source;
  slot->place = &place.slot;
  place.word = reinterpret_cast<uintptr_t>(this) | kLent |
               (whom == ReadFor::kSeveralCards ? kForSeveral : 0);
  slot->lent.store(place.word, std::memory_order_release);
  place.source = source;
  place.who = who;
  place.slot.store(slot, std::memory_order_relaxed);
  next_++;
}

void LentMemory::forget_given_back() {
  while (first_ != next_ &&
         places_[first_ % kPlaces].slot.load(std::memory_order_acquire) == nullptr)
    first_++;
}

// The packet is in the pool's memory, whoever has it by now: there is something to read.
void LentMemory::take_back_one(Place& place) const {
  while (PacketSlot* const slot = place.slot.load(std::memory_order_acquire)) {
    if (change(slot, place.word, kBusy)) {
      copy_in(slot);
      place.slot.store(nullptr, std::memory_order_relaxed);
      return;
    }
    std::this_thread::yield();
  }
}

void LentMemory::take_back_of(LenderId who) {
  forget_given_back();
  for (uint32_t i = first_; i != next_; i++) {
    Place& place = places_[i % kPlaces];
    if (place.who == who) take_back_one(place);
  }
}

void LentMemory::take_back_from(const uint8_t* base, uint64_t bytes) {
  for (uint32_t i = first_; i != next_; i++) {
    Place& place = places_[i % kPlaces];
    if (place.source >= base && place.source < base + bytes) take_back_one(place);
  }
}

void LentMemory::take_back_all() {
  for (; first_ != next_; first_++) take_back_one(places_[first_ % kPlaces]);
}

LentMemory::Claim LentMemory::claim(const Packet* packet, const uint8_t* bytes,
                                    uint32_t count) const {
  PacketSlot* const slot = PacketPool::owner_of(packet);
  const auto at = static_cast<uint64_t>(bytes - packet->payload);
  for (;;) {
    const uintptr_t word = slot->lent.load(std::memory_order_acquire);
    // (A header's bytes are nobody else's.)
    if (word == kHere || at >= slot->packet.payload_bytes) return {bytes, false, false};
    if (is_own(word)) return {slot->source + at, true, false};
    if (state_of(word) == kDelivered) return {nullptr, true, false};
    if (is_for_several(word)) {
      if (begin_copy(slot, word)) return {slot->source + at, true, true};
      if (state_of(word) == kBusy) std::this_thread::yield();
    } else if (at > 0 || count != slot->packet.payload_bytes) {
      if (!bring(packet)) return {nullptr, true, false};
    } else if (state_of(word) == kLent && change(slot, word, kBusy)) {
      return {slot->source, true, true};
    } else {
      std::this_thread::yield();
    }
  }
}

void LentMemory::deliver(const Packet* packet) {
  PacketSlot* const slot = PacketPool::owner_of(packet);
  const uintptr_t word = slot->lent.load(std::memory_order_relaxed);
  if (is_for_several(word)) {
    slot->lent.fetch_sub(kOneCopies, std::memory_order_release);
    return;
  }
  slot->lent.store((word & ~uintptr_t{kLentStates}) | kDelivered, std::memory_order_release);
  free_place(slot);
}

bool LentMemory::bring(const Packet* packet) const {
  PacketSlot* const slot = PacketPool::owner_of(packet);
  for (;;) {
    const uintptr_t word = slot->lent.load(std::memory_order_acquire);
    const uintptr_t state = state_of(word);
    if (word == kHere) return true;
    if (state == kDelivered && !is_own(word)) return false;
    if (state != kBusy && (word & kAllCopy) == 0 && change(slot, word, kBusy)) {
      copy_in(slot);
      if (state == kLent) free_place(slot);
      return true;
    }
    std::this_thread::yield();
  }
}

}  // namespace peal::nic
