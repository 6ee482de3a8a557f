// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/wire/wire_check.h"

#include "firmware/base/crc32c.h"

namespace peal {

bool check_sums(Packet& packet) {
  peal_wire_header& header = *packet.header;
  const uint32_t claimed = header.header_crc;
  header.header_crc = 0;
  const bool header_good = crc32c(0, &header, sizeof(header)) == claimed;
  header.header_crc = claimed;
  return header_good && crc32c(0, packet.payload, header.length) == header.payload_crc;
}

}  // namespace peal
