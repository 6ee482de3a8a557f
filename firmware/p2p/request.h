// SPDX-License-Identifier: BSD-2-Clause
// Requests: a record each from a fixed pool, on at most one list at a time, until nothing
// refers to it any more: no DMA, no packet that may have to be sent again.
#pragma once

#include "firmware/base/assert.h"
#include "firmware/card_types.h"
#include "firmware/group/unsettled.h"

namespace peal::p2p {

inline Request* request_at(State& state, uint16_t name) {
  return name == 0 ? nullptr : &state.requests[name - 1];
}
inline uint16_t name_of(const State& state, const Request& request) {
  return static_cast<uint16_t>(&request - state.requests + 1);
}
inline uint32_t handle_of(const State& state, const Request& request) {
  return uint32_t{request.generation} << 16 | static_cast<uint32_t>(&request - state.requests);
}

// Does the request go by this connection?
inline bool carries(const Connection& connection, const Request& request) {
  return request.member == connection.member && request.rank == connection.rank &&
         request.engine == connection.engine;
}

// --- lists ---
inline void put_last(State& state, RequestList& list, Request& request, Place place) {
  PEAL_ASSERT(request.place == Place::kNowhere);
  request.place = place;
  request.next = 0;
  const uint16_t name = name_of(state, request);
  if (list.first == 0) {
    list.first = name;
  } else {
    state.requests[list.last - 1].next = name;
  }
  list.last = name;
}
inline Request* take_first(State& state, RequestList& list) {
  Request* request = request_at(state, list.first);
  if (request == nullptr) return nullptr;
  list.first = request->next;
  if (list.first == 0) list.last = 0;
  request->place = Place::kNowhere;
  return request;
}
void put_first(State& state, RequestList& list, Request& request, Place place);
void take_out(State& state, RequestList& list, Request& request);

// --- records ---
// Null (counted): none is free. Gets that are served have a quarter of their own.
Request* take_request(Card& card, Member& member, Kind kind, Rank rank, Ticket ticket);
// The other side of this connection names it: null unless the connection carries it.
Request* find_request(Card& card, const Connection& connection, uint32_t handle);
// The record is free again.
void free_request(Card& card, Request& request);
// A request or a connection of the member's is gone.
inline void leave_member(Card& card, Member& member) {
  PEAL_ASSERT(member.p2p_uses > 0);
  --member.p2p_uses;
  if (member.p2p_uses == 0 && member.phase == MemberPhase::kDying) note_unsettled(card, member);
}

// --- receives that wait for their message ---
void post_receive(Card& card, Member& member, Request& request);
void unpost_receive(Card& card, Member& member, Request& request);

}  // namespace peal::p2p
