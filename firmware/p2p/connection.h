// SPDX-License-Identifier: BSD-2-Clause
// Connections: what a member and one other rank know of each other, both ways, as long as they
// have something under way; each transmit engine has its own (docs/decisions/0035). From a pool of
// the card's; a life of a connection is named by a handle, and both sides agree when it ends
// (opening.h), so that a packet of an earlier life is known by it.
#pragma once

#include "firmware/base/kept.h"
#include "firmware/card_types.h"

namespace peal::p2p {

inline uint32_t index_of(const State& state, const Connection& connection) {
  return static_cast<uint32_t>(&connection - state.connections);
}
inline uint32_t handle_of(const State& state, const Connection& connection) {
  return uint32_t{connection.generation} << 16 | index_of(state, connection);
}
inline uint16_t next_generation(uint16_t generation) {
  return static_cast<uint16_t>(generation == 0xffff ? 1 : generation + 1);
}
// Is it, in its place, in the life that the handle names?
inline bool is_in_life(const Connection& connection, uint32_t handle) {
  return connection.phase != ConnectionPhase::kFree && connection.generation == handle >> 16;
}
// That which the put was carried by; null: its life is over.
inline Connection* find_of(State& state, const MissingPut& put) {
  Connection& connection = state.connections[put.connection & 0xffff];
  return is_in_life(connection, put.connection) ? &connection : nullptr;
}
inline Member& member_of(Card& card, const Connection& connection) {
  return card.members[connection.member];
}

// What tells a connection from all others of the card.
inline uint32_t whose(uint32_t member_index, Rank rank, uint32_t engine) {
  static_assert(CONFIG_CARD_MEMBERS * kEngines <= 0x10000);
  return (member_index * kEngines + engine) << 16 | rank;
}
inline uint16_t& bucket_of(State& state, uint32_t whose) {
  return state.buckets[((whose >> 16) * 0x9e37u + whose) % kConnections];
}
// Null: there is none.
inline Connection* find_connection(Card& card, uint32_t member_index, Rank rank, uint8_t engine) {
  State& state = card.p2p;
  const uint32_t wanted = whose(member_index, rank, engine);
  for (uint16_t name = bucket_of(state, wanted); name != 0;) {
    Connection& connection = kept(state.connections[name - 1]);
    if (connection.whose == wanted) return &connection;
    name = connection.next;
  }
  return nullptr;
}
// That which carries the request.
inline Connection* find_connection(Card& card, const Request& request) {
  return find_connection(card, request.member, request.rank, request.engine);
}
// That which the header of a packet for this member names.
Connection* find_by_handle(Card& card, const Member& member, const peal_wire_header& header);

inline bool has_free_connection(const State& state) {
  return state.connections_used < kConnections;
}
// One that is new; there is one (has_free_connection()).
Connection& take_connection(Card& card, const Member& member, const peal_peer_address& address,
                            uint8_t engine);
// Its life is over, on both sides; what it has not carried yet waits for another one.
void give_back(Card& card, Connection& connection);

// A request with something to send goes to its connection, or waits for one.
void attach(Card& card, Request& request);
// All that wait for this connection.
void attach_wanting(Card& card, Connection& connection);

// Has it anything to send, be it what ends its life?
inline bool has_to_send(const Connection& connection) {
  return (connection.waiting | connection.work.first | connection.sends.first) != 0 ||
         connection.phase != ConnectionPhase::kOpen;
}
void put_on_ready_list(Card& card, Connection& connection);
// It may have something to send now.
inline void note_ready(Card& card, Connection& connection) {
  if (!connection.ready && has_to_send(connection)) put_on_ready_list(card, connection);
}

// Its life is to end: nothing new begins in it.
inline bool is_ending(const Connection& connection) {
  return connection.phase == ConnectionPhase::kDraining ||
         connection.phase == ConnectionPhase::kClosing ||
         connection.phase == ConnectionPhase::kLeaving;
}
// May a message that it has announced still be answered in this life?
inline bool may_match(const Connection& connection) {
  return connection.phase == ConnectionPhase::kOpen ||
         connection.phase == ConnectionPhase::kDraining ||
         connection.phase == ConnectionPhase::kLeaving;
}
// The message there is forgotten; its packet is the caller's.
void remove_place(Connection& connection, uint32_t at);

}  // namespace peal::p2p
