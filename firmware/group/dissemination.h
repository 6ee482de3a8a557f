// SPDX-License-Identifier: BSD-2-Clause
// Dissemination: in round k a member signals rank + 2^k and waits for rank - 2^k. Barrier, destroy
// and recycling are this one mechanism; it says that everybody has entered, in N ⌈log2 N⌉ packets
// and no acknowledgement.
#pragma once

#include <bit>

#include "firmware/base/kept.h"
#include "firmware/base/mutation.h"
#include "firmware/card_types.h"
#include "firmware/wire/edge.h"
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

// Rounds whose signals may go, a bit each. A round is reached when all below it have been heard: as
// far as adding one carries.
inline uint32_t rounds_due(const Membership& self, const Dissemination& state) {
  const uint32_t heard = state.received;
  return (heard ^ (heard + 1)) & ~uint32_t{state.sent} & ((1u << self.rounds) - 1);
}

// Sends the signals whose rounds are reached; complete when all are. `Of` says what it is a
// dissemination of: card(), self(), state(), and what all headers begin() as. (It is asked anew for
// each packet: so the port's calls find nothing in registers that had to be saved.)
// False when a packet could not be had.
template <typename Of>
bool dissemination_send(const Of& of) {
  if (of.state().phase != DisseminationPhase::kEntered) return true;
  for (uint32_t due = rounds_due(of.self(), of.state()); due != 0; due &= due - 1) {
    Packet* packet = take_packet(of.card());
    if (packet == nullptr) return false;
    const auto round = static_cast<uint32_t>(std::countr_zero(due));
    Peer& to = kept(of.self().peers[peer_ahead(round)]);
    peal_wire_header* header = packet->header;
    of.begin(header);
    header->hop = static_cast<uint8_t>(round);
    readdress_packet(to.address, header);
    edge_count(to, header);
    of.state().sent |= static_cast<uint16_t>(due & -due);
    count(of.card(), Of::kCounter);
    launch_packet(of.card(), packet, false);
  }
  Dissemination& state = of.state();
  if (state.received == (1u << of.self().rounds) - 1) state.phase = DisseminationPhase::kComplete;
  return true;
}
// Everybody is known to have entered: all remaining signals may go.
template <typename Of>
bool dissemination_prove(const Of& of) {
  of.state().received = static_cast<uint16_t>((1u << of.self().rounds) - 1);
  return dissemination_send(of);
}
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
