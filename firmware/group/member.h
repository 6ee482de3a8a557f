// SPDX-License-Identifier: BSD-2-Clause
// Memberships: a member slot from reservation to its tombstone. What K operations need is in the
// slot, so an accepted operation never fails for want of records.
#pragma once

#include "abi/admin.h"
#include "firmware/card_types.h"

namespace peal {

// The member with that handle if slot and generation are right, else null.
inline Member* find_member(Card& card, uint32_t handle) {
  const uint32_t index = handle & 0xffff;
  if (index >= CONFIG_CARD_MEMBERS) return nullptr;
  Member& member = card.members[index];
  const bool lives = member.phase == MemberPhase::kReserved || member.phase == MemberPhase::kActive;
  return lives && member.generation == handle >> 16 ? &member : nullptr;
}

peal_status reserve_member(Card& card, ContextId context, uint32_t ranks, uint32_t rank,
                           RegionId channels, peal_peer_address* address);
peal_status add_peers(Member& member, const peal_add_peers& request);
peal_status connect_member(Card& card, Member& member, const peal_connect_group& request);
// The slot is free again and its channels are the runner's; leaves no tombstone.
void release_member(Card& card, Member& member);
// Leaves a tombstone, where somebody may still ask;
// the slot is released as soon as no DMA is under way. Idempotent.
void bury_member(Card& card, Member& member);
// A member that leaves without asking anybody is a death, and its card tells: poisons the group,
// ends what runs, and buries.
void leave_group(Card& card, Member& member);

}  // namespace peal
