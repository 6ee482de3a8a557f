// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/wire/wire_check.h"

#include "firmware/base/crc32c.h"

namespace peal {
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
  return (header.flags & ~PEAL_PACKET_FLAGS) == 0 ? kPacketGood : PEAL_COUNTER_DROP_TYPE;
}

}  // namespace peal
