// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/wire/wire_check.h"

#include "firmware/base/crc32c.h"
#include "firmware/wire/header_sum.h"

namespace peal {

bool check_sums(const Packet& packet) {
  const peal_wire_header& header = *packet.header;
  return header_sum(header) == header.header_crc &&
         crc32c(0, packet.payload, header.length) == header.payload_crc;
}

}  // namespace peal
