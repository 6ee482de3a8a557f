// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/liveness.h"

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

// Those that answer give their place to others.
void await_remote(Card& card, Member& member, Rank rank) {
  RemoteWatch* free = nullptr;
  for (RemoteWatch& each : member.remote.watches) {
    if (each.awaited_since_ns == 0) {
      free = &each;
    } else if (each.rank == rank) {
      each.wanted_ns = card.now;
      return;
    }
  }
  if (free == nullptr) return;
  free->rank = static_cast<uint16_t>(rank);
  free->wanted_ns = card.now;
  watch(card, member, *free);
}

// The same for ranks that are no peers as watch_peers() does for peers.
TimeNs watch_remotes(Card& card, Member& member) {
  TimeNs next = kNever;
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
