// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/refusal.h"

#include "firmware/group/remote.h"
#include "firmware/operation/operation.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal {

void tell_refusal(const Scope& scope, uint32_t entry, Rank rank) {
  Membership& self = scope.member.membership;
  const peal_verdict verdict = {scope.operation.verdict_rank,
                                static_cast<uint32_t>(scope.operation.verdict)};
  SmallPacket what = {.payload = &verdict, .length = sizeof(verdict)};
  const PacketKind kind = packet_kind(scope.operation, PEAL_PACKET_REFUSE);
  if (entry == kRemoteEntry) {
    if (send_small_to(scope.card, scope.member, rank, kind, what)) {
      count(scope.card, PEAL_COUNTER_SENT_VERDICT);
    }
    return;
  }
  Peer& to = self.peers[entry];
  what.counted = &to;
  if (send_small(scope.card, self, to.address, kind, what)) {
    count(scope.card, PEAL_COUNTER_SENT_VERDICT);
  } else {
    edge_skip(to);
  }
}

void refuse(const Scope& scope, peal_status status, Rank rank) {
  Operation& operation = scope.operation;
  if (is_refused(operation)) return;
  operation.verdict = status;
  operation.verdict_rank = rank;
  operation.listens = false;
  const Membership& self = scope.member.membership;
  for (uint32_t entry = 0; entry < 2u * self.rounds; ++entry) {
    if (is_repeated_entry(entry, self.ranks)) continue;
    tell_refusal(scope, entry, self.peers[entry].address.rank);
  }
  scope.card.timers.disarm(operation.timer);
  operation_end_if_refused(scope);
}

}  // namespace peal
