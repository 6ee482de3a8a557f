// SPDX-License-Identifier: BSD-2-Clause
// What can be said of a packet before any state is looked at: length, version, checksum, and
// whether its type goes with what it is of. Everything that does not pass has a counter of its own.
#pragma once

#include "firmware/card_types.h"

namespace peal {

inline constexpr peal_counter kPacketGood = PEAL_COUNTER_RECEIVED;

// The frame: kPacketGood, or the drop counter.
peal_counter check_frame(const Card& card, Packet& packet, uint32_t frame_bytes);

// What packets of one operation there may be.
struct PacketRules {
  bool of_operation;  // not of the group as such
  bool data;          // carries blocks: DATA, and a length of the operation in the header
  bool signals;
  bool refusals;
};

// Does the type go with that, and carry a payload of its length? kPacketGood, or the drop counter.
peal_counter check_type(const peal_wire_header& header, const PacketRules& rules);

}  // namespace peal
