// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/wire/wire_check.h"

#include "firmware/base/crc32c_blocks.h"
#include "firmware/wire/header_sum.h"

namespace peal {

PEAL_CRC_TARGET bool sums_are_right(const Packet& packet) {
  const peal_wire_header& header = *packet.header;
  const uint32_t wrong = header_sum(header) ^ header.header_crc;
  const uint64_t sum = crc32c_steps::sum_bytes(0xffffffff, packet.payload, header.length);
  return (wrong | (~static_cast<uint32_t>(sum) ^ header.payload_crc)) == 0;
}

peal_counter why_not_whole(const Packet& packet, uint32_t frame_bytes) {
  if (frame_bytes < sizeof(peal_wire_header)) return PEAL_COUNTER_DROP_SHORT;
  const peal_wire_header& header = *packet.header;
  const peal_counter protocol = check_protocol(header);
  if (protocol != kPacketGood) return protocol;
  const bool oversized = !is_short_enough(header) || packet.payload_bytes > kPayloadBytes;
  return oversized ? PEAL_COUNTER_DROP_OVERSIZED : PEAL_COUNTER_DROP_LENGTH;
}

peal_counter why_not_right(const Packet& packet) {
  const peal_counter protocol = check_protocol(*packet.header);
  return protocol != kPacketGood ? protocol : PEAL_COUNTER_DROP_CHECKSUM;
}

}  // namespace peal
