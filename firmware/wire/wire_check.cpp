// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/wire/wire_check.h"

#include "firmware/base/crc32c.h"

namespace peal {
namespace {

bool known_operation(const peal_wire_header& header) {
  switch (header.operation) {
    case PEAL_OPERATION_NONE:
      return header.algorithm == PEAL_ALGORITHM_NONE;
    case PEAL_OPERATION_BARRIER:
    case PEAL_OPERATION_DESTROY:
    case PEAL_OPERATION_RECYCLE:
      return header.algorithm == PEAL_ALGORITHM_DISSEMINATION && header.block_bytes == 0;
    case PEAL_OPERATION_ALLGATHER:
      return header.algorithm == PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST ||
             header.algorithm == PEAL_ALGORITHM_RECURSIVE_DOUBLING;
    default:
      return false;
  }
}

// Does this type go with this operation, and carry a payload of this length?
peal_counter check_type(const peal_wire_header& header) {
  const bool of_operation = header.operation != PEAL_OPERATION_NONE;
  uint32_t length = 0;
  bool fits = true;
  if ((header.flags & PEAL_PACKET_REPAIR) != 0 && header.type != PEAL_PACKET_DATA &&
      header.type != PEAL_PACKET_SIGNAL) {
    return PEAL_COUNTER_DROP_TYPE;
  }
  switch (header.type) {
    case PEAL_PACKET_DATA:
      return header.operation == PEAL_OPERATION_ALLGATHER ? kPacketGood : PEAL_COUNTER_DROP_TYPE;
    case PEAL_PACKET_SIGNAL:
      fits = of_operation && header.algorithm == PEAL_ALGORITHM_DISSEMINATION;
      break;
    case PEAL_PACKET_NACK:
      fits = of_operation;
      length = sizeof(peal_nack);
      break;
    case PEAL_PACKET_NOT_YET:
      fits = of_operation;
      length = sizeof(peal_not_yet);
      break;
    case PEAL_PACKET_REFUSE:
      fits = of_operation && header.operation != PEAL_OPERATION_RECYCLE;
      length = sizeof(peal_verdict);
      break;
    case PEAL_PACKET_DEATH:
      fits = !of_operation;
      length = sizeof(peal_verdict);
      break;
    case PEAL_PACKET_PROBE:
    case PEAL_PACKET_ALIVE:
    case PEAL_PACKET_FAREWELL:
      fits = !of_operation;
      break;
    default:
      fits = false;
  }
  if (!fits) return PEAL_COUNTER_DROP_TYPE;
  return header.length == length ? kPacketGood : PEAL_COUNTER_DROP_LENGTH;
}

}  // namespace

peal_counter check_frame(const Card& card, Packet& packet, uint32_t frame_bytes) {
  if (frame_bytes < sizeof(peal_wire_header)) return PEAL_COUNTER_DROP_SHORT;
  const peal_wire_header& header = *packet.header;
  if (header.ethertype != __builtin_bswap16(PEAL_ETHERTYPE)) return PEAL_COUNTER_DROP_ETHERTYPE;
  if (header.version != PEAL_WIRE_VERSION) return PEAL_COUNTER_DROP_VERSION;
  if (header.length > CONFIG_MTU_BYTES || packet.payload_bytes > CONFIG_MTU_BYTES) {
    return PEAL_COUNTER_DROP_OVERSIZED;
  }
  if (header.length != packet.payload_bytes) return PEAL_COUNTER_DROP_LENGTH;
  if (card.checksums == Checksums::kSoftware) {
    const uint32_t claimed = header.header_crc;
    packet.header->header_crc = 0;
    const bool header_good = crc32c(0, &header, sizeof(header)) == claimed;
    packet.header->header_crc = claimed;
    if (!header_good || crc32c(0, packet.payload, header.length) != header.payload_crc) {
      return PEAL_COUNTER_DROP_CHECKSUM;
    }
  }
  if ((header.flags & ~PEAL_PACKET_FLAGS) != 0 || !known_operation(header)) {
    return PEAL_COUNTER_DROP_TYPE;
  }
  return check_type(header);
}

}  // namespace peal
