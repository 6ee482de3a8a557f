// SPDX-License-Identifier: BSD-2-Clause
// What a block in the channel is, where that cannot be told from its place alone: blocks of parts
// (parts.h) have lengths that nobody knows any more when their operation is over, or not yet before
// it is posted. So the end of its packet's header, from the sequence on, lies beside it.
#pragma once

#include <cstddef>
#include <cstring>

#include "firmware/port.h"

namespace peal {

inline constexpr uint32_t kFrameBytes =
    sizeof(peal_wire_header) - offsetof(peal_wire_header, sequence);
static_assert(kFrameBytes == 24);

inline uint8_t* frame_of(Packet* packet) {
  return reinterpret_cast<uint8_t*>(packet->header) + offsetof(peal_wire_header, sequence);
}

// The header that the frame is the end of; else zero.
inline peal_wire_header header_of_frame(const uint8_t* frame) {
  peal_wire_header header = {};
  std::memcpy(reinterpret_cast<uint8_t*>(&header) + offsetof(peal_wire_header, sequence), frame,
              kFrameBytes);
  return header;
}

inline bool is_same_block(const peal_wire_header& a, const peal_wire_header& b) {
  return a.sequence == b.sequence && a.piece == b.piece && a.origin == b.origin;
}

}  // namespace peal
