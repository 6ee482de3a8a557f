// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/dissemination.h"

#include <bit>

#include "firmware/group/inquiry.h"
#include "firmware/wire/edge.h"

namespace peal {
namespace {

uint16_t rounds_below(uint32_t round) { return static_cast<uint16_t>((1u << round) - 1); }

}  // namespace

bool dissemination_send(Card& card, Membership& self, Dissemination& state,
                        const PacketKind& kind) {
  if (state.phase != DisseminationPhase::kEntered) return true;
  // A round is reached when all below it have been heard; rounds are sent in order.
  const auto heard = static_cast<uint32_t>(std::countr_one(state.received));
  for (auto round = static_cast<uint32_t>(std::countr_one(state.sent));
       round <= heard && round < self.rounds; ++round) {
    Peer& to = self.peers[peer_ahead(round)];
    Packet* packet = take_packet(card);
    if (packet == nullptr) return false;
    address_packet(to.address, kind, packet->header);
    packet->header->hop = static_cast<uint8_t>(round);
    edge_count(to, packet->header);
    launch_packet(card, packet, false);
    count(card, kind.pattern.operation == PEAL_OPERATION_RECYCLE ? PEAL_COUNTER_SENT_RECYCLE
                                                                 : PEAL_COUNTER_SENT_SIGNAL);
    state.sent |= static_cast<uint16_t>(1u << round);
  }
  if (heard == self.rounds) state.phase = DisseminationPhase::kComplete;
  return true;
}

bool dissemination_prove(Card& card, Membership& self, Dissemination& state,
                         const PacketKind& kind) {
  state.received = rounds_below(self.rounds);
  return dissemination_send(card, self, state, kind);
}

void dissemination_chase(Card& card, Member& member, const Dissemination& state, Inquiry& inquiry,
                         const PacketKind& nack) {
  const Membership& self = member.membership;
  for (uint32_t round = 0; round < self.rounds; ++round) {
    if ((state.received & (1u << round)) != 0) continue;
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
