// SPDX-License-Identifier: BSD-2-Clause
// The simulated wire: a frame that it carries is an arrival in the cluster's agenda.
#pragma once

#include <cstdint>

#include "emulator/cluster/event_queue.h"
#include "emulator/cluster/packet_pool.h"
#include "emulator/cluster/surroundings.h"
#include "emulator/common/wire.h"

namespace peal::sim {

class VirtualWire final : public emulator::Wire {
 public:
  // All outlive the wire. Packets that nobody needs go back through the surroundings.
  VirtualWire(Surroundings& surroundings, PacketPool& pool, EventQueue& events)
      : surroundings_(surroundings), pool_(pool), events_(events) {}

  void carry(const emulator::Frame& frame) override;
  Packet* share(Packet* packet) override { return pool_.share(static_cast<SimPacket*>(packet)); }
  Packet* copy(Packet* packet) override { return pool_.copy(static_cast<SimPacket*>(packet)); }
  void release(Packet* packet) override { surroundings_.release(static_cast<SimPacket*>(packet)); }

  // The frame of an arrival has left the wire.
  void arrived() { under_way_--; }
  [[nodiscard]] uint64_t under_way() const { return under_way_; }

 private:
  Surroundings& surroundings_;
  PacketPool& pool_;
  EventQueue& events_;
  uint64_t under_way_ = 0;
};

}  // namespace peal::sim
