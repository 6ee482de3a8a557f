// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/death.h"

#include "firmware/group/unsettled.h"
#include "firmware/wire/transmit.h"

namespace peal {

void tell_death(Card& card, const Membership& self, const peal_peer_address& to) {
  const peal_verdict verdict = {self.dead_rank, PEAL_STATUS_PEER_DEAD};
  const SmallPacket what = {.payload = &verdict, .length = sizeof(verdict)};
  if (send_small(card, self, to, membership_kind(self, PEAL_PACKET_DEATH), what)) {
    count(card, PEAL_COUNTER_SENT_VERDICT);
  }
}

void poison(Card& card, Member& member, Rank dead) {
  Membership& self = member.membership;
  if (self.poisoned) return;
  self.poisoned = true;
  self.dead_rank = static_cast<uint16_t>(dead);
  count(card, PEAL_COUNTER_GROUPS_POISONED);
  for (uint32_t entry = 0; entry < 2u * self.rounds; ++entry) {
    if (!is_repeated_entry(entry, self.ranks)) tell_death(card, self, self.peers[entry].address);
  }
  for (Operation& operation : member.operations) operation.listens = false;
  card.timers.disarm(member.timer);
  member.unsettled.failing = true;
  card.p2p.failing = card.due.messages = true;
  card.queues.gone = card.due.queues = true;
  note_unsettled(card, member);
}

}  // namespace peal
