// SPDX-License-Identifier: BSD-2-Clause
// What lies between cards: it carries frames. peal-nic's carries them through DPDK rings, the
// simulator's through its agenda, and a wire with faults (faulty_wire.h) stands before either.
//
// A wire is told when a frame arrives, and itself keeps what is not due: the simulator has one
// agenda for everything, in which events of the same instant happen in the order in which they were
// put in, so a queue of its own for delayed frames would make other runs of the same seeds.
#pragma once

#include <cstdint>

#include "firmware/port.h"

namespace peal::emulator {

struct Frame {
  Packet* packet;  // payload_bytes is set
  uint32_t from_card;
  uint32_t to_card;
  TimeNs sent_ns;       // by the sender's clock
  TimeNs arrival_ns;    // when it is with its receiver, if nothing happens to it on the way
  uint32_t engine = 0;  // of the sender, by which it leaves
};

class Wire {
 public:
  // Takes the packet over.
  virtual void carry(const Frame& frame) = 0;

  // Packets, for whoever changes what is carried. As Port::share_packet(): a header of its own,
  // which is not copied, and the same payload. Null when there is none left.
  virtual Packet* share(Packet* packet) = 0;
  // One with copies of header and payload, which may be written to. Null when there is none left.
  virtual Packet* copy(Packet* packet) = 0;
  virtual void release(Packet* packet) = 0;

 protected:
  ~Wire() = default;
};

}  // namespace peal::emulator
