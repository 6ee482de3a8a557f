// SPDX-License-Identifier: BSD-2-Clause
// How packets leave: every header is written here, whole, and summed here. Also the only place that
// takes packets from the port's pool and gives them back, so that what the card holds is always
// known.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// What is the same in all packets of one operation.
struct PacketKind {
  uint8_t type;
  uint8_t operation;
  uint8_t algorithm;
  uint32_t signature;
  uint64_t sequence;
  uint32_t block_bytes;
  uint16_t root;
};

// Null (counted) when the pool is empty.
Packet* take_packet(Card& card);
Packet* share_packet(Card& card, Packet* packet);
void drop_packet(Card& card, Packet* packet);
// One use less; gives the packet back when it was the last.
void unhold_packet(Card& card, Packet* packet);

// Fills a header for a peer; the fields that are not in PacketKind are zero, the origin is the
// root.
void address_packet(Card& card, const Membership& from, const peal_peer_address& to,
                    const PacketKind& kind, peal_wire_header* header);
// To another peer of the same group.
void readdress_packet(const peal_peer_address& to, peal_wire_header* header);
// Sums (where the port does not) and sends. payload_summed: header->payload_crc is right already.
void launch_packet(Card& card, Packet* packet, bool payload_summed);

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
void prepare_small(Card& card, const Membership& from, const peal_peer_address& to,
                   const PacketKind& kind, const SmallPacket& what, Packet* packet);
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
PacketKind membership_kind(const Membership& membership, uint8_t type);

}  // namespace peal
