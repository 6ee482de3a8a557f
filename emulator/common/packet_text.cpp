// SPDX-License-Identifier: BSD-2-Clause
// The words of a trace. peal-sim, peal-nic and the unit tests' trace program print through here and
// nowhere else.
#include "emulator/common/packet_text.h"

#include "base/names.h"

namespace peal::emulator {
std::string packet_text(const peal_wire_header& header, uint32_t receiver_card) {
  std::string text = std::to_string(header.sender);
  text += '>';
  text += receiver_card == kNoCard ? std::string("?") : std::to_string(receiver_card);
  text += ' ' + names::packet_type(header.type);
  text += ' ' + names::operation(header.operation);
  text += ' ' + names::algorithm(header.algorithm);
  text += " seq=" + std::to_string(header.sequence);
  text += " piece=" + std::to_string(header.piece);
  text += " origin=" + std::to_string(header.origin);
  text += " hop=" + std::to_string(header.hop);
  text += " frag=" + std::to_string(header.fragment);
  text += " len=" + std::to_string(header.length);
  if (header.flags & PEAL_PACKET_REPAIR) text += " repair";
  return text;
}

std::string packet_text(const peal_wire_header& header) {
  return packet_text(header, card_of_mac(header.destination));
}

}  // namespace peal::emulator
