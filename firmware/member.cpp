// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/member.h"

#include <cstring>

#include "firmware/collective/operation.h"
#include "firmware/collective/recycling.h"
#include "firmware/liveness.h"
#include "firmware/transmit.h"

namespace peal {
namespace {

uint32_t handle_of(const Member& member) {
  return static_cast<uint32_t>(member.generation) << 16 | member.index;
}

Tombstone& dig_tombstone(Card& card) {
  Tombstone* oldest = &card.tombstones[0];
  for (Tombstone& tombstone : card.tombstones) {
    if (!tombstone.in_use) return tombstone;
    if (tombstone.buried_ns < oldest->buried_ns) oldest = &tombstone;
  }
  count(card, PEAL_COUNTER_TOMBSTONES_REUSED);
  return *oldest;
}

bool peers_are_right(const Membership& self, const peal_connect_group& request) {
  for (uint32_t j = 0; j < self.rounds; ++j) {
    const uint32_t distance = 1u << j;
    if (request.peers[peer_ahead(j)].rank != plus(self.rank, distance, self.ranks) ||
        request.peers[peer_behind(j)].rank != minus(self.rank, distance, self.ranks)) {
      return false;
    }
  }
  return true;
}

}  // namespace

Member* find_member(Card& card, uint32_t handle) {
  const uint32_t index = handle & 0xffff;
  if (index >= CONFIG_CARD_MEMBERS) return nullptr;
  Member& member = card.members[index];
  const bool good = member.phase != MemberPhase::kFree && member.generation == handle >> 16;
  return good ? &member : nullptr;
}

Tombstone* find_tombstone(Card& card, uint32_t handle) {
  for (Tombstone& tombstone : card.tombstones) {
    if (tombstone.in_use && tombstone.membership.handle == handle) return &tombstone;
  }
  return nullptr;
}

peal_status reserve_member(Card& card, ContextId context, uint32_t ranks, uint32_t rank,
                           RegionId channels, peal_peer_address* address) {
  if (ranks == 0 || ranks > CONFIG_GROUP_RANKS_MAX || rank >= ranks) return PEAL_STATUS_BAD_RANK;
  Member* member = nullptr;
  for (Member& slot : card.members) {
    if (slot.phase == MemberPhase::kFree) {
      member = &slot;
      break;
    }
  }
  if (member == nullptr || card.released_count >= CONFIG_CARD_MEMBERS) {
    count(card, PEAL_COUNTER_NO_MEMBER);
    return PEAL_STATUS_NO_RESOURCES;
  }
  // Staging is left as it is: 64 KiB that nobody reads before it is written.
  const auto generation =
      static_cast<uint16_t>(member->generation + 1 == 0x10000 ? 1 : member->generation + 1);
  std::memset(static_cast<void*>(member), 0, offsetof(Member, staging));
  member->phase = MemberPhase::kReserved;
  member->generation = generation;
  member->index = static_cast<uint16_t>(member - card.members);
  member->context = context;
  member->channels = channels;
  member->timer.kind = TimerKind::kMember;
  member->timer.member = member->index;
  for (uint32_t slot = 0; slot < kChannels; ++slot) {
    Timer& timer = member->operations[slot].timer;
    timer.kind = TimerKind::kOperation;
    timer.member = member->index;
    timer.slot = static_cast<uint8_t>(slot);
  }
  Membership& self = member->membership;
  self.handle = handle_of(*member);
  self.rank = static_cast<uint16_t>(rank);
  self.ranks = static_cast<uint16_t>(ranks);
  self.rounds = static_cast<uint8_t>(ceil_log2(ranks));
  std::memcpy(address->mac, card.identity.mac, PEAL_MAC_BYTES);
  address->rank = self.rank;
  address->member = self.handle;
  address->incarnation = card.identity.incarnation;
  return PEAL_STATUS_OK;
}

peal_status connect_member(Card& card, Member& member, const peal_connect_group& request) {
  Membership& self = member.membership;
  if (member.phase != MemberPhase::kReserved) return PEAL_STATUS_BUSY;
  if (request.group == 0) return PEAL_STATUS_BAD_GROUP;
  if (request.peer_count != 2u * self.rounds || !peers_are_right(self, request)) {
    return PEAL_STATUS_BAD_RANK;
  }
  self.group = request.group;
  self.choice_hash = request.choice_hash;
  for (uint32_t entry = 0; entry < request.peer_count; ++entry) {
    self.peers[entry] = {};
    self.peers[entry].address = request.peers[entry];
  }
  member.recycling_interval_ns = card.timeouts.nack_ns;
  member.phase = MemberPhase::kActive;
  return PEAL_STATUS_OK;
}

void release_member(Card& card, Member& member) {
  PEAL_ASSERT(member.dma == 0 && card.released_count < 2 * CONFIG_CARD_MEMBERS);
  for (Operation& operation : member.operations) card.timers.disarm(operation.timer);
  card.timers.disarm(member.timer);
  card.released[card.released_count++] = member.channels;
  member.phase = MemberPhase::kFree;
}

void bury_member(Card& card, Member& member) {
  member.dying = true;
  if (member.dma > 0) return;  // on_dma_done comes back here
  Tombstone& tombstone = dig_tombstone(card);
  tombstone.in_use = true;
  tombstone.buried_ns = card.now;
  tombstone.membership = member.membership;
  tombstone.destroy_sequence = member.next_sequence - 1;
  tombstone.destroy_signature =
      signature_of(member.membership, PEAL_OPERATION_DESTROY, PEAL_ALGORITHM_DISSEMINATION, 0);
  release_member(card, member);
}

void member_fail_all(Card& card, Member& member, peal_status status, Rank rank) {
  for (Operation& operation : member.operations) {
    if (member.phase != MemberPhase::kActive) return;  // the last one was the destroy
    operation_fail({card, member, operation}, status, rank);
  }
  while (member.parked_count > 0) {
    const Command command = member.parked[member.parked_head];
    member.parked_head = static_cast<uint16_t>((member.parked_head + 1) % CONFIG_PARKED_OPERATIONS);
    --member.parked_count;
    complete_command(card, command, status, rank);
    // Nothing is ever parked behind a destroy.
    if (command.opcode == PEAL_OPERATION_DESTROY) bury_member(card, member);
  }
}

void on_member_timer(Card& card, Member& member) {
  if (member.phase != MemberPhase::kActive || member.membership.poisoned) return;
  const TimeNs recycling = recycling_chase(card, member);
  if (member.phase != MemberPhase::kActive) return;
  const TimeNs watching = watch_peers(card, member);
  if (member.membership.poisoned) return;
  const TimeNs next = recycling < watching ? recycling : watching;
  if (next != kNever) card.timers.arm_no_later(member.timer, next);
}

}  // namespace peal
