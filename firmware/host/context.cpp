// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/host/context.h"

#include "firmware/group/member.h"
#include "firmware/group/verdict.h"
#include "firmware/operation/command_check.h"

namespace peal {
namespace {

bool is_open(const Card& card, ContextId context) {
  return context < CONFIG_CONTEXTS && card.contexts[context].phase == ContextPhase::kOpen;
}

Member* own_member(Card& card, ContextId context, uint32_t handle) {
  Member* member = find_member(card, handle);
  return member != nullptr && member->context == context ? member : nullptr;
}

}  // namespace

void context_try_close(Card& card, ContextId context) {
  if (card.contexts[context].phase != ContextPhase::kClosing) return;
  for (const Member& member : card.members) {
    if (member.phase != MemberPhase::kFree && member.context == context) return;
  }
  for (MemoryKey& key : card.keys) {
    if (key.in_use && key.context == context) {
      key.in_use = false;
      key.uses = 0;
    }
  }
  card.contexts[context] = {};
}

peal_status card_open_context(Card& card, ContextId* context, ClientId client) {
  for (ContextId id = 0; id < CONFIG_CONTEXTS; ++id) {
    if (card.contexts[id].phase != ContextPhase::kFree) continue;
    card.contexts[id] = {.phase = ContextPhase::kOpen, .client = client, .outstanding = 0};
    *context = id;
    return PEAL_STATUS_OK;
  }
  return PEAL_STATUS_NO_RESOURCES;
}

void card_close_context(Card& card, ContextId context, TimeNs now) {
  if (!is_open(card, context)) return;
  card.now = now;
  card.contexts[context].phase = ContextPhase::kClosing;
  for (Member& member : card.members) {
    if (member.context != context) continue;
    if (member.phase == MemberPhase::kReserved) release_member(card, member);
    if (member.phase != MemberPhase::kActive) continue;
    // A closed host connection is a death, and its card tells.
    poison(card, member, member.membership.rank);
    if (member.phase == MemberPhase::kActive) bury_member(card, member);
  }
  context_try_close(card, context);
}

bool card_context_quiet(const Card& card, ContextId context) {
  return context >= CONFIG_CONTEXTS || card.contexts[context].phase == ContextPhase::kFree;
}

peal_status card_register_memory(Card& card, ContextId context, RegionId region, uint64_t bytes,
                                 uint32_t access, uint32_t* key) {
  if (!is_open(card, context)) return PEAL_STATUS_CLOSED;
  if (access == 0 || (access & ~PEAL_ACCESS_FLAGS) != 0) return PEAL_STATUS_BAD_ACCESS;
  if (bytes == 0) return PEAL_STATUS_BAD_LENGTH;
  for (uint32_t index = 0; index < CONFIG_MEMORY_KEYS; ++index) {
    MemoryKey& entry = card.keys[index];
    if (entry.in_use) continue;
    const auto generation =
        static_cast<uint16_t>(entry.generation == 0xffff ? 1 : entry.generation + 1);
    entry = {.in_use = true,
             .generation = generation,
             .access = static_cast<uint16_t>(access),
             .uses = 0,
             .context = context,
             .region = region,
             .bytes = bytes};
    *key = static_cast<uint32_t>(generation) << 16 | index;
    return PEAL_STATUS_OK;
  }
  return PEAL_STATUS_NO_RESOURCES;
}

peal_status card_unregister_memory(Card& card, ContextId context, uint32_t key, RegionId* region) {
  MemoryKey* entry = find_key(card, context, key);
  if (entry == nullptr) return PEAL_STATUS_BAD_KEY;
  if (entry->uses > 0) return PEAL_STATUS_BUSY;
  entry->in_use = false;
  *region = entry->region;
  return PEAL_STATUS_OK;
}

peal_status card_reserve_group(Card& card, ContextId context, const peal_reserve_group& request,
                               RegionId channels, TimeNs now, peal_peer_address* address) {
  if (!is_open(card, context)) return PEAL_STATUS_CLOSED;
  card.now = now;
  return reserve_member(card, context, request.ranks, request.rank, channels, address);
}

peal_status card_connect_group(Card& card, ContextId context, const peal_connect_group& request,
                               TimeNs now) {
  Member* member = own_member(card, context, request.member);
  if (member == nullptr) return PEAL_STATUS_BAD_GROUP;
  card.now = now;
  return connect_member(card, *member, request);
}

peal_status card_abandon_group(Card& card, ContextId context, uint32_t handle, TimeNs now) {
  Member* member = own_member(card, context, handle);
  if (member == nullptr) return PEAL_STATUS_BAD_GROUP;
  if (member->phase == MemberPhase::kReserved) {
    release_member(card, *member);
    return PEAL_STATUS_OK;
  }
  card.now = now;
  // Connected: others may have posted already, and must not wait for ever.
  poison(card, *member, member->membership.rank);
  if (member->phase == MemberPhase::kActive) bury_member(card, *member);
  return PEAL_STATUS_OK;
}

bool card_channel_released(Card& card, RegionId* channels) {
  if (card.released_count == 0) return false;
  *channels = card.released[--card.released_count];
  return true;
}

}  // namespace peal
