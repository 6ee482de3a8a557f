// SPDX-License-Identifier: BSD-2-Clause
// Dissemination: in round k a member signals rank + 2^k and waits for rank - 2^k. Barrier, destroy
// and recycling are this one mechanism; it says that everybody has entered, in N ⌈log2 N⌉ packets
// and no acknowledgement.
#pragma once

#include <bit>

#include "firmware/base/mutation.h"
#include "firmware/card_types.h"
#include "firmware/wire/transmit.h"
#include "firmware/wire/wire_check.h"

namespace peal {

// What the packets of barriers, destroys and recycling say of themselves.
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

// Sends the signal of a round, the first time, in this packet.
void send_signal(Card& card, Packet* packet, Peer& to, const peal_wire_header& pattern,
                 uint32_t sequence, uint32_t round);
// Sends the signals whose rounds are reached; complete when all are.
// False when a packet could not be had.
inline bool dissemination_send(Card& card, Membership& self, Dissemination& state,
                               const peal_wire_header& pattern, uint32_t sequence) {
  if (state.phase != DisseminationPhase::kEntered) return true;
  // A round is reached when all below it have been heard: as far as adding one carries.
  const uint32_t all = (1u << self.rounds) - 1;
  const uint32_t heard = state.received;
  uint32_t due = (heard ^ (heard + 1)) & ~uint32_t{state.sent} & all;
  for (; due != 0; due &= due - 1) {
    Packet* packet = take_packet(card);
    if (packet == nullptr) return false;
    const auto round = static_cast<uint32_t>(std::countr_zero(due));
    send_signal(card, packet, self.peers[peer_ahead(round)], pattern, sequence, round);
    state.sent |= static_cast<uint16_t>(due & -due);
  }
  if (heard == all) state.phase = DisseminationPhase::kComplete;
  return true;
}
// Everybody is known to have entered: all remaining signals may go.
bool dissemination_prove(Card& card, Membership& self, Dissemination& state,
                         const peal_wire_header& pattern, uint32_t sequence);
// A signal of this round arrived. False: a duplicate.
inline bool dissemination_signal(Dissemination& state, uint32_t round) {
  const auto bit = static_cast<uint16_t>(1u << round);
  if ((state.received & bit) != 0) {
    if (!mutated(Mutation::kDuplicateAccepted)) return false;
    state.received |= static_cast<uint16_t>(bit << 1);  // counted as one more arrival
  }
  state.received |= bit;
  return true;
}
// Asks for the lowest round that is missing; the later ones wait for it anyway.
void dissemination_chase(Card& card, Member& member, const Dissemination& state, Inquiry& inquiry,
                         const PacketKind& nack);
// Sends the signal of a round again, to the peer that asked.
void dissemination_repair(Card& card, const Membership& self, const peal_peer_address& to,
                          PacketKind kind, uint32_t round);

}  // namespace peal
