// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/request.h"

#include "firmware/base/assert.h"
#include "firmware/base/clear.h"

namespace peal::p2p {

void put_first(State& state, RequestList& list, Request& request, Place place) {
  PEAL_ASSERT(request.place == Place::kNowhere);
  request.place = place;
  request.next = list.first;
  list.first = name_of(state, request);
  if (list.last == 0) list.last = list.first;
}

void take_out(State& state, RequestList& list, Request& request) {
  Request* before = nullptr;
  for (Request* each = request_at(state, list.first); each != &request;
       each = request_at(state, each->next)) {
    PEAL_ASSERT(each != nullptr);
    before = each;
  }
  if (before == nullptr) {
    list.first = request.next;
  } else {
    before->next = request.next;
  }
  if (request.next == 0) list.last = before == nullptr ? uint16_t{0} : name_of(state, *before);
  request.place = Place::kNowhere;
}

Request* take_request(Card& card, Member& member, Kind kind, Rank rank, Ticket ticket) {
  State& state = card.p2p;
  const bool serves = kind == Kind::kServe;
  const uint32_t own = state.requests_used - state.services_used;
  if (serves ? state.services_used >= kServices : own >= kRequests - kServices) {
    count(card, PEAL_COUNTER_NO_P2P_REQUEST);
    return nullptr;
  }
  Request* request = request_at(state, state.free_request);
  if (request != nullptr) {
    state.free_request = request->next;
  } else {
    request = &state.requests[state.requests_touched++];
  }
  uint16_t generation = request->generation;
  if (generation == 0) generation = card.first_generation;
  clear(*request);
  request->generation = static_cast<uint16_t>(generation == 0xffff ? 1 : generation + 1);
  request->kind = kind;
  request->member = member.index;
  request->rank = static_cast<uint16_t>(rank);
  request->ticket = ticket;
  request->failed_rank = PEAL_NO_RANK;
  request->order = ++state.order;
  request->accepted_ns = card.now;
  ++state.requests_used;
  if (serves) ++state.services_used;
  if (kind == Kind::kFence) ++state.fences;
  ++member.p2p_uses;
  return request;
}

void free_request(Card& card, Request& request) {
  State& state = card.p2p;
  Member& member = card.members[request.member];
  if (request.kind == Kind::kServe) --state.services_used;
  if (request.kind == Kind::kFence) --state.fences;
  request.kind = Kind::kFree;
  request.next = state.free_request;
  state.free_request = name_of(state, request);
  --state.requests_used;
  leave_member(card, member);
}

Request* find_request(Card& card, const Connection& connection, uint32_t handle) {
  const uint32_t index = handle & 0xffff;
  if (index >= card.p2p.requests_touched) return nullptr;
  Request& request = card.p2p.requests[index];
  const bool good = request.kind != Kind::kFree && !request.over &&
                    request.generation == handle >> 16 && carries(connection, request);
  return good ? &request : nullptr;
}

void post_receive(Card& card, Member& member, Request& request) {
  State& state = card.p2p;
  const uint16_t name = name_of(state, request);
  request.next_posted = 0;
  if (member.receives.first == 0) {
    member.receives.first = name;
  } else {
    state.requests[member.receives.last - 1].next_posted = name;
  }
  member.receives.last = name;
}

void unpost_receive(Card& card, Member& member, Request& request) {
  State& state = card.p2p;
  Request* before = nullptr;
  Request* each = request_at(state, member.receives.first);
  while (each != nullptr && each != &request) {
    before = each;
    each = request_at(state, each->next_posted);
  }
  if (each == nullptr) return;
  if (before == nullptr) {
    member.receives.first = request.next_posted;
  } else {
    before->next_posted = request.next_posted;
  }
  if (request.next_posted == 0) {
    member.receives.last = before == nullptr ? uint16_t{0} : name_of(state, *before);
  }
}

}  // namespace peal::p2p
