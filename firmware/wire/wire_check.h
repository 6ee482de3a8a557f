// SPDX-License-Identifier: BSD-2-Clause
// What can be said of a packet before any state is looked at: length, version, checksum, and
// whether its type goes with what it is of. Everything that does not pass has a counter of its own.
#pragma once

#include <initializer_list>

#include "firmware/base/crc32c.h"
#include "firmware/card_types.h"
#include "firmware/wire/header_sum.h"

namespace peal {

inline constexpr peal_counter kPacketGood = PEAL_COUNTER_RECEIVED;

// Are the sums right?
inline bool check_sums(const Packet& packet) {
  const peal_wire_header& header = *packet.header;
  return header_sum(header) == header.header_crc &&
         crc32c(0, packet.payload, header.length) == header.payload_crc;
}

// The frame: kPacketGood, or the drop counter.
inline peal_counter check_frame(const Card& card, const Packet& packet, uint32_t frame_bytes) {
  if (frame_bytes < sizeof(peal_wire_header)) return PEAL_COUNTER_DROP_SHORT;
  const peal_wire_header& header = *packet.header;
  if (header.ethertype != __builtin_bswap16(PEAL_ETHERTYPE)) return PEAL_COUNTER_DROP_ETHERTYPE;
  if (header.version != PEAL_WIRE_VERSION) return PEAL_COUNTER_DROP_VERSION;
  if (header.length > CONFIG_MTU_BYTES || packet.payload_bytes > CONFIG_MTU_BYTES) {
    return PEAL_COUNTER_DROP_OVERSIZED;
  }
  if (header.length != packet.payload_bytes) return PEAL_COUNTER_DROP_LENGTH;
  if (card.checksums == Checksums::kSoftware && !check_sums(packet)) {
    return PEAL_COUNTER_DROP_CHECKSUM;
  }
  return (header.flags & ~PEAL_PACKET_FLAGS) == 0 ? kPacketGood : PEAL_COUNTER_DROP_TYPE;
}

// Which packets of one operation there may be.
struct PacketRules {
  uint32_t types;  // bit per enum peal_packet_type
  bool blocks;     // the header carries a length of the operation's blocks
};

constexpr uint32_t packet_types(std::initializer_list<peal_packet_type> types) {
  uint32_t mask = 0;
  for (const peal_packet_type type : types) mask |= 1u << type;
  return mask;
}

constexpr bool carries_blocks(const PacketRules& rules) {
  return (rules.types & packet_types({PEAL_PACKET_DATA})) != 0;
}

// Types that may answer a NACK.
inline constexpr uint32_t kRepairTypes = packet_types({PEAL_PACKET_DATA, PEAL_PACKET_SIGNAL});

// Types that carry bytes behind a body.
inline constexpr uint32_t kBodyTypes =
    packet_types({PEAL_PACKET_PUT, PEAL_PACKET_STREAM, PEAL_PACKET_ANNOUNCE});

// Bytes of the payload of all types but DATA and those with a body.
constexpr uint32_t payload_bytes(uint8_t type) {
  switch (type) {
    case PEAL_PACKET_NACK:
      return sizeof(peal_nack);
    case PEAL_PACKET_NOT_YET:
      return sizeof(peal_not_yet);
    case PEAL_PACKET_REFUSE:
    case PEAL_PACKET_DEATH:
      return sizeof(peal_verdict);
    case PEAL_PACKET_OPEN:
    case PEAL_PACKET_ACCEPT:
    case PEAL_PACKET_CLOSE:
      return sizeof(peal_p2p_open);
    case PEAL_PACKET_ACK:
      return sizeof(peal_p2p_ack);
    case PEAL_PACKET_REFUSED:
      return sizeof(peal_p2p_refused);
    case PEAL_PACKET_SEEK:
      return sizeof(peal_p2p_seek);
    case PEAL_PACKET_READY:
      return sizeof(peal_p2p_ready);
    case PEAL_PACKET_GET:
      return sizeof(peal_p2p_get);
    case PEAL_PACKET_DONE:
      return sizeof(peal_p2p_done);
    case PEAL_PACKET_FAILURE:
    case PEAL_PACKET_KNOWN:
      return sizeof(peal_failed);
    default:
      return 0;
  }
}

// Is there such a packet, and does it carry a payload of its type's length? kPacketGood, or the
// drop counter.
inline peal_counter check_type(const peal_wire_header& header, const PacketRules& rules) {
  if (header.type >= PEAL_PACKET_TYPE_COUNT || (rules.types >> header.type & 1) == 0) {
    return PEAL_COUNTER_DROP_TYPE;
  }
  if (!rules.blocks && header.block_bytes != 0) return PEAL_COUNTER_DROP_TYPE;
  if ((header.flags & PEAL_PACKET_REPAIR) != 0 && (kRepairTypes >> header.type & 1) == 0) {
    return PEAL_COUNTER_DROP_TYPE;
  }
  if (header.type == PEAL_PACKET_DATA) return kPacketGood;  // its operation knows the length
  if ((kBodyTypes >> header.type & 1) != 0) {
    const uint32_t most = PEAL_P2P_BODY_BYTES + p2p::kChunkBytes;
    const bool good = header.length >= PEAL_P2P_BODY_BYTES && header.length <= most;
    return good ? kPacketGood : PEAL_COUNTER_DROP_LENGTH;
  }
  return header.length == payload_bytes(header.type) ? kPacketGood : PEAL_COUNTER_DROP_LENGTH;
}

}  // namespace peal
