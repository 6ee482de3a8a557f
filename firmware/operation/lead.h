// SPDX-License-Identifier: BSD-2-Clause
// How far what a card sends in direct exchanges is ahead of what comes. Every rank sends as many
// blocks there as it gets, so a card whose lead grows has receivers, itself among them, that do not
// keep up: what it sends lies in their queues, and where these are full it is lost. So beyond a
// lead of what half a queue holds a card lets its operations wait, for blocks, or for a turn each
// behind its own queue (a timer has its turn when what had come before it was served).
// What was sent before the last such turn and has had nothing in return is for ranks that are late,
// most likely: they are not waited for. docs/decisions/0050
#pragma once

#include "firmware/card_types.h"

namespace peal {

// Receive queues of cards hold 1,024 packets, or as many as there are buffers for.
inline constexpr int32_t kLeadMost = CONFIG_PACKET_BUFFERS < 512 ? CONFIG_PACKET_BUFFERS : 512;
// What an operation may begin in its turn whatever the lead: all go on, if ever so slowly.
inline constexpr uint32_t kLeadOfTurn = 4;

inline void lead_begun(Lead& lead) {
  ++lead.packets;
  ++lead.begun;
}
inline void lead_returned(Lead& lead) { lead.packets -= lead.packets > -kLeadMost ? 1 : 0; }
// What had come has been served.
inline void lead_turn(Lead& lead) {
  if (lead.packets > lead.begun) lead.packets = lead.begun;
  lead.begun = 0;
}

}  // namespace peal
