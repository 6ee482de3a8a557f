// SPDX-License-Identifier: BSD-2-Clause
// What can be said of a packet before any state is looked at: length, version, kind, checksum.
// Everything that does not pass has a counter of its own.
#pragma once

#include "firmware/card_types.h"

namespace peal {

inline constexpr peal_counter kPacketGood = PEAL_COUNTER_RECEIVED;

// kPacketGood, or the drop counter.
peal_counter check_frame(const Card& card, Packet& packet, uint32_t frame_bytes);

}  // namespace peal
