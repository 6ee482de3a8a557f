// SPDX-License-Identifier: BSD-2-Clause
// The wire inside one process, as one loop of cards has it: a DPDK ring to each card
// (wire_rings.h), into which the loop enqueues, or the lcores of its cards' transmit engines do
// (engine_lcores.h). What is not due yet waits in a heap until its time.
#pragma once

#include <rte_ring.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/common/wire.h"
#include "emulator/nic/engine_lcores.h"
#include "emulator/nic/packet_pool.h"
#include "emulator/nic/wire_rings.h"

namespace peal::nic {

struct RingCounts {
  uint64_t delivered = 0;  // frames that entered a ring, or are on their way there
  uint64_t ring_full = 0;
  uint64_t held_full = 0;  // could not be held back: delivered at once
};

class RingWire final : public emulator::Wire {
 public:
  explicit RingWire(PacketPool& pool) : pool_(pool) {}
  ~RingWire();
  RingWire(const RingWire&) = delete;
  RingWire& operator=(const RingWire&) = delete;

  static constexpr size_t kHeldMax = 65536;

  // With room for `held` frames that come later, kHeldMax at most. `engine_lcores`: so many of
  // EAL's carry what the engines send; none: it is there at once. Empty on success.
  std::string create(uint32_t cards, size_t held, uint32_t engine_lcores = 0);
  // As create(), among the rings of several loops; they outlive this. `loop`: whose cards send
  // here.
  void join(WireRings& rings, uint32_t loop, size_t held);
  [[nodiscard]] uint32_t cards() const { return static_cast<uint32_t>(ways_.size()); }

  // Once per turn, before anything is sent.
  void set_now(TimeNs now) { now_ = now; }
  [[nodiscard]] TimeNs now() const { return now_; }

  // Takes the packet over; it arrives at once, or as soon as its engine's lcore carries it.
  void enqueue(uint32_t to_card, Packet* packet, uint32_t engine) {
    const Way& way = ways_[to_card];
    touched_loops_ |= way.loop;
    const bool entered = lcores_ == nullptr
                             ? rte_ring_sp_enqueue(way.ring, PacketPool::mbuf_of(packet)) == 0
                             : lcores_->push(engine, to_card, packet);
    if (!entered) [[unlikely]] {
      counts_.ring_full++;
      pool_.release(packet);
      return;
    }
    counts_.delivered++;
  }
  // As enqueue(), but in its time.
  void carry(const emulator::Frame& frame) override;
  Packet* share(Packet* packet) override { return pool_.share(packet); }
  Packet* copy(Packet* packet) override { return pool_.copy(packet); }
  void release(Packet* packet) override { pool_.release(packet); }

  // Up to `limit` frames for a card; returns how many.
  uint32_t receive(uint32_t card, Packet** packets, uint32_t limit);
  [[nodiscard]] bool has_frames(uint32_t card) const {
    rte_ring* const* const rings = ways_[card].all;
    for (uint32_t i = 0; i < loops_; i++) {
      if (rte_ring_empty(rings[i]) == 0) return true;
    }
    return false;
  }
  [[nodiscard]] uint32_t frames(uint32_t card) const;

  // Every turn: frames of the engines' lcores that found no room are given back.
  void collect() {
    if (lcores_ == nullptr) return;
    const uint32_t returned = lcores_->collect();
    counts_.ring_full += returned;
    counts_.delivered -= returned;
  }
  // Null: the loop itself carries everything.
  [[nodiscard]] EngineLcores* lcores() const { return lcores_.get(); }

  // At the end of a turn: other loops to whose cards something went are woken.
  void wake_receivers() {
    const uint64_t others = touched_loops_;
    touched_loops_ = 0;
    if (others != 0) [[unlikely]]
      all_rings_->ring_bells(others);
  }

  // Delivers what was held back and is due.
  bool release_due();
  [[nodiscard]] TimeNs next_release() const {
    return held_.empty() ? kNever : held_.front().due_ns;
  }

  [[nodiscard]] const RingCounts& counts() const { return counts_; }

 private:
  struct Held {
    TimeNs due_ns;
    uint64_t serial;  // order among equals
    uint32_t to_card;
    uint32_t engine;
    Packet* packet;
  };
  static bool later(const Held& a, const Held& b) {
    return a.due_ns != b.due_ns ? a.due_ns > b.due_ns : a.serial > b.serial;
  }

  struct Way {
    rte_ring* ring;
    uint64_t loop;         // the bit of another loop, which must be woken
    rte_ring* const* all;  // of all loops to the card
    uint32_t first;  // from which loop the card, if it is one of this loop, takes frames first
  };

  PacketPool& pool_;
  std::unique_ptr<WireRings> own_rings_;
  WireRings* all_rings_ = nullptr;
  uint32_t loops_ = 0;
  std::vector<Way> ways_;  // to each card
  uint64_t touched_loops_ = 0;
  std::unique_ptr<EngineLcores> lcores_;
  std::vector<Held> held_;  // heap, soonest first
  size_t held_max_ = 0;
  uint64_t serial_ = 0;
  TimeNs now_ = 0;
  RingCounts counts_;
};

}  // namespace peal::nic
