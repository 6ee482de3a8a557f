// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/member.h"

#include <cstring>

#include "firmware/base/assert.h"
#include "firmware/group/at_hand.h"
#include "firmware/group/death.h"
#include "firmware/group/early.h"
#include "firmware/group/recycling.h"
#include "firmware/group/remote.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/group/staging.h"
#include "firmware/group/tombstone.h"
#include "firmware/group/unsettled.h"
#include "firmware/wire/transmit.h"

namespace peal {
namespace {

uint32_t handle_of(const Member& member) {
  return static_cast<uint32_t>(member.generation) << 16 | member.index;
}

// The next of a slot's generations; never 0, nor one by which a peer may still ask a tombstone.
uint16_t next_generation(Card& card, const Member& member) {
  uint16_t generation = member.generation;
  if (generation == 0) generation = card.first_generation;
  const auto index = static_cast<uint32_t>(&member - card.members);
  do {
    generation = generation == 0xffff ? 1 : static_cast<uint16_t>(generation + 1);
  } while (find_tombstone(card, uint32_t{generation} << 16 | index) != nullptr);
  return generation;
}

Member* free_slot(Card& card) {
  for (Member& slot : members_of(card)) {
    if (slot.phase == MemberPhase::kFree) return &slot;
  }
  return card.members_touched < CONFIG_CARD_MEMBERS ? &card.members[card.members_touched] : nullptr;
}

// Two members of one card with the same rank in the same group: one of them is not who it says.
bool is_taken(const Card& card, const Membership& self, uint64_t group) {
  for (const Member& other : members_of(card)) {
    const Membership& its = other.membership;
    if (other.phase == MemberPhase::kActive && its.group == group && its.rank == self.rank) {
      return true;
    }
  }
  return false;
}

// Tells the peers whose signals we waited for that we shall not ask again.
void say_farewell(Card& card, const Membership& self) {
  for (uint32_t round = 0; round < self.rounds; ++round) {
    const uint32_t entry = peer_behind(round);
    if (send_small(card, self, self.peers[entry].address,
                   membership_kind(self, PEAL_PACKET_FAREWELL), {})) {
      count(card, PEAL_COUNTER_SENT_FAREWELL);
    }
  }
}

uint32_t peer_count(const Membership& self) { return 2u * self.rounds; }
// How many of them do not fit a connect group.
uint32_t added_count(const Membership& self) {
  return peer_count(self) - least(peer_count(self), PEAL_PEERS_PER_COMMAND);
}

Rank rank_of_entry(const Membership& self, uint32_t entry) {
  const uint32_t distance = 1u << entry / 2;
  return entry % 2 == 0 ? plus(self.rank, distance, self.ranks)
                        : minus(self.rank, distance, self.ranks);
}

// Whether these may be the member's peers from entry `first` on.
peal_status check_peers(const Membership& self, uint32_t first, const peal_peer_address* peers,
                        uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (peers[i].rank != rank_of_entry(self, first + i)) return PEAL_STATUS_BAD_RANK;
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (peers[i].geometry != geometry_hash()) return PEAL_STATUS_MISMATCH;
  }
  return PEAL_STATUS_OK;
}

void take_peers(Membership& self, uint32_t first, const peal_peer_address* peers, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    Peer& peer = self.peers[first + i];
    peer = {};
    peer.address = peers[i];
    peer.identity = peal_identity(&peers[i]);
    peer.known_by = static_cast<uint8_t>(peer_entry(self.rank, peers[i].rank, self.ranks));
  }
}

}  // namespace

