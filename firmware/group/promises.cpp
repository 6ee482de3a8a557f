// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/promises.h"

#include "firmware/wire/transmit.h"

namespace peal {
namespace {

// The first look comes after that part of a first NACK interval, each further one after that part
// of the time since the last promise, as long as nothing is sent.
constexpr TimeNs kFirstLook = 8;
constexpr TimeNs kLooks = 4;
// Whoever has waited for so many intervals of probes is told the same by their answers.
constexpr TimeNs kLapse = 4;

// To whom something was promised that may not have been sent. What is over here was.
uint32_t promised_to(const Card& card, Member& member) {
  Promises& promises = member.promises;
  const bool lapsed = card.now - promises.given_ns > kLapse * card.timeouts.probe_interval_ns;
  uint32_t open = 0;
  for (uint32_t slot = 0; slot < kChannels; ++slot) {
    const bool over = member.operations[slot].phase <= OperationPhase::kFinished;
    if (over || lapsed) promises.to[slot] = 0;
    open |= promises.to[slot];
  }
  return open;
}

void say_what_there_was(Card& card, const Membership& self, const Peer& peer) {
  if (send_small(card, self, peer.address, membership_kind(self, PEAL_PACKET_ALIVE), {})) {
    count(card, PEAL_COUNTER_SENT_LIVENESS);
  }
}

}  // namespace

void note_promise(Card& card, Member& member, const Operation& operation, Rank to) {
  Membership& self = member.membership;
  const uint32_t entry = peer_entry(self.rank, to, self.ranks);
  if (entry == kNoPeer || !self.losses) return;
  Promises& promises = member.promises;
  promises.to[operation.timer.slot] |= uint32_t{1} << entry;
  promises.given_ns = card.now;
  self.peers[entry].looked_at = self.peers[entry].sent;
  card.timers.arm_no_later(member.timer, card.now + card.timeouts.nack_ns / kFirstLook);
}

TimeNs keep_promises(Card& card, Member& member) {
  Membership& self = member.membership;
  Promises& promises = member.promises;
  uint32_t open = promises.sent;
  for (const uint32_t to : promises.to) open |= to;
  if (open == 0) return kNever;
  for (uint32_t left = open; left != 0; left &= left - 1) {
    const auto entry = static_cast<uint32_t>(__builtin_ctz(left));
    const uint32_t bit = uint32_t{1} << entry;
    Peer& peer = self.peers[entry];
    if (peer.sent != peer.looked_at) {
      peer.looked_at = peer.sent;
      promises.sent |= bit;
    } else if ((promises.sent & bit) != 0) {
      promises.sent &= ~bit;
      say_what_there_was(card, self, peer);
    }
  }
  const uint32_t unsent = promised_to(card, member);
  if ((unsent | promises.sent) == 0) return kNever;
  const TimeNs soon_ns = card.timeouts.nack_ns / kFirstLook;
  const TimeNs later_ns = (card.now - promises.given_ns) / kLooks;
  return card.now + (promises.sent != 0 || later_ns < soon_ns ? soon_ns : later_ns);
}

}  // namespace peal
