// SPDX-License-Identifier: BSD-2-Clause
// What a member leaves behind, so that nobody takes it for dead who still asks: it answers late
// NACKs of the group's last barriers, or names the dead. docs/decisions/0008.
#pragma once

#include "firmware/card_types.h"

namespace peal {

Tombstone* find_tombstone(Card& card, uint32_t handle);
// May the client have one more? Every member may need one some day, so this is asked when a member
// is reserved.
[[nodiscard]] bool has_tombstone_place(const Card& card, ClientId client);
// Keeps what others may still ask of the member; none where everybody has said farewell.
void leave_tombstone(Card& card, const Member& member);
// Rounds in which this peer is the one ahead: it waits for our signal of them.
uint16_t rounds_ahead_of(const Membership& self, Rank peer);

}  // namespace peal
