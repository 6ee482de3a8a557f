// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/request.h"

#include "firmware/base/assert.h"
#include "firmware/group/unsettled.h"
#include "firmware/host/keys.h"
#include "firmware/p2p/connection.h"
#include "firmware/p2p/sending.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

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

// Puts that the fence waits for.
bool is_awaited(const Request& put, const Request& fence) {
  return put.kind == Kind::kPut && put.place != Place::kOver && put.member == fence.member &&
         put.order < fence.order && (fence.any_tag || put.rank == fence.rank);
}

void look_at_fences(Card& card) {
  State& state = card.p2p;
  if (state.fences == 0) return;
  for (uint32_t i = 0; i < state.requests_touched; ++i) {
    Request& fence = state.requests[i];
    if (fence.kind == Kind::kFence && !fence.over) end_fence_if_passed(card, fence);
  }
}

// Leaves the lists of its connection.
void leave_connection(Card& card, Request& request) {
  Connection* connection = find_connection(card, request.member, request.rank);
  if (connection == nullptr) return;
  if (request.place == Place::kWork) take_out(card.p2p, connection->work, request);
  if (request.place == Place::kSends) take_out(card.p2p, connection->sends, request);
  if (request.owes) {
    request.owes = false;
    --connection->owing;
    note_ready(card, *connection);
  }
  if (request.status != PEAL_STATUS_OK && request.records > 0) {
    skip_records(card, *connection, request);
  }
}

}  // namespace

void put_last(State& state, RequestList& list, Request& request, Place place) {
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

void put_first(State& state, RequestList& list, Request& request, Place place) {
  PEAL_ASSERT(request.place == Place::kNowhere);
  request.place = place;
  request.next = list.first;
  list.first = name_of(state, request);
  if (list.last == 0) list.last = list.first;
}

Request* take_first(State& state, RequestList& list) {
  Request* request = request_at(state, list.first);
  if (request == nullptr) return nullptr;
  list.first = request->next;
  if (list.first == 0) list.last = 0;
  request->place = Place::kNowhere;
  return request;
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

Request* take_request(Card& card, Member& member, Kind kind, Rank rank, const Ticket& ticket) {
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
  *request = {};
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

Request* find_request(Card& card, const Member& member, Rank rank, uint32_t handle) {
  const uint32_t index = handle & 0xffff;
  if (index >= card.p2p.requests_touched) return nullptr;
  Request& request = card.p2p.requests[index];
  const bool good = request.kind != Kind::kFree && !request.over &&
                    request.generation == handle >> 16 && request.member == member.index &&
                    request.rank == rank;
  return good ? &request : nullptr;
}

void end_request(Card& card, Request& request, peal_status status, Rank failed) {
  if (request.over) return;
  request.over = true;
  request.status = static_cast<uint16_t>(status);
  request.failed_rank = failed;
  request.due = Due::kNothing;
  if (request.place == Place::kWanting) take_out(card.p2p, card.p2p.wanting, request);
  if (request.kind == Kind::kReceive && !request.matched) {
    unpost_receive(card, card.members[request.member], request);
  }
  leave_connection(card, request);
  if (request.packet != nullptr) {
    unhold_packet(card, request.packet);
    request.packet = nullptr;
  }
  finish_if_quiet(card, request);
}

void finish_if_quiet(Card& card, Request& request) {
  if (request.kind == Kind::kFree || !request.over || request.dma != 0 || request.records != 0 ||
      request.place != Place::kNowhere) {
    return;
  }
  const Member& member = card.members[request.member];
  if (request.key != 0) let_go_of_key(card, member.context, request.key);
  request.key = 0;
  if (request.kind == Kind::kServe) {
    free_request(card, request);
    return;
  }
  put_last(card.p2p, card.p2p.over, request, Place::kOver);
  card.p2p.due = true;
  if (request.kind == Kind::kPut) look_at_fences(card);
}

void request_dma_done(Card& card, Request& request) {
  PEAL_ASSERT(request.dma > 0);
  --request.dma;
  finish_if_quiet(card, request);
}

void end_fence_if_passed(Card& card, Request& fence) {
  for (uint32_t i = 0; i < card.p2p.requests_touched; ++i) {
    if (is_awaited(card.p2p.requests[i], fence)) return;
  }
  end_request(card, fence, PEAL_STATUS_OK);
}

void leave_member(Card& card, Member& member) {
  PEAL_ASSERT(member.p2p_uses > 0);
  --member.p2p_uses;
  if (member.p2p_uses == 0 && member.phase == MemberPhase::kDying) note_unsettled(card, member);
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

bool next_over(Card& card, Over* over) {
  State& state = card.p2p;
  Request* request = take_first(state, state.over);
  if (request == nullptr) return false;
  const auto status = static_cast<peal_status>(request->status);
  const bool counts = status == PEAL_STATUS_OK || status == PEAL_STATUS_TRUNCATED;
  *over = {.ticket = request->ticket,
           .kind = request->kind,
           .status = status,
           .member = request->member,
           .rank = request->failed_rank,
           .bytes = counts ? request->bytes : 0,
           .tag = request->kind == Kind::kReceive && counts ? request->tag : 0,
           .accepted_ns = request->accepted_ns};
  free_request(card, *request);
  return true;
}

}  // namespace peal::p2p
