// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/barrier/barrier.h"

#include "firmware/group/dissemination.h"
#include "firmware/group/liveness.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/usual.h"

namespace peal::barrier {
namespace {

Dissemination& signals(const Scope& scope) { return own_state<Dissemination>(scope.operation); }

peal_status check(Card& /*card*/, const Member& /*member*/, const peal_submission& entry,
                  Command* /*command*/) {
  return entry.block_bytes == 0 ? PEAL_STATUS_OK : PEAL_STATUS_BAD_LENGTH;
}

void open(const Scope& scope) { signals(scope) = dissemination_start(scope.member.membership); }

void post(const Scope& scope) { dissemination_enter(signals(scope)); }

// What the dissemination is of.
struct OfBarrier {
  static constexpr peal_counter kCounter = PEAL_COUNTER_SENT_SIGNAL;
  const Scope& scope;
  [[nodiscard]] Card& card() const { return scope.card; }
  [[nodiscard]] Membership& self() const { return scope.member.membership; }
  [[nodiscard]] Dissemination& state() const { return signals(scope); }
  void begin(peal_wire_header* header) const { *header = scope.operation.pattern; }
};

[[gnu::always_inline]] inline void go_on(const Scope& scope) {
  if (!dissemination_send(OfBarrier{scope})) operation_starved(scope);
  if (is_complete(signals(scope))) operation_finish(scope);
}

void advance(const Scope& scope) { go_on(scope); }

peal_counter on_signal(const Scope& scope, const peal_wire_header& header) {
  const peal_counter round = check_round(scope.member.membership, header, true);
  if (round != kPacketGood) return round;
  if (!dissemination_signal(signals(scope), header.hop)) return PEAL_COUNTER_DUPLICATE;
  operation_progressed(scope);
  advance(scope);
  return kTakenIn;
}

// The same of one whose round is known to be right: one function, to the signal that follows.
peal_counter on_usual(Card& card, Member& member, Operation& operation, Packet* packet,
                      Peer& peer) {
  hear_peer(peer);
  const peal_wire_header& header = *packet->header;
  if (!edge_is_next(peer, header)) [[unlikely]] {
    return on_usual_behind_a_gap(card, member, operation, packet, peer);
  }
  const Scope scope = {card, member, operation};
  if (!dissemination_signal(signals(scope), header.hop)) return PEAL_COUNTER_DUPLICATE;
  operation_progressed(scope);
  go_on(scope);
  return PEAL_COUNTER_RECEIVED;
}

peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack) {
  const Membership& self = scope.member.membership;
  const peal_counter round = check_round(self, header, false);
  if (round != kPacketGood) return round;
  const peal_peer_address& to =
      self.peers[peer_entry(self.rank, header.sender, self.ranks)].address;
  if (is_sent(signals(scope), header.hop)) {
    dissemination_repair(scope.card, self, to, packet_kind(scope.operation, PEAL_PACKET_SIGNAL),
                         header.hop);
  } else {
    send_not_yet(scope, to, header, nack, Owed::kByHost);
    operation_asked_for(scope);
  }
  return PEAL_COUNTER_RECEIVED;
}

void chase(const Scope& scope) {
  if (is_posted(scope.operation)) {
    dissemination_chase(scope.card, scope.member, signals(scope), scope.operation.inquiry,
                        packet_kind(scope.operation, PEAL_PACKET_NACK));
  }
}

}  // namespace

constinit const AlgorithmFunctions kFunctions = {check,   open,    post,    nullptr, on_signal,
                                                 on_nack, nullptr, advance, chase,   on_usual};

}  // namespace peal::barrier
