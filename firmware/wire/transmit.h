// SPDX-License-Identifier: BSD-2-Clause
// How packets leave: every header is written here, whole, and summed here. Also the only place that
// takes packets from the port's pool and gives them back, so that what the card holds is always
// known.
#pragma once

#include <cstring>

#include "firmware/card_types.h"
#include "firmware/wire/header_sum.h"

namespace peal {

// What the headers of one operation, of recycling, or of a group itself have in common: a pattern,
// written once, of which a header is a copy with the rest filled in. Its origin is the root. Those
// that come are compared with it, too: so it names its own member, and the usual type.
peal_wire_header membership_pattern(const Card& card, const Membership& from);
peal_wire_header operation_pattern(const Membership& from, uint8_t operation, uint8_t algorithm,
                                   uint8_t type, uint32_t signature, uint64_t sequence);

// Packets of one kind are alike but for their places.
struct PacketKind {
  const peal_wire_header& pattern;
  uint8_t type;
  uint32_t sequence;
};

// Null (counted) when the pool is empty.
inline Packet* note_taken(Card& card, Packet* packet) {
  if (packet == nullptr) {
    count(card, PEAL_COUNTER_NO_PACKET);
  } else {
    ++card.packets_held;
  }
  return packet;
}
inline Packet* take_packet(Card& card) { return note_taken(card, card.port->allocate_packet()); }
inline Packet* share_packet(Card& card, Packet* packet) {
  return note_taken(card, card.port->share_packet(packet));
}
inline void drop_packet(Card& card, Packet* packet) {
  PEAL_ASSERT(packet->holds == 0);
  --card.packets_held;
  card.port->release_packet(packet);
}
// One use less; gives the packet back when it was the last.
inline void unhold_packet(Card& card, Packet* packet) {
  if (packet->holds == 1) {
    packet->holds = 0;
    drop_packet(card, packet);
  } else {
    PEAL_ASSERT(packet->holds > 0);
    --packet->holds;
  }
}
// One that came, when its entry point is over: the card holds it where somebody has kept it.
inline void let_go_of_arrival(Card& card, Packet* packet) {
  if (packet->holds == 1) {
    packet->holds = 0;
    card.port->release_packet(packet);
  } else {
    PEAL_ASSERT(packet->holds > 0);
    --packet->holds;
    ++card.packets_held;
  }
}

// To this peer of the group.
inline void readdress_packet(const peal_peer_address& to, peal_wire_header* header) {
  std::memcpy(header->destination, to.mac, PEAL_MAC_BYTES);
  header->member = to.member;
}
// Fills a header for a peer with what the pattern says, its flags included.
inline void begin_header(const peal_peer_address& to, const PacketKind& kind,
                         peal_wire_header* header) {
  *header = kind.pattern;
  header->type = kind.type;
  header->sequence = kind.sequence;
  readdress_packet(to, header);
}
// Fills a header for a peer; the fields that the pattern does not say are zero, and it has no
// number yet.
inline void address_packet(const peal_peer_address& to, const PacketKind& kind,
                           peal_wire_header* header) {
  begin_header(to, kind, header);
  header->flags = 0;
}
// Writes both sums into the header.
void sum_packet(Packet* packet);
// Sums (where the port does not) and sends. payload_summed: header->payload_crc is right already.
// Collectives have the first engine.
inline void launch_packet(Card& card, Packet* packet, bool payload_summed, uint32_t engine = 0) {
  if (card.checksums == Checksums::kSoftware) {
    if (payload_summed) {
      packet->header->header_crc = header_sum(*packet->header);
    } else {
      sum_packet(packet);
    }
  }
  --card.packets_held;
  card.port->send(packet, engine);
}

// The same of one that leaves as soon as its header is written: nobody sees that the card holds it.
inline Packet* begin_packet(Card& card) {
  Packet* packet = card.port->allocate_packet();
  if (packet == nullptr) count(card, PEAL_COUNTER_NO_PACKET);
  return packet;
}
inline void end_packet(Card& card, Packet* packet) {
  if (card.checksums == Checksums::kSoftware) sum_packet(packet);
  card.port->send(packet, 0);
}

// What goes into payload_crc; zero where the firmware does not sum.
uint32_t payload_sum(const Card& card, const uint8_t* payload, uint32_t length);

// A packet without payload, or with a small one. False (counted) when the pool is empty.
struct SmallPacket {
  uint32_t piece = 0;
  uint16_t origin = 0;  // zero: the root
  uint8_t hop = 0;
  uint8_t flags = 0;
  const void* payload = nullptr;
  uint16_t length = 0;
  Peer* counted = nullptr;  // one more packet of its edge
};
void prepare_small(const Membership& from, const peal_peer_address& to, const PacketKind& kind,
                   const SmallPacket& what, Packet* packet);
bool send_small(Card& card, const Membership& from, const peal_peer_address& to,
                const PacketKind& kind, const SmallPacket& what);

// Payload of a NACK that is sent now.
peal_nack question(const Card& card, uint64_t fragments);

peal_peer_address own_address(const Card& card, const Membership& self);

// What all signatures of a group begin with, and what packets of no operation carry: two cards that
// agree on it are in the same group, cut messages alike and choose algorithms alike.
uint32_t signature_seed(uint64_t group, uint32_t choice_hash);
uint32_t signature_of(const Membership& membership, uint8_t operation, uint8_t algorithm, Rank root,
                      uint32_t block_bytes);
// Kind of packets of no operation.
inline PacketKind membership_kind(const Membership& membership, uint8_t type) {
  return {membership.pattern, type, 0};
}

}  // namespace peal
