// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/liveness.h"

#include "firmware/base/mutation.h"
#include "firmware/group/death.h"
#include "firmware/wire/transmit.h"

namespace peal {
namespace {

// Silence counts only when probes went unanswered meanwhile.
constexpr uint32_t kProbesMin = 3;

}  // namespace

void await_peer(Card& card, Member& member, Rank rank) {
  const Membership& self = member.membership;
  const uint32_t entry = peer_entry(self.rank, rank, self.ranks);
  if (entry == kNoPeer) return;
  Peer& peer = member.membership.peers[entry];
  if (peer.awaited_since_ns != 0) return;
  peer.awaited_since_ns = card.now == 0 ? 1 : card.now;
  peer.next_probe_ns = card.now + card.timeouts.probe_interval_ns;
  peer.probes = 0;
  card.timers.arm_no_later(member.timer, peer.next_probe_ns);
}

void forgive_stall(Card& card, TimeNs late_ns) {
  for (Member& member : card.members) {
    if (member.phase != MemberPhase::kActive) continue;
    for (uint32_t entry = 0; entry < 2u * member.membership.rounds; ++entry) {
      Peer& peer = member.membership.peers[entry];
      if (peer.awaited_since_ns != 0) peer.awaited_since_ns += late_ns;
    }
  }
}

TimeNs watch_peers(Card& card, Member& member) {
  TimeNs next = kNever;
  Membership& self = member.membership;
  for (uint32_t entry = 0; entry < 2u * self.rounds; ++entry) {
    Peer& peer = self.peers[entry];
    if (peer.awaited_since_ns == 0) continue;
    if (card.now >= peer.awaited_since_ns + card.timeouts.dead_ns && peer.probes >= kProbesMin) {
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
  return next;
}

}  // namespace peal
