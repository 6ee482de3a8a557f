// SPDX-License-Identifier: BSD-2-Clause
// Requests: a record each from a fixed pool, on at most one list at a time, until nothing refers to
// it any more: no DMA, no packet that may have to be sent again.
#pragma once

#include "firmware/card_types.h"
#include "firmware/p2p/p2p.h"

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

// --- lists ---
void put_last(State& state, RequestList& list, Request& request, Place place);
void put_first(State& state, RequestList& list, Request& request, Place place);
Request* take_first(State& state, RequestList& list);
void take_out(State& state, RequestList& list, Request& request);

// --- records ---
// Null (counted): none is free. Gets that are served have a quarter of their own.
Request* take_request(Card& card, Member& member, Kind kind, Rank rank, const Ticket& ticket);
// The other side names it: null unless it is this member's, with that rank.
Request* find_request(Card& card, const Member& member, Rank rank, uint32_t handle);
// It is over, with the first status that it gets. Leaves its lists; what it had under way is
// waited for, and its packets are not sent again.
void end_request(Card& card, Request& request, peal_status status, Rank failed = PEAL_NO_RANK);
// It is handed back if it is over and nothing refers to it.
void finish_if_quiet(Card& card, Request& request);
// A DMA of it is done.
void request_dma_done(Card& card, Request& request);

// A fence whose puts are all over.
void end_fence_if_passed(Card& card, Request& fence);
// A request or a connection of the member's is gone.
void leave_member(Card& card, Member& member);

// --- receives that wait for their message ---
void post_receive(Card& card, Member& member, Request& request);
void unpost_receive(Card& card, Member& member, Request& request);

}  // namespace peal::p2p
