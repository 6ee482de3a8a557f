// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/tombstone.h"

#include "firmware/base/assert.h"
#include "firmware/group/dissemination.h"
#include "firmware/wire/transmit.h"

namespace peal {
namespace {

// A tombstone whose peers have not all said farewell stands as long as one that had not been heard
// since, and so could have asked in vain, might still come back: it would have called us dead.
TimeNs tombstone_life_ns(const CardTimeouts& timeouts) {
  return timeouts.dead_ns + timeouts.nack_max_ns + 3 * timeouts.probe_interval_ns;
}

bool stands(const Card& card, const Tombstone& tombstone) {
  return tombstone.in_use && card.now < tombstone.buried_ns + tombstone_life_ns(card.timeouts);
}

Tombstone& dig_tombstone(Card& card) {
  for (Tombstone& tombstone : tombstones_of(card)) {
    if (stands(card, tombstone)) continue;
    if (tombstone.in_use) count(card, PEAL_COUNTER_TOMBSTONES_REUSED);
    return tombstone;
  }
  PEAL_ASSERT(card.tombstones_touched < kTombstones);  // reserve_member keeps one for every member
  return card.tombstones[card.tombstones_touched++];
}

}  // namespace

Tombstone* find_tombstone(Card& card, uint32_t handle) {
  for (Tombstone& tombstone : tombstones_of(card)) {
    if (tombstone.in_use && tombstone.membership.handle == handle) return &tombstone;
  }
  return nullptr;
}

// Every member may need a tombstone one day: none is promised that is not there. A client may have
// as many as are left (a dynamic threshold: Choudhury and Hahne 1998): alone it gets half of them,
// who comes then half of the rest, so that a few clients all find some, however many groups of a
// neighbour die. (Of 64 places the seventh that comes while nobody gives any back gets one, the
// eighth none until some are forgotten.)
bool has_tombstone_place(const Card& card, ClientId client) {
  uint32_t taken = 0;
  uint32_t own = 0;
  for (const Tombstone& tombstone : tombstones_of(card)) {
    if (!stands(card, tombstone)) continue;
    ++taken;
    own += tombstone.client == client ? 1 : 0;
  }
  for (const Member& member : members_of(card)) {
    if (member.phase != MemberPhase::kReserved && member.phase != MemberPhase::kActive) continue;
    ++taken;
    own += card.contexts[member.context].client == client ? 1 : 0;
  }
  return own < kTombstones - taken;
}

void leave_tombstone(Card& card, const Member& member) {
  const Membership& self = member.membership;
  const auto everybody = static_cast<uint16_t>((1u << self.rounds) - 1);
  // The dead of a poisoned group is named to whoever asks, farewell or not.
  const auto awaited =
      static_cast<uint16_t>(self.poisoned ? everybody : everybody & ~member.farewells);
  if (awaited == 0) return;
  Tombstone& tombstone = dig_tombstone(card);
  tombstone.in_use = true;
  tombstone.awaited = awaited;
  tombstone.client = card.contexts[member.context].client;
  tombstone.buried_ns = card.now;
  tombstone.membership = self;
  tombstone.destroy_sequence = member.next_sequence - 1;
  tombstone.destroy_signature = signature_of(self, PEAL_OPERATION_DESTROY, kSignalAlgorithm, 0, 0);
}

uint16_t rounds_ahead_of(const Membership& self, Rank peer) {
  uint16_t rounds = 0;
  for (uint32_t round = 0; round < self.rounds; ++round) {
    const bool ahead = self.peers[peer_ahead(round)].address.rank == peer;
    rounds |= static_cast<uint16_t>((ahead ? 1u : 0u) << round);
  }
  return rounds;
}

}  // namespace peal
