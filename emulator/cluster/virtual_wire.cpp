// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/virtual_wire.h"

namespace peal::sim {

void VirtualWire::carry(const emulator::Frame& frame) {
  auto* const packet = static_cast<SimPacket*>(frame.packet);
  pool_.seal(packet, packet->payload_bytes);  // a damaged copy has its own payload
  under_way_++;
  events_.push(frame.arrival_ns, EventKind::kArrival, frame.to_card, packet->index);
}

}  // namespace peal::sim
