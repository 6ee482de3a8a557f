// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/wire/transmit.h"

#include <cstring>

#include "firmware/base/crc32c.h"
#include "firmware/wire/edge.h"

namespace peal {

peal_wire_header membership_pattern(const Card& card, const Membership& from) {
  peal_wire_header pattern = {};
  std::memcpy(pattern.source, card.identity.mac, PEAL_MAC_BYTES);
  pattern.ethertype = __builtin_bswap16(PEAL_ETHERTYPE);
  pattern.version = PEAL_WIRE_VERSION;
  pattern.group = static_cast<uint32_t>(from.group);
  pattern.member = from.handle;
  pattern.identity = from.identity;
  pattern.signature = from.seed;
  pattern.sender = from.rank;
  return pattern;
}

peal_wire_header operation_pattern(const Membership& from, uint8_t operation, uint8_t algorithm,
                                   uint8_t type, uint32_t signature, uint64_t sequence) {
  peal_wire_header pattern = from.pattern;
  pattern.type = type;
  pattern.signature = signature;
  pattern.sequence = static_cast<uint32_t>(sequence);
  pattern.operation = operation;
  pattern.algorithm = algorithm;
  return pattern;
}

uint32_t payload_sum(const Card& card, const uint8_t* payload, uint32_t length) {
  return card.checksums == Checksums::kSoftware ? crc32c(0, payload, length) : 0;
}

void sum_packet(Packet* packet) {
  packet->header->payload_crc = crc32c(0, packet->payload, packet->header->length);
  packet->header->header_crc = header_sum(*packet->header);
}

void prepare_small(const Membership& from, const peal_peer_address& to, const PacketKind& kind,
                   const SmallPacket& what, Packet* packet) {
  begin_header(to, kind, packet->header);
  packet->header->piece = what.piece;
  if (what.origin != 0) packet->header->origin = what.origin;
  packet->header->hop = what.hop;
  packet->header->flags = what.flags;
  const bool talks = kind.type == PEAL_PACKET_NACK || kind.type == PEAL_PACKET_NOT_YET;
  if (talks && from.losses) packet->header->flags |= PEAL_PACKET_LOSSES;
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
  prepare_small(from, to, kind, what, packet);
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

}  // namespace peal
