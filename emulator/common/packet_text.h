// SPDX-License-Identifier: BSD-2-Clause
// One line of text per packet, the same in every home of the firmware, so that sorted traces of the
// same work can be compared byte by byte:
//   2>3 DATA allgather all-to-all-broadcast seq=0 piece=0 origin=1 hop=0 frag=0 len=64
// Nothing in it depends on the run: no handles, no incarnations, no checksums, no times.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "abi/wire.h"

namespace peal::emulator {

// MAC address of card `index` of an emulated machine room: 02:50:65:61 and the index.
inline void card_mac(uint32_t index, uint8_t mac[PEAL_MAC_BYTES]) {
  mac[0] = 0x02;
  mac[1] = 0x50;
  mac[2] = 0x65;
  mac[3] = 0x61;
  mac[4] = static_cast<uint8_t>(index >> 8);
  mac[5] = static_cast<uint8_t>(index);
}

inline constexpr uint32_t kNoCard = ~0u;

// The card with this address, or kNoCard for an address that card_mac() does not give.
inline uint32_t card_of_mac(const uint8_t mac[PEAL_MAC_BYTES]) {
  constexpr uint8_t kRoom[] = {0x02, 0x50, 0x65, 0x61};
  if (std::memcmp(mac, kRoom, sizeof(kRoom)) != 0) return kNoCard;
  return (uint32_t{mac[4]} << 8) | mac[5];
}

// The line of one packet, without line end. The sender is the rank in the header; the receiver is
// the card index (the same as the rank where rank i lives on card i), "?" for kNoCard. A repair has
// " repair" behind it.
std::string packet_text(const peal_wire_header& header, uint32_t receiver_card);
// The receiver from the header's destination address.
std::string packet_text(const peal_wire_header& header);

}  // namespace peal::emulator
