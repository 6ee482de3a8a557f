// SPDX-License-Identifier: BSD-2-Clause
// Dissemination: in round k a member signals rank + 2^k and waits for rank - 2^k. Barrier and
// destroy are this one mechanism; it says that everybody has entered, in N ⌈log2 N⌉ packets
// and no acknowledgement.
#pragma once

#include "firmware/base/kept.h"
#include "firmware/base/mutation.h"
#include "firmware/card_types.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"
#include "firmware/wire/wire_check.h"

namespace peal {

// What the packets of barriers and destroys say of themselves.
inline constexpr uint8_t kSignalAlgorithm = PEAL_ALGORITHM_DISSEMINATION;

// The round of a packet must exist, and lead from the sender (a signal, an answer), or to it (a
// NACK). kPacketGood, or the drop counter.
inline peal_counter check_round(const Membership& self, const peal_wire_header& header,
                                bool from_behind) {
  if (header.hop >= self.rounds) return PEAL_COUNTER_DROP_HOP;
  const uint32_t entry = from_behind ? peer_behind(header.hop) : peer_ahead(header.hop);
  const bool expected = header.sender == self.peers[entry].address.rank;
  return expected ? kPacketGood : PEAL_COUNTER_DROP_SENDER;
}

// Outside: signals are noted, none is sent.
inline Dissemination dissemination_start(const Membership& self) {
  const uint32_t rounds = (1u << self.rounds) - 1;
  return {.missing = rounds << 1 | 1, .unsent = rounds};
}
inline void dissemination_enter(Dissemination& state) { state.missing &= ~1u; }
inline bool is_entered(const Dissemination& state) { return (state.missing & 1) == 0; }
inline bool is_complete(const Dissemination& state) { return (state.missing | state.unsent) == 0; }
inline bool is_sent(const Dissemination& state, uint32_t round) {
  return (state.unsent >> round & 1) == 0;
}
// Rounds whose signals may go, a bit each. A round is reached when nothing below it is missing.
inline uint32_t rounds_due(const Dissemination& state) {
  return ~state.missing & (state.missing - 1) & state.unsent;
}

// Sends the signals whose rounds are reached. `Of` says what it is a dissemination of: card(),
// self(), state(), and what all headers begin() as. (It is asked anew for each packet: so the
// port's calls find nothing in registers that had to be saved.)
// False when a packet could not be had.
template <typename Of>
[[gnu::always_inline]] inline bool dissemination_send(const Of& of) {
  while (rounds_due(of.state()) != 0) {
    Packet* packet = begin_packet(of.card());
    if (packet == nullptr) return false;
    Dissemination& state = of.state();
    // They go in order: what is due begins with what is unsent.
    const auto round = static_cast<uint32_t>(__builtin_ctz(state.unsent));
    state.unsent &= state.unsent - 1;
    Peer& to = kept(of.self().peers[peer_ahead(round)]);
    peal_wire_header* header = packet->header;
    of.begin(header);
    header->hop = static_cast<uint8_t>(round);
    readdress_packet(to.address, header);
    edge_number(to, header);
    count(of.card(), Of::kCounter);
    end_packet(of.card(), packet);
  }
  return true;
}
// A signal of this round arrived. False: a duplicate.
inline bool dissemination_signal(Dissemination& state, uint32_t round) {
  const uint32_t place = round + 1;
  if ((state.missing >> place & 1) == 0) [[unlikely]] {
    if (!mutated(Mutation::kDuplicateAccepted) || state.missing == 0) return false;
    state.missing &= ~(2u << place);  // counted as one more arrival
  }
  state.missing &= ~(1u << place);
  return true;
}
// Asks for the lowest round that is missing; the later ones wait for it anyway.
void dissemination_chase(Card& card, Member& member, const Dissemination& state, Inquiry& inquiry,
                         const PacketKind& nack);
// Sends the signal of a round again, to the peer that asked.
void dissemination_repair(Card& card, const Membership& self, const peal_peer_address& to,
                          PacketKind kind, uint32_t round);

}  // namespace peal
