// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/liveness.h"

#include <bit>
#include <cstring>

#include "firmware/base/mutation.h"
#include "firmware/group/death.h"
#include "firmware/group/remote.h"
#include "firmware/wire/transmit.h"

namespace peal {
namespace {

// Silence counts only when probes went unanswered meanwhile.
constexpr uint32_t kProbesMin = 3;
// A rank that is no peer, and that nobody has said to owe anything for this part of the time after
// which it would be dead, is not watched any more: what it owed is over, it may have left the
// group, and its tombstone answers peers alone.
constexpr TimeNs kForgottenAfter = 2;
// Of all ranks of a group each could have had a place in this part of the time.
constexpr TimeNs kRound = 4;

// Peer or RemoteWatch: both say since when.
template <typename Watched>
void watch(Card& card, Member& member, Watched& watched) {
  watched.awaited_since_ns = card.now == 0 ? 1 : card.now;
  watched.next_probe_ns = card.now + card.timeouts.probe_interval_ns;
  watched.probes = 0;
  member.watches = true;
  card.timers.arm_no_later(member.timer, watched.next_probe_ns);
}

template <typename Watched>
bool is_dead(const Card& card, const Watched& watched) {
  return card.now >= watched.awaited_since_ns + card.timeouts.dead_ns &&
         watched.probes >= kProbesMin;
}

void give_place(Card& card, Member& member, RemoteWatch& place, Rank rank) {
  place.rank = member.remote.turn = static_cast<uint16_t>(rank);
  place.wanted_ns = card.now;
  watch(card, member, place);
}

RemoteWatch* find_free(Remote& remote) {
  for (RemoteWatch& each : remote.watches) {
    if (each.awaited_since_ns == 0) return &each;
  }
  return nullptr;
}

uint64_t bit_of(Rank rank) { return uint64_t{1} << rank % 64; }

void forget_wanted(Remote& remote, Rank rank) {
  uint64_t& word = remote.wanted[rank / 64];
  if ((word & bit_of(rank)) == 0) return;
  word &= ~bit_of(rank);
  --remote.waiting;
}

// Whoever finds no place waits for one, whoever has named it, until it has answered or has had one:
// else those that are named first in each look would have all places all the time.
void await_remote(Card& card, Member& member, Rank rank) {
  Remote& remote = member.remote;
  for (RemoteWatch& each : remote.watches) {
    if (each.awaited_since_ns == 0 || each.rank != rank) continue;
    each.wanted_ns = card.now;
    return;
  }
  RemoteWatch* free = remote.waiting == 0 ? find_free(remote) : nullptr;
  if (free != nullptr) {
    remote.turn_ns = card.now + card.timeouts.probe_interval_ns;
    return give_place(card, member, *free, rank);
  }
  uint64_t& word = remote.wanted[rank / 64];
  if ((word & bit_of(rank)) == 0) ++remote.waiting;
  word |= bit_of(rank);
  remote.wanted_ns = card.now;
  member.watches = true;
  card.timers.arm_no_later(member.timer, remote.turn_ns > card.now ? remote.turn_ns : card.now + 1);
}

// The next one that waits for a place, in the order of ranks. There is one.
Rank next_wanted(const Remote& remote) {
  const Rank from = (remote.turn + 1u) % (64 * kGroupWords);
  uint64_t word = remote.wanted[from / 64] & ~(bit_of(from) - 1);
  uint32_t at = from / 64;
  while (word == 0) {
    at = (at + 1) % kGroupWords;
    word = remote.wanted[at];
  }
  return 64 * at + static_cast<Rank>(std::countr_zero(word));
}

// Places that are free go to those that wait, by turns. These have waited already, and are probed
// at once. Returns when to do so again.
TimeNs give_places(Card& card, Member& member) {
  Remote& remote = member.remote;
  if (remote.waiting == 0) return kNever;
  if (card.now - remote.wanted_ns > card.timeouts.dead_ns / kForgottenAfter) {
    std::memset(remote.wanted, 0, sizeof(remote.wanted));
    remote.waiting = 0;
    return kNever;
  }
  if (card.now < remote.turn_ns) return remote.turn_ns;
  for (RemoteWatch& each : remote.watches) {
    if (each.awaited_since_ns != 0) continue;
    if (remote.waiting == 0) break;
    const Rank rank = next_wanted(remote);
    forget_wanted(remote, rank);
    give_place(card, member, each, rank);
    each.next_probe_ns = card.now;
  }
  const TimeNs round_ns = card.timeouts.dead_ns / kRound;
  remote.turn_ns = card.now + 1 + kRemoteWatches * round_ns / member.membership.ranks;
  return remote.waiting == 0 ? kNever : remote.turn_ns;
}

// The same for ranks that are no peers as watch_peers() does for peers.
TimeNs watch_remotes(Card& card, Member& member) {
  TimeNs next = give_places(card, member);
  for (RemoteWatch& each : member.remote.watches) {
    if (each.awaited_since_ns == 0) continue;
    if (card.now - each.wanted_ns > card.timeouts.dead_ns / kForgottenAfter) {
      each.awaited_since_ns = 0;
      continue;
    }
    if (is_dead(card, each)) {
      each.awaited_since_ns = 0;
      count(card, PEAL_COUNTER_PEERS_DEAD);
      poison(card, member, each.rank);
      return kNever;
    }
    if (card.now >= each.next_probe_ns) {
      if (send_small_to(card, member, each.rank,
                        membership_kind(member.membership, PEAL_PACKET_PROBE), {})) {
        count(card, PEAL_COUNTER_SENT_LIVENESS);
        ++each.probes;
      }
      each.next_probe_ns = card.now + card.timeouts.probe_interval_ns;
    }
    if (each.next_probe_ns < next) next = each.next_probe_ns;
  }
  return next;
}

}  // namespace

void await_peer(Card& card, Member& member, Rank rank) {
  const Membership& self = member.membership;
  const uint32_t entry = peer_entry(self.rank, rank, self.ranks);
  if (entry == kNoPeer) return await_remote(card, member, rank);
  Peer& peer = member.membership.peers[entry];
  if (peer.awaited_since_ns == 0) watch(card, member, peer);
}

void hear_watched(Member& member, Rank rank) {
  for (RemoteWatch& each : member.remote.watches) {
    if (each.rank == rank) each.awaited_since_ns = 0;
  }
  forget_wanted(member.remote, rank);
}

bool say_alive(Card& card, const Membership& self, const peal_peer_address& to) {
  if (!send_small(card, self, to, membership_kind(self, PEAL_PACKET_ALIVE), {})) return false;
  count(card, PEAL_COUNTER_SENT_LIVENESS);
  return true;
}

void forgive_stall(Card& card, TimeNs late_ns) {
  for (Member& member : members_of(card)) {
    if (member.phase != MemberPhase::kActive) continue;
    for (uint32_t entry = 0; entry < 2u * member.membership.rounds; ++entry) {
      Peer& peer = member.membership.peers[entry];
      if (peer.awaited_since_ns != 0) peer.awaited_since_ns += late_ns;
    }
    for (RemoteWatch& each : member.remote.watches) {
      if (each.awaited_since_ns != 0) each.awaited_since_ns += late_ns;
    }
  }
}

TimeNs watch_peers(Card& card, Member& member) {
  TimeNs next = kNever;
  if (!member.watches) return next;
  Membership& self = member.membership;
  for (uint32_t entry = 0; entry < 2u * self.rounds; ++entry) {
    Peer& peer = self.peers[entry];
    if (peer.awaited_since_ns == 0) continue;
    if (is_dead(card, peer)) {
      peer.awaited_since_ns = 0;
      if (mutated(Mutation::kDeathUntold)) continue;
      count(card, PEAL_COUNTER_PEERS_DEAD);
      poison(card, member, peer.address.rank);
      return kNever;
    }
    if (card.now >= peer.next_probe_ns) {
      if (send_small(card, self, peer.address, membership_kind(self, PEAL_PACKET_PROBE), {})) {
        count(card, PEAL_COUNTER_SENT_LIVENESS);
        ++peer.probes;
      }
      peer.next_probe_ns = card.now + card.timeouts.probe_interval_ns;
    }
    if (peer.next_probe_ns < next) next = peer.next_probe_ns;
  }
  const TimeNs remotes = watch_remotes(card, member);
  if (remotes < next) next = remotes;
  member.watches = next != kNever;
  return next;
}

}  // namespace peal
