// SPDX-License-Identifier: BSD-2-Clause
// The in-process switch: one DPDK ring per card, into which every card of the process enqueues. All
// on one lcore, so the rings are single-producer and single-consumer. A fault injector may sit on
// it; what it holds back waits in a heap until its time.
#pragma once

#include <rte_ring.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "emulator/common/fault_injector.h"
#include "emulator/common/packet_text.h"
#include "emulator/nic/packet_pool.h"
#include "firmware/port.h"

namespace peal::nic {

struct WireCounts {
  uint64_t sent = 0;  // frames that cards sent
  uint64_t sent_bytes = 0;
  uint64_t delivered = 0;  // frames that entered a ring
  uint64_t no_such_card = 0;
  uint64_t ring_full = 0;
  uint64_t held_full = 0;  // could not be held back: delivered at once
  uint64_t no_copy = 0;    // no buffer for a second or corrupted copy: none was made
};

struct WireOptions {
  emulator::FaultPlan faults;
  uint64_t seed = 1;
  std::FILE* trace = nullptr;  // a line per sent frame; the caller's to close
};

class Wire {
 public:
  Wire(PacketPool& pool, WireOptions options);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  static constexpr uint32_t kRingFrames = 8192;

  // Empty on success.
  std::string create(uint32_t cards);

  // Once per turn, before anything is sent.
  void set_now(TimeNs now) { now_ = now; }

  // Takes the packet over.
  void send(uint32_t from_card, Packet* packet) {
    packet->payload_bytes = packet->header->length;
    counts_.sent++;
    counts_.sent_bytes += sizeof(peal_wire_header) + packet->payload_bytes;
    const uint32_t to = emulator::card_of_mac(packet->header->destination);
    if (to >= rings_.size()) [[unlikely]] {
      counts_.no_such_card++;
      pool_.release(packet);
      return;
    }
    if (special_) [[unlikely]] {
      send_specially(from_card, to, packet);
      return;
    }
    enqueue(to, packet);
  }

  // Up to `limit` frames for a card; returns how many.
  uint32_t receive(uint32_t card, Packet** packets, uint32_t limit);
  [[nodiscard]] bool has_frames(uint32_t card) const { return !rte_ring_empty(rings_[card]); }
  [[nodiscard]] uint32_t frames(uint32_t card) const { return rte_ring_count(rings_[card]); }

  // Delivers what was held back and is due.
  bool release_due();
  [[nodiscard]] TimeNs next_release() const {
    return held_.empty() ? kNever : held_.front().due_ns;
  }

  [[nodiscard]] const WireCounts& counts() const { return counts_; }
  [[nodiscard]] const emulator::FaultInjector& injector() const { return injector_; }

 private:
  struct Held {
    TimeNs due_ns;
    uint64_t serial;  // order among equals
    uint32_t to;
    Packet* packet;
  };
  static bool later(const Held& a, const Held& b) {
    return a.due_ns != b.due_ns ? a.due_ns > b.due_ns : a.serial > b.serial;
  }

  void send_specially(uint32_t from, uint32_t to, Packet* packet);
  void deliver(uint32_t to, Packet* packet, const emulator::FrameCopy& copy);
  void enqueue(uint32_t to, Packet* packet) {
    if (rte_ring_sp_enqueue(rings_[to], PacketPool::mbuf_of(packet)) != 0) [[unlikely]] {
      counts_.ring_full++;
      pool_.release(packet);
      return;
    }
    counts_.delivered++;
  }

  static constexpr size_t kHeldMax = 65536;

  PacketPool& pool_;
  WireOptions options_;
  emulator::FaultInjector injector_;
  std::vector<rte_ring*> rings_;
  std::vector<Held> held_;  // heap, soonest first
  uint64_t serial_ = 0;
  TimeNs now_ = 0;
  bool special_;  // faults or a trace: the slow path
  WireCounts counts_;
};

}  // namespace peal::nic
