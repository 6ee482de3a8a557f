// SPDX-License-Identifier: BSD-2-Clause
// What can be said of a packet before any state is looked at: length, version, checksum, and
// whether its type goes with what it is of. Everything that does not pass has a counter of its own.
#pragma once

#include <initializer_list>

#include "firmware/card_types.h"
#include "firmware/payload.h"

namespace peal {

inline constexpr peal_counter kPacketGood = PEAL_COUNTER_RECEIVED;

constexpr uint32_t packet_types(std::initializer_list<peal_packet_type> types) {
  uint32_t mask = 0;
  for (const peal_packet_type type : types) mask |= 1u << type;
  return mask;
}

// Types that carry bytes behind a body.
inline constexpr uint32_t kBodyTypes =
    packet_types({PEAL_PACKET_PUT, PEAL_PACKET_STREAM, PEAL_PACKET_ANNOUNCE});

// Is there an MTU, and no more, behind what its type puts before it?
inline bool is_short_enough(const peal_wire_header& header) {
  if (header.length <= CONFIG_MTU_BYTES) return true;
  const bool body = header.type < PEAL_PACKET_TYPE_COUNT && (kBodyTypes >> header.type & 1) != 0;
  return body && header.length <= kPayloadBytes;
}

// Does the frame hold a header, and as many bytes as that says?
inline bool is_whole(const Packet& packet, uint32_t frame_bytes) {
  return frame_bytes >= sizeof(peal_wire_header) && packet.header->length == packet.payload_bytes &&
         is_short_enough(*packet.header);
}

// Are the sums of a whole packet right?
bool sums_are_right(const Packet& packet);

// Is it of this protocol? kPacketGood, or the drop counter.
inline peal_counter check_protocol(const peal_wire_header& header) {
  if (header.ethertype != __builtin_bswap16(PEAL_ETHERTYPE)) return PEAL_COUNTER_DROP_ETHERTYPE;
  return header.version == PEAL_WIRE_VERSION ? kPacketGood : PEAL_COUNTER_DROP_VERSION;
}

// Why a frame that is not whole is dropped, and why a whole one is whose sums are wrong.
[[gnu::cold]] peal_counter why_not_whole(const Packet& packet, uint32_t frame_bytes);
[[gnu::cold]] peal_counter why_not_right(const Packet& packet);

// Which packets of one operation there may be.
struct PacketRules {
  uint32_t types;  // bit per enum peal_packet_type
  bool blocks;     // the header carries a length of the operation's blocks
};

constexpr bool carries_blocks(const PacketRules& rules) {
  return (rules.types & packet_types({PEAL_PACKET_DATA})) != 0;
}

// May it say that packets were lost?
inline bool may_tell_of_losses(const peal_wire_header& header) {
  return header.type == PEAL_PACKET_NACK || header.type == PEAL_PACKET_NOT_YET ||
         (header.type == PEAL_PACKET_SIGNAL && header.operation == PEAL_OPERATION_RECYCLE);
}
// Types that may answer a NACK.
inline constexpr uint32_t kRepairTypes = packet_types({PEAL_PACKET_DATA, PEAL_PACKET_SIGNAL});

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
    case PEAL_PACKET_SKIP:
      return sizeof(peal_p2p_skip);
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

// Of those types: a body, and no more bytes behind it than there may be.
inline bool carries_body(const peal_wire_header& header) {
  return header.length - uint32_t{PEAL_P2P_BODY_BYTES} <= p2p::kChunkBytes;
}

// Is there such a packet, and does it carry a payload of its type's length? kPacketGood, or the
// drop counter.
inline peal_counter check_type(const peal_wire_header& header, const PacketRules& rules) {
  if (header.type >= PEAL_PACKET_TYPE_COUNT || (rules.types >> header.type & 1) == 0) {
    return PEAL_COUNTER_DROP_TYPE;
  }
  if (!rules.blocks && header.block_bytes != 0) return PEAL_COUNTER_DROP_TYPE;
  if ((header.flags & PEAL_PACKET_LOSSES) != 0 && !may_tell_of_losses(header)) {
    return PEAL_COUNTER_DROP_TYPE;
  }
  if ((header.flags & PEAL_PACKET_REPAIR) != 0 && (kRepairTypes >> header.type & 1) == 0) {
    return PEAL_COUNTER_DROP_TYPE;
  }
  if (header.type == PEAL_PACKET_DATA) return kPacketGood;  // its operation knows the length
  if ((kBodyTypes >> header.type & 1) != 0) {
    return carries_body(header) ? kPacketGood : PEAL_COUNTER_DROP_LENGTH;
  }
  return header.length == payload_bytes(header.type) ? kPacketGood : PEAL_COUNTER_DROP_LENGTH;
}

}  // namespace peal
