// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/promises.h"

#include "firmware/group/liveness.h"

namespace peal {
namespace {

// The first look comes after that part of a first NACK interval, each further one after that part
// of the time since the last promise, as long as nothing is sent.
constexpr TimeNs kFirstLook = 8;
constexpr TimeNs kLooks = 4;
// Whoever has waited for so many intervals of probes is told the same by their answers.
constexpr TimeNs kLapse = 4;

bool stands(const Operation& operation, const Promise& promise) {
  return operation.phase >= OperationPhase::kEarly &&
         static_cast<uint32_t>(operation.sequence) == promise.sequence;
}

// To whom something was promised that may not have been sent. What is over here was.
uint32_t promised_to(const Card& card, Member& member) {
  Promises& promises = member.promises;
  const bool lapsed = card.now - promises.given_ns > kLapse * card.timeouts.probe_interval_ns;
  uint32_t open = 0;
  for (uint32_t slot = 0; slot < kChannels; ++slot) {
    Promise& promise = promises.of[slot];
    if (lapsed || !stands(member.operations[slot], promise)) promise.to = 0;
    open |= promise.to;
  }
  return open;
}

TimeNs first_look(const Card& card) { return card.now + card.timeouts.nack_ns / kFirstLook; }

}  // namespace

void note_promise(Card& card, Member& member, const Operation& operation, Rank to) {
  Membership& self = member.membership;
  const uint32_t entry = peer_entry(self.rank, to, self.ranks);
  if (entry == kNoPeer || !self.losses) return;
  Promises& promises = member.promises;
  Promise& promise = promises.of[operation.timer.slot];
  if (!stands(operation, promise)) promise = {0, static_cast<uint32_t>(operation.sequence)};
  promise.to |= uint32_t{1} << entry;
  promises.given_ns = card.now;
  const bool looks_soon = promises.look_ns > card.now && promises.look_ns < first_look(card);
  if (!looks_soon) promises.look_ns = first_look(card);
  self.peers[entry].looked_at = static_cast<uint8_t>(self.peers[entry].sent);
  card.timers.arm_no_later(member.timer, promises.look_ns);
}

TimeNs keep_promises(Card& card, Member& member) {
  Membership& self = member.membership;
  Promises& promises = member.promises;
  uint32_t open = promises.sent;
  for (const Promise& promise : promises.of) open |= promise.to;
  if (open == 0) return kNever;
  if (card.now < promises.look_ns) return promises.look_ns;
  for (uint32_t left = open; left != 0; left &= left - 1) {
    const auto entry = static_cast<uint32_t>(__builtin_ctz(left));
    const uint32_t bit = uint32_t{1} << entry;
    Peer& peer = self.peers[entry];
    const auto sent = static_cast<uint8_t>(peer.sent);
    if (sent != peer.looked_at) {
      peer.looked_at = sent;
      promises.sent |= bit;
    } else if ((promises.sent & bit) != 0 && say_alive(card, self, peer.address)) {
      promises.sent &= ~bit;
    }
  }
  const uint32_t unsent = promised_to(card, member);
  if ((unsent | promises.sent) == 0) return kNever;
  const TimeNs later_ns = card.now + (card.now - promises.given_ns) / kLooks;
  promises.look_ns = first_look(card);
  if (promises.sent == 0 && later_ns > promises.look_ns) promises.look_ns = later_ns;
  return promises.look_ns;
}

}  // namespace peal
