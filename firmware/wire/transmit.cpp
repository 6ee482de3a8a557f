// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/wire/transmit.h"

#include <cstring>

#include "firmware/base/crc32c.h"
#include "firmware/wire/edge.h"

namespace peal {

Packet* take_packet(Card& card) {
  Packet* packet = card.port->allocate_packet();
  if (packet == nullptr) {
    count(card, PEAL_COUNTER_NO_PACKET);
    return nullptr;
  }
  ++card.packets_held;
  return packet;
}

Packet* share_packet(Card& card, Packet* packet) {
  Packet* shared = card.port->share_packet(packet);
  if (shared == nullptr) {
    count(card, PEAL_COUNTER_NO_PACKET);
    return nullptr;
  }
  ++card.packets_held;
  return shared;
}

void drop_packet(Card& card, Packet* packet) {
  PEAL_ASSERT(packet->holds == 0);
  --card.packets_held;
  card.port->release_packet(packet);
}

void unhold_packet(Card& card, Packet* packet) {
  PEAL_ASSERT(packet->holds > 0);
  if (--packet->holds == 0) drop_packet(card, packet);
}

void address_packet(Card& card, const Membership& from, const peal_peer_address& to,
                    const PacketKind& kind, peal_wire_header* header) {
  std::memset(header, 0, sizeof(*header));
  readdress_packet(to, header);
  std::memcpy(header->source, card.identity.mac, PEAL_MAC_BYTES);
  header->ethertype = __builtin_bswap16(PEAL_ETHERTYPE);
  header->version = PEAL_WIRE_VERSION;
  header->type = kind.type;
  header->group = static_cast<uint32_t>(from.group);
  header->identity = from.identity;
  header->signature = kind.signature;
  header->sequence = static_cast<uint32_t>(kind.sequence);
  header->sender = from.rank;
  header->operation = kind.operation;
  header->algorithm = kind.algorithm;
  header->block_bytes = kind.block_bytes;
  header->origin = kind.root;
}

void readdress_packet(const peal_peer_address& to, peal_wire_header* header) {
  std::memcpy(header->destination, to.mac, PEAL_MAC_BYTES);
  header->member = to.member;
}

uint32_t payload_sum(const Card& card, const uint8_t* payload, uint32_t length) {
  return card.checksums == Checksums::kSoftware ? crc32c(0, payload, length) : 0;
}

void launch_packet(Card& card, Packet* packet, bool payload_summed) {
  peal_wire_header* header = packet->header;
  if (card.checksums == Checksums::kSoftware) {
    if (!payload_summed) header->payload_crc = payload_sum(card, packet->payload, header->length);
    header->header_crc = 0;
    header->header_crc = crc32c(0, header, sizeof(*header));
  }
  --card.packets_held;
  card.port->send(packet);
}

void prepare_small(Card& card, const Membership& from, const peal_peer_address& to,
                   const PacketKind& kind, const SmallPacket& what, Packet* packet) {
  address_packet(card, from, to, kind, packet->header);
  packet->header->piece = what.piece;
  if (what.origin != 0) packet->header->origin = what.origin;
  packet->header->hop = what.hop;
  packet->header->flags = what.flags;
  packet->header->length = what.length;
  if (what.counted != nullptr) {
    edge_count(*what.counted, packet->header);
  } else if (!counts_on_edge(*packet->header)) {
    const uint32_t entry = peer_entry(from.rank, to.rank, from.ranks);
    if (entry != kNoPeer) edge_tell(from.peers[entry], packet->header);
  }
  if (what.length > 0) std::memcpy(packet->payload, what.payload, what.length);
}

bool send_small(Card& card, const Membership& from, const peal_peer_address& to,
                const PacketKind& kind, const SmallPacket& what) {
  Packet* packet = take_packet(card);
  if (packet == nullptr) return false;
  prepare_small(card, from, to, kind, what, packet);
  launch_packet(card, packet, false);
  return true;
}

peal_nack question(const Card& card, uint64_t fragments) {
  return {fragments, static_cast<uint32_t>(card.now / 1000), 0};
}

peal_peer_address own_address(const Card& card, const Membership& self) {
  peal_peer_address address;
  std::memcpy(address.mac, card.identity.mac, PEAL_MAC_BYTES);
  address.rank = self.rank;
  address.member = self.handle;
  address.incarnation = card.identity.incarnation;
  address.geometry = geometry_hash();
  return address;
}

uint32_t signature_seed(uint64_t group, uint32_t choice_hash) {
  const uint32_t words[4] = {static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32),
                             choice_hash, geometry_hash()};
  return crc32c(0, words, sizeof(words));
}

uint32_t signature_of(const Membership& membership, uint8_t operation, uint8_t algorithm, Rank root,
                      uint32_t block_bytes) {
  const uint32_t words[3] = {static_cast<uint32_t>(operation << 8 | algorithm), root, block_bytes};
  return crc32c(membership.seed, words, sizeof(words));
}

PacketKind membership_kind(const Membership& membership, uint8_t type) {
  return {type, PEAL_OPERATION_NONE, PEAL_ALGORITHM_NONE, membership.seed, 0, 0, 0};
}

}  // namespace peal
