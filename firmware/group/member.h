// SPDX-License-Identifier: BSD-2-Clause
// Memberships: a member slot from reservation to its tombstone. What K operations need is in the
// slot, so an accepted operation never fails for want of records.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// The member with that handle if slot and generation are right, else null.
Member* find_member(Card& card, uint32_t handle);
Tombstone* find_tombstone(Card& card, uint32_t handle);

peal_status reserve_member(Card& card, ContextId context, uint32_t ranks, uint32_t rank,
                           RegionId channels, peal_peer_address* address);
peal_status connect_member(Card& card, Member& member, const peal_connect_group& request);
// The slot is free again and its channels are the runner's; leaves no tombstone.
void release_member(Card& card, Member& member);
// Rounds in which this peer is the one ahead: it waits for our signal of them.
uint16_t rounds_ahead_of(const Membership& self, Rank peer);
// Leaves a tombstone, where somebody may still ask, and releases the slot, at once or as soon as no
// DMA is under way. Idempotent.
void bury_member(Card& card, Member& member);
// All pending operations, parked ones too, end with this status.
void member_fail_all(Card& card, Member& member, peal_status status, Rank rank);
// The parked ones alone; a destroy among them only when nothing runs any more.
void member_fail_parked(Card& card, Member& member, peal_status status, Rank rank);
void on_member_timer(Card& card, Member& member);

}  // namespace peal