peal_status reserve_member(Card& card, ContextId context, uint32_t ranks, uint32_t rank,
                           RegionId channels, peal_peer_address* address) {
  if (ranks == 0 || ranks > CONFIG_GROUP_RANKS_MAX || rank >= ranks) return PEAL_STATUS_BAD_RANK;
  if (!masks_have_room(ranks)) return PEAL_STATUS_BAD_RANK;
  Member* member = free_slot(card);
  if (member == nullptr || card.released_count >= CONFIG_CARD_MEMBERS ||
      !has_tombstone_place(card, card.contexts[context].client)) {
    count(card, PEAL_COUNTER_NO_MEMBER);
    return PEAL_STATUS_NO_RESOURCES;
  }
  const uint16_t generation = next_generation(card, *member);
  if (member == members_of(card).end()) {
    ++card.members_touched;  // it is zero
  } else {
    std::memset(static_cast<void*>(member), 0, offsetof(Member, by_rank));
  }
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
  self.ranks = ranks;
  self.rounds = static_cast<uint8_t>(ceil_log2(ranks));
  *address = own_address(card, self);
  self.identity = peal_identity(address);
  return PEAL_STATUS_OK;
}

peal_status add_peers(Member& member, const peal_add_peers& request) {
  Membership& self = member.membership;
  if (member.phase != MemberPhase::kReserved) return PEAL_STATUS_BUSY;
  const uint32_t count = added_count(self);
  if (count == 0 || request.peer_count != count) return PEAL_STATUS_BAD_RANK;
  const peal_status peers =
      check_peers(self, PEAL_PEERS_PER_COMMAND, request.peers, request.peer_count);
  if (peers != PEAL_STATUS_OK) return peers;
  take_peers(self, PEAL_PEERS_PER_COMMAND, request.peers, request.peer_count);
  self.added = static_cast<uint8_t>(count);
  return PEAL_STATUS_OK;
}

peal_status connect_member(Card& card, Member& member, const peal_connect_group& request) {
  Membership& self = member.membership;
  if (member.phase != MemberPhase::kReserved) return PEAL_STATUS_BUSY;
  if (request.group == 0) return PEAL_STATUS_BAD_GROUP;
  if (request.peer_count != peer_count(self) || self.added != added_count(self)) {
    return PEAL_STATUS_BAD_RANK;
  }
  const uint32_t named = request.peer_count - self.added;
  const peal_status peers = check_peers(self, 0, request.peers, named);
  if (peers != PEAL_STATUS_OK) return peers;
  if (is_taken(card, self, request.group)) return PEAL_STATUS_BAD_GROUP;
  const peal_status table =
      take_address_table(card, member, request.addresses_key, request.addresses_offset);
  if (table != PEAL_STATUS_OK) return table;
  self.group = request.group;
  self.seed = signature_seed(request.group, request.choice_hash);
  self.pattern = membership_pattern(card, self);
  take_peers(self, 0, request.peers, named);
  member.pace = pace_start(card.timeouts, card.now, kQuestionsPerInterval);
  member.patience = patience_start(card.timeouts, card.now);
  member.late_patience = patience_start(card.timeouts, card.now);
  member.recycling_inquiry = {};
  recycling_connect(member);
  member.phase = MemberPhase::kActive;
  return PEAL_STATUS_OK;
}

void release_member(Card& card, Member& member) {
  PEAL_ASSERT(member.dma == 0 && card.released_count < 2 * CONFIG_CARD_MEMBERS);
  PEAL_ASSERT(member.sent_blocks == 0);
  release_all_staging(card, member);
  card.timers.disarm(member.timer);  // somebody may have been watched since it was buried
  card.released[card.released_count++] = member.channels;
  member.phase = MemberPhase::kFree;
}

void bury_member(Card& card, Member& member) {
  if (member.phase != MemberPhase::kActive) return;
  const Membership& self = member.membership;
  if (!self.poisoned) say_farewell(card, self);
  leave_tombstone(card, member);
  for (Operation& operation : member.operations) {
    operation.listens = false;
    card.timers.disarm(operation.timer);
    early_drop(card, operation);
    at_hand_drop({card, member, operation});
    sent_blocks_drop(card, member, operation);
  }
  card.timers.disarm(member.timer);
  member.phase = MemberPhase::kDying;
  card.p2p.failing = card.due.messages = true;
  card.queues.gone = card.due.queues = true;
  leave_address_table(card, member);
  note_unsettled(card, member);
}

void leave_group(Card& card, Member& member) {
  poison(card, member, member.membership.rank);
  member.unsettled.leaving = true;
  note_unsettled(card, member);
}

}  // namespace peal
