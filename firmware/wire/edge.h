// SPDX-License-Identifier: BSD-2-Clause
// Edges: what one member sends another. DATA, SIGNAL and REFUSE packets of an edge are numbered
// when they are sent the first time, and all others, but for repairs, say how many there have been:
// so a loss shows at the next packet of any kind, and, at the end of all, in the answer to a probe.
// The numbers say that something was lost; what it was, the records of the operations know. Numbers
// have eight bits, in which 128 packets that are lost in a row look like none; how many there have
// been has sixteen, more than a root may send of broadcasts without hearing of them.
// docs/decisions/0016, 0093
#pragma once

#include "firmware/card_types.h"

namespace peal {

// One more packet of the edge; its header says already that it has a number.
inline void edge_number(Peer& to, peal_wire_header* header) {
  header->edge = static_cast<uint8_t>(++to.sent);
}
// The same, of any header.
inline void edge_count(Peer& to, peal_wire_header* header) {
  edge_number(to, header);
  header->flags |= PEAL_PACKET_NUMBERED;
}
// One that should have been sent, and could not: to its receiver it is lost.
inline void edge_skip(Peer& to) { ++to.sent; }
// A packet that says how many there have been, and has no fragment.
inline void edge_tell(const Peer& to, peal_wire_header* header) {
  header->edge = static_cast<uint8_t>(to.sent);
  header->fragment = static_cast<uint8_t>(to.sent >> 8);
  header->flags |= PEAL_PACKET_NUMBERED;
}
inline bool counts_on_edge(const peal_wire_header& header) {
  return header.type == PEAL_PACKET_DATA || header.type == PEAL_PACKET_SIGNAL ||
         header.type == PEAL_PACKET_REFUSE;
}

enum class EdgeSays : uint8_t {
  kNothing,
  kGap,       // packets before it are missing
  kComplete,  // it is none of them, and all that there were have come
};

// How far a packet's number, or what it says, is ahead of what has come; negative: behind.
inline int32_t edge_ahead(const Peer& from, const peal_wire_header& header) {
  if (counts_on_edge(header)) return static_cast<int8_t>(header.edge - from.heard);
  const uint32_t said = uint32_t{header.fragment} << 8 | header.edge;
  return static_cast<int16_t>(said - from.heard);
}

// What a packet's number says. One that was overtaken, or repeated, says nothing. But who says that
// there were hundreds fewer than have come is right: packets that such an answer overtook were
// taken for later ones, by 256.
inline EdgeSays edge_heard(Peer& from, const peal_wire_header& header) {
  if ((header.flags & PEAL_PACKET_NUMBERED) == 0) return EdgeSays::kNothing;
  int32_t ahead = edge_ahead(from, header);
  const bool counts = counts_on_edge(header);
  if (!counts && ahead < -128) {
    const int32_t too_many = (128 - ahead) / 256 * 256;
    from.heard = static_cast<uint16_t>(from.heard - too_many);
    ahead += too_many;
  }
  if (ahead == 0 && !counts) return EdgeSays::kComplete;
  if (ahead <= 0) return EdgeSays::kNothing;
  from.heard = static_cast<uint16_t>(from.heard + ahead);
  return ahead > (counts ? 1 : 0) ? EdgeSays::kGap : EdgeSays::kNothing;
}

// What a packet's number is about to say is known already: so many packets before it were lost.
inline void edge_explained(Peer& from, const peal_wire_header& header, uint32_t lost) {
  if ((header.flags & PEAL_PACKET_NUMBERED) == 0) return;
  const int32_t ahead = edge_ahead(from, header);
  if (ahead <= 1 || static_cast<uint32_t>(ahead - 1) > lost) return;
  from.heard = static_cast<uint16_t>(from.heard + ahead - 1);
}

// The usual case of it, of a packet that counts and has a number: is it the next one?
inline bool edge_is_next(Peer& from, const peal_wire_header& header) {
  if (header.edge != static_cast<uint8_t>(from.heard + 1)) return false;
  ++from.heard;
  return true;
}

}  // namespace peal
