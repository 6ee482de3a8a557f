// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/verdict.h"

#include "firmware/group/member.h"
#include "firmware/operation/operation.h"
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
  card.timers.disarm(member.timer);
  member_fail_all(card, member, PEAL_STATUS_PEER_DEAD, dead);
}

void tell_refusal(const Scope& scope, const peal_peer_address& to) {
  const peal_verdict verdict = {scope.operation.verdict_rank, scope.operation.verdict};
  const SmallPacket what = {.payload = &verdict, .length = sizeof(verdict)};
  if (send_small(scope.card, scope.member.membership, to,
                 packet_kind(scope.operation, PEAL_PACKET_REFUSE), what)) {
    count(scope.card, PEAL_COUNTER_SENT_VERDICT);
  }
}

void refuse(const Scope& scope, peal_status status, Rank rank) {
  Operation& operation = scope.operation;
  if (operation.refused) return;
  operation.refused = true;
  operation.verdict = status;
  operation.verdict_rank = rank;
  const Membership& self = scope.member.membership;
  for (uint32_t entry = 0; entry < 2u * self.rounds; ++entry) {
    if (!is_repeated_entry(entry, self.ranks)) tell_refusal(scope, self.peers[entry].address);
  }
  scope.card.timers.disarm(operation.timer);
  operation_end_if_refused(scope);
}

}  // namespace peal
