// SPDX-License-Identifier: BSD-2-Clause
// Edges: what one member sends another. DATA and SIGNAL packets of an edge are numbered when they
// are sent the first time, so that a loss shows at the next packet that comes over it, and, at the
// end of all, in the answer to a probe. The numbers say that something was lost; what it was, the
// records of the operations know. docs/decisions/0016
#pragma once

#include "firmware/card_types.h"

namespace peal {

// One more packet of the edge.
inline void edge_count(Peer& to, peal_wire_header* header) {
  header->edge = ++to.sent;
  header->flags |= PEAL_PACKET_NUMBERED;
}
// A packet that says how many there have been.
inline void edge_tell(const Peer& to, peal_wire_header* header) {
  header->edge = to.sent;
  header->flags |= PEAL_PACKET_NUMBERED;
}
// What a packet's number says: true when packets before it are missing. One that was overtaken, or
// repeated, says nothing.
inline bool edge_heard(Peer& from, const peal_wire_header& header) {
  if ((header.flags & PEAL_PACKET_NUMBERED) == 0) return false;
  const auto ahead = static_cast<int8_t>(static_cast<uint8_t>(header.edge - from.heard));
  if (ahead <= 0) return false;
  from.heard = header.edge;
  const bool counts = header.type == PEAL_PACKET_DATA || header.type == PEAL_PACKET_SIGNAL;
  return ahead > (counts ? 1 : 0);
}
// Has all come that there was when this was sent?
inline bool edge_is_complete(const Peer& from, const peal_wire_header& header) {
  return (header.flags & PEAL_PACKET_NUMBERED) != 0 && header.edge == from.heard;
}

}  // namespace peal
