// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/faulty_wire.h"

#include <cstring>

namespace peal::emulator {
namespace {

constexpr uint32_t kHeader = sizeof(peal_wire_header);

}  // namespace

void FaultyWire::carry(const Frame& frame) {
  if (!injector_.active()) {
    good_.carry(frame);
    return;
  }
  const uint32_t frame_bytes = kHeader + frame.packet->payload_bytes;
  const Verdict verdict =
      injector_.judge(frame.from_card, frame.to_card, frame_bytes, frame.sent_ns);
  if (verdict.copies == 0) {
    good_.release(frame.packet);
    return;
  }
  // Before the first is gone.
  Packet* const second = verdict.copies == 2 ? repeat(frame.packet) : nullptr;
  carry_copy(frame, verdict.copy[0]);
  if (second == nullptr) return;
  Frame repeated = frame;
  repeated.packet = second;
  carry_copy(repeated, verdict.copy[1]);
}

void FaultyWire::carry_copy(Frame frame, const FrameCopy& copy) {
  if (copy.corrupt_bit != kNoBit) frame.packet = damage(frame.packet, copy.corrupt_bit);
  frame.arrival_ns += copy.delay_ns;
  good_.carry(frame);
}

// With a header of its own, because a receiver may write to it. Null when there is no packet.
Packet* FaultyWire::repeat(Packet* packet) {
  Packet* const second = good_.share(packet);
  if (second == nullptr) {
    no_copy_++;
    return nullptr;
  }
  std::memcpy(second->header, packet->header, kHeader);
  return second;
}

// The packet itself when there is none for a copy.
Packet* FaultyWire::damage(Packet* packet, uint32_t bit) {
  Packet* const damaged = good_.copy(packet);
  if (damaged == nullptr) {
    no_copy_++;
    return packet;
  }
  good_.release(packet);
  const uint32_t byte = bit / 8;
  const auto flip = static_cast<uint8_t>(1u << (bit % 8));
  if (byte < kHeader) {
    reinterpret_cast<uint8_t*>(damaged->header)[byte] ^= flip;
  } else {
    damaged->payload[byte - kHeader] ^= flip;
  }
  return damaged;
}

}  // namespace peal::emulator
