// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/wire/edge.h"

namespace peal {

bool edge_heard(Peer& from, const peal_wire_header& header) {
  if ((header.flags & PEAL_PACKET_NUMBERED) == 0) return false;
  const auto ahead = static_cast<int8_t>(static_cast<uint8_t>(header.edge - from.heard));
  if (ahead <= 0) return false;
  from.heard = header.edge;
  const bool counts = header.type == PEAL_PACKET_DATA || header.type == PEAL_PACKET_SIGNAL;
  return ahead > (counts ? 1 : 0);
}

}  // namespace peal
