// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/usual.h"

#include "firmware/group/inquiry.h"
#include "firmware/group/liveness.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/lost.h"
#include "firmware/operation/operation.h"
#include "firmware/wire/edge.h"

namespace peal {
namespace {

uint32_t entry_of(const Membership& self, const Peer& peer) {
  return static_cast<uint32_t>(&peer - self.peers);
}

[[gnu::always_inline]] inline peal_counter take_usual(const Scope& scope, Packet* packet) {
  const AlgorithmFunctions& does = scope.operation.algorithm->does;
  return packet->header->type == PEAL_PACKET_DATA ? does.on_data(scope, packet)
                                                  : does.on_signal(scope, *packet->header);
}

// The next one, which could not be taken: to the edge it is lost.
[[gnu::noinline]] peal_counter on_usual_refused(const Scope& scope, Packet* packet,
                                                peal_counter result) {
  Peer& peer = *find_sender(scope.member.membership, *packet->header);
  if (result == PEAL_COUNTER_DUPLICATE) return result;
  --peer.heard;
  return go_on(scope, entry_of(scope.member.membership, peer), result);
}

}  // namespace

Peer* find_sender(Membership& self, const peal_wire_header& header) {
  if (header.sender >= self.ranks) return nullptr;
  const uint32_t entry = peer_entry(self.rank, header.sender, self.ranks);
  return entry == kNoPeer ? nullptr : checked_peer(self, header, entry);
}

void listen_to_edge(Card& card, Member& member, uint32_t entry, const peal_wire_header& header,
                    peal_counter result) {
  if (result != PEAL_COUNTER_RECEIVED && result != PEAL_COUNTER_DUPLICATE) return;
  Peer& peer = member.membership.peers[entry];
  const EdgeSays says = edge_heard(peer, header);
  if (says == EdgeSays::kComplete) peer.complete_ns = card.now;
  if (says != EdgeSays::kGap) return;
  note_loss(card, member);
  ask_for_lost(card, member, entry, header, 0);
}

peal_counter go_on(const Scope& scope, uint32_t entry, peal_counter result) {
  if (result == kTakenIn) return PEAL_COUNTER_RECEIVED;
  if (result == PEAL_COUNTER_DROP_NO_DMA && !inquiry_doubts(scope.operation.inquiry, entry)) {
    operation_doubts(scope, entry);
  }
  if (result == PEAL_COUNTER_RECEIVED) operation_advance(scope);
  return result;
}

peal_counter on_usual_behind_a_gap(Card& card, Member& member, Operation& operation, Packet* packet,
                                   Peer& peer) {
  const Scope scope = {card, member, operation};
  const uint32_t entry = entry_of(member.membership, peer);
  const peal_counter result = go_on(scope, entry, take_usual(scope, packet));
  listen_to_edge(card, member, entry, *packet->header, result);
  return result;
}

peal_counter on_usual_packet(Card& card, Member& member, Operation& operation, Packet* packet,
                             Peer& peer) {
  const Scope scope = {card, member, operation};
  hear_peer(peer);
  if (!edge_is_next(peer, *packet->header)) {
    return on_usual_behind_a_gap(card, member, operation, packet, peer);
  }
  const peal_counter result = take_usual(scope, packet);
  if (result == kTakenIn) return PEAL_COUNTER_RECEIVED;
  if (result != PEAL_COUNTER_RECEIVED) return on_usual_refused(scope, packet, result);
  operation_advance(scope);
  return result;
}

}  // namespace peal
