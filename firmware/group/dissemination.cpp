// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/dissemination.h"

#include "firmware/group/inquiry.h"

namespace peal {

void dissemination_chase(Card& card, Member& member, const Dissemination& state, Inquiry& inquiry,
                         const PacketKind& nack) {
  const Membership& self = member.membership;
  for (uint32_t round = 0; round < self.rounds; ++round) {
    if ((state.missing & (2u << round)) == 0) continue;
    const peal_peer_address& to = self.peers[peer_behind(round)].address;
    if (!inquiry_may_ask(card, member, inquiry, to.rank, Wanted::kFirst)) {
      if (asks_suspects(inquiry)) continue;
      return;
    }
    const peal_nack body = question(card, 0);
    const SmallPacket what = {
        .hop = static_cast<uint8_t>(round), .payload = &body, .length = sizeof(body)};
    if (send_small(card, self, to, nack, what)) count(card, PEAL_COUNTER_SENT_NACK);
    return;
  }
}

void dissemination_repair(Card& card, const Membership& self, const peal_peer_address& to,
                          PacketKind kind, uint32_t round) {
  kind.type = PEAL_PACKET_SIGNAL;
  const SmallPacket what = {.hop = static_cast<uint8_t>(round), .flags = PEAL_PACKET_REPAIR};
  if (send_small(card, self, to, kind, what)) count(card, PEAL_COUNTER_SENT_REPAIR);
}

}  // namespace peal
