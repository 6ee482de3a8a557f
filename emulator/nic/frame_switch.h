// SPDX-License-Identifier: BSD-2-Clause
// What the cards of the process send into: finds the receiver by its address, counts, writes the
// trace, and hands on to the rings, through a wire with faults where there are any.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "emulator/common/fault_injector.h"
#include "emulator/common/faulty_wire.h"
#include "emulator/common/packet_text.h"
#include "emulator/nic/packet_pool.h"
#include "emulator/nic/ring_wire.h"
#include "firmware/port.h"

namespace peal::nic {

struct SwitchCounts {
  uint64_t sent = 0;  // frames that cards sent
  uint64_t sent_bytes = 0;
  uint64_t no_such_card = 0;
};

struct SwitchOptions {
  emulator::FaultPlan faults;
  uint64_t seed = 1;
  std::FILE* trace = nullptr;  // a line per sent frame; the caller's to close
  uint32_t engine_lcores = 0;  // so many of EAL's, from the first one on, carry what engines send
};

class FrameSwitch {
 public:
  FrameSwitch(PacketPool& pool, const SwitchOptions& options);
  FrameSwitch(const FrameSwitch&) = delete;
  FrameSwitch& operator=(const FrameSwitch&) = delete;

  // Empty on success.
  std::string create(uint32_t cards);
  // As create(), among the loops that share these rings.
  void join(WireRings& rings, uint32_t loop);

  // Nobody looks into packets between two cards, or repeats, damages or holds one back.
  [[nodiscard]] bool carries_as_they_are() const { return !special_; }

  // Once per turn, before anything is sent.
  void set_now(TimeNs now) {
    rings_.set_now(now);
    rings_.collect();
  }

  // Takes the packet over; it leaves by this engine of the card.
  void send(uint32_t from_card, Packet* packet, uint32_t engine = 0) {
    packet->payload_bytes = packet->header->length;
    counts_.sent++;
    counts_.sent_bytes += sizeof(peal_wire_header) + packet->payload_bytes;
    const uint32_t to_card = emulator::card_of_mac(packet->header->destination);
    if (to_card >= rings_.cards()) [[unlikely]] {
      counts_.no_such_card++;
      rings_.release(packet);
      return;
    }
    if (special_) [[unlikely]] {
      send_specially(from_card, to_card, packet, engine);
      return;
    }
    rings_.enqueue(to_card, packet, engine);
  }

  // Up to `limit` frames for a card; returns how many.
  uint32_t receive(uint32_t card, Packet** packets, uint32_t limit) {
    return rings_.receive(card, packets, limit);
  }
  [[nodiscard]] bool has_frames(uint32_t card) const { return rings_.has_frames(card); }
  [[nodiscard]] uint32_t frames(uint32_t card) const { return rings_.frames(card); }

  // At the end of a turn: who sleeps, and got something, is woken.
  void wake_receivers() { rings_.wake_receivers(); }

  // Delivers what was held back and is due.
  bool release_due() { return rings_.release_due(); }
  [[nodiscard]] TimeNs next_release() const { return rings_.next_release(); }

  // Engines with lcores of their own keep what they have to send apart by themselves. Null: none.
  [[nodiscard]] EngineLcores* lcores() const { return rings_.lcores(); }
  // Frames that are on their way to a card's ring.
  [[nodiscard]] bool under_way() const { return lcores() != nullptr && lcores()->under_way() > 0; }

  [[nodiscard]] const SwitchCounts& counts() const { return counts_; }
  [[nodiscard]] const RingWire& rings() const { return rings_; }
  [[nodiscard]] const emulator::FaultyWire& faults() const { return faulty_; }

 private:
  [[nodiscard]] size_t held() const { return faulty_.injector().active() ? RingWire::kHeldMax : 0; }
  void send_specially(uint32_t from_card, uint32_t to_card, Packet* packet, uint32_t engine);

  RingWire rings_;
  uint32_t engine_lcores_;
  emulator::FaultyWire faulty_;
  std::FILE* trace_;
  bool special_;  // faults or a trace: the slow path
  SwitchCounts counts_;
};

}  // namespace peal::nic
