// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/p2p.h"

#include <utility>

#include "firmware/base/assert.h"
#include "firmware/group/remote.h"
#include "firmware/host/keys.h"
#include "firmware/p2p/abandoned.h"
#include "firmware/p2p/acknowledgement.h"
#include "firmware/p2p/body.h"
#include "firmware/p2p/clock.h"
#include "firmware/p2p/connection.h"
#include "firmware/p2p/control.h"
#include "firmware/p2p/copying.h"
#include "firmware/p2p/ending.h"
#include "firmware/p2p/handshake.h"
#include "firmware/p2p/matching.h"
#include "firmware/p2p/opening.h"
#include "firmware/p2p/receiving.h"
#include "firmware/p2p/request.h"
#include "firmware/p2p/seeking.h"
#include "firmware/p2p/sending.h"
#include "firmware/p2p/waiting.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

// What all requests have. Null: no record is free.
[[gnu::always_inline]] inline Request* begin(Card& card, Member& member, Kind kind, Rank rank,
                                             const HostAddress& memory, uint64_t bytes,
                                             uint32_t key, Ticket ticket) {
  Request* request = take_request(card, member, kind, rank, ticket);
  if (request == nullptr) return nullptr;
  request->memory = memory;
  request->bytes = bytes;
  request->key = key;
  if (key != 0) hold_key(card, key);
  if (card.p2p.timer.place == 0) expect_awaited(card);  // else it is looked at earlier
  return request;
}

// In a group that is poisoned nothing begins.
bool ends_at_once(Card& card, const Member& member, Request& request) {
  if (!member.membership.poisoned) return false;
  end_request(card, request, PEAL_STATUS_PEER_DEAD, member.membership.dead_rank);
  return true;
}

void end_member(Card& card, Member& member) {
  State& state = card.p2p;
  const bool poisoned = member.membership.poisoned;
  const peal_status status = poisoned ? PEAL_STATUS_PEER_DEAD : PEAL_STATUS_CLOSED;
  const Rank rank = poisoned ? Rank{member.membership.dead_rank} : Rank{PEAL_NO_RANK};
  for (uint32_t i = 0; i < state.requests_touched; ++i) {
    Request& request = state.requests[i];
    if (request.kind == Kind::kFree || request.member != member.index) continue;
    end_request(card, request, status, rank);
  }
  for (uint32_t i = 0; i < state.connections_touched; ++i) {
    Connection& connection = state.connections[i];
    if (connection.phase == ConnectionPhase::kFree || connection.member != member.index) continue;
    drop_records(card, connection);
    give_back(card, connection);
  }
  forget_waiters(card, member);
}

void end_members(Card& card) {
  card.p2p.failing = false;
  for (Member& member : members_of(card)) {
    if (member.p2p_uses == 0 && card.p2p.waiter_count == 0) continue;
    const bool ends = member.membership.poisoned || member.phase == MemberPhase::kDying;
    if (ends && member.phase != MemberPhase::kFree) end_member(card, member);
  }
}

}  // namespace

bool is_reachable(const Member& member, Rank rank) {
  const Membership& self = member.membership;
  if (rank >= self.ranks) return false;
  return rank == self.rank || peer_entry(self.rank, rank, self.ranks) != kNoPeer ||
         member.remote.key != 0;
}

bool start_put(Card& card, Member& member, const Put& put, Ticket ticket) {
  const peal_descriptor& what = put.what;
  const Origin& origin = put.origin;
  Request* request = begin(card, member, Kind::kPut, what.rank, {put.region, what.offset},
                           what.bytes, what.key, ticket);
  if (request == nullptr) return false;
  if (ends_at_once(card, member, *request)) return true;
  request->remote_key = what.remote_key;
  request->remote_offset = what.remote_offset;
  request->notice = {what.queue, what.counter, what.steps, origin.iteration};
  request->program = origin.slot;
  request->together = origin.together;
  request->index = put.index;
  request->engine = origin.engine;
  if (what.rank == member.membership.rank) {
    start_copy(card, member, *request);
    return true;
  }
  // Its packets, each looked at by itself, would go on at the beginning of that memory.
  if (what.bytes > ~what.remote_offset) {
    end_request(card, *request, PEAL_STATUS_BAD_BOUNDS, what.rank);
    return true;
  }
  request->posted =
      origin.posted && what.bytes != 0 && what.bytes <= kChunkBytes && !card.timeouts.go_back_n;
  request->due = Due::kData;
  Connection* connection = find_connection(card, *request);
  if (connection == nullptr) {
    attach(card, *request);
  } else {
    send_put(card, *connection, *request);
  }
  return true;
}

bool start_get(Card& card, Member& member, const Get& get, Ticket ticket) {
  Request* request = begin(card, member, Kind::kGet, get.from, get.to, get.bytes, get.key, ticket);
  if (request == nullptr) return false;
  if (ends_at_once(card, member, *request)) return true;
  request->remote_key = get.remote_key;
  request->remote_offset = get.remote_offset;
  request->due = Due::kGet;
  attach(card, *request);
  return true;
}

bool start_send(Card& card, Member& member, const Send& send, Ticket ticket) {
  Request* request =
      begin(card, member, Kind::kSend, send.to, send.from, send.bytes, send.key, ticket);
  if (request == nullptr) return false;
  request->tag = send.tag;
  request->engine = send.engine;
  if (ends_at_once(card, member, *request)) return true;
  request->program = send.program;
  request->notice.iteration = send.iteration;
  request->due = Due::kAnnounce;
  attach(card, *request);
  return true;
}

bool start_receive(Card& card, Member& member, const Receive& receive, Ticket ticket) {
  Request* request = begin(card, member, Kind::kReceive, receive.from, receive.to, receive.bytes,
                           receive.key, ticket);
  if (request == nullptr) return false;
  request->tag = receive.tag;
  request->any_tag = receive.any_tag;
  if (ends_at_once(card, member, *request)) return true;
  match_receive(card, member, *request);
  return true;
}

bool start_fence(Card& card, Member& member, const Fence& fence, Ticket ticket) {
  const bool all = fence.to == kEverybody;
  Request* request =
      begin(card, member, Kind::kFence, all ? member.membership.rank : fence.to, {}, 0, 0, ticket);
  if (request == nullptr) return false;
  if (ends_at_once(card, member, *request)) return true;
  request->any_tag = all;
  end_fence_if_passed(card, *request);
  return true;
}

Request* take_over(Card& card) { return take_first(card.p2p, card.p2p.over); }

void forget_over(Card& card, Request& request) { free_request(card, request); }

void start(Card& card) {
  State& state = card.p2p;
  const uint32_t most = card.port->packet_buffers() / 8;
  state.tokens_most =
      static_cast<uint16_t>(most < CONFIG_RECEIVE_TOKENS ? most : CONFIG_RECEIVE_TOKENS);
  state.kept_most = static_cast<uint16_t>(most < UINT16_MAX ? most : UINT16_MAX);
  state.timer.kind = TimerKind::kPointToPoint;
}

peal_counter receive(Card& card, Member& member, Packet* packet, const peal_peer_address& address) {
  const peal_wire_header& header = *packet->header;
  const uint32_t hops = PEAL_P2P_ASK | (header.type == PEAL_PACKET_ACK ? PEAL_P2P_ANSWER : 0);
  if ((header.hop & ~hops) != 0 || header.edge >= kEngines || header.flags != 0) {
    return PEAL_COUNTER_DROP_P2P_FIELD;
  }
  switch (header.type) {
    case PEAL_PACKET_OPEN:
      return on_open(card, member, header, body_of<peal_p2p_open>(*packet), address);
    case PEAL_PACKET_ACCEPT:
      return on_accept(card, member, header, body_of<peal_p2p_open>(*packet).handle, address);
    case PEAL_PACKET_CLOSE:
      return on_close(card, member, header, body_of<peal_p2p_open>(*packet).handle, address);
    case PEAL_PACKET_CLOSED:
      return on_closed(card, member, header);
    default: {
      Connection* connection = find_by_handle(card, member, header);
      return connection == nullptr ? PEAL_COUNTER_DROP_CONNECTION
                                   : on_connection(card, *connection, packet);
    }
  }
}

peal_counter on_connection(Card& card, Connection& connection, Packet* packet) {
  const peal_wire_header& header = *packet->header;
  if (connection.phase == ConnectionPhase::kOpening) return PEAL_COUNTER_DROP_CONNECTION;
  note_heard(card, connection);
  const bool acks = header.type == PEAL_PACKET_ACK;
  const uint64_t landed = acks ? body_of<peal_p2p_ack>(*packet).landed : 0;
  if (!take_acknowledgement(card, connection, header, landed)) {
    return PEAL_COUNTER_DROP_P2P_FIELD;
  }
  if (acks) {
    const bool answers = (header.hop & PEAL_P2P_ANSWER) != 0;
    if (answers && connection.inquired != 0) take_answer(card, connection);
    if ((header.hop & PEAL_P2P_ASK) != 0) {
      connection.questioned = true;
      send_ack(card, connection);
      seek(card, connection);
    }
    return PEAL_COUNTER_RECEIVED;
  }
  if (header.type == PEAL_PACKET_SEEK) {
    return on_seek(card, connection, header, body_of<peal_p2p_seek>(*packet));
  }
  if (header.type == PEAL_PACKET_REFUSED) {
    return on_refused(card, connection, body_of<peal_p2p_refused>(*packet));
  }
  return on_numbered(card, connection, packet);
}

void on_dma(Card& card, const DmaDone& done) {
  switch (static_cast<DmaRole>(done.role)) {
    case DmaRole::kRead:
      on_read_done(card, done);
      break;
    case DmaRole::kLand:
      on_landed(card, done);
      break;
    case DmaRole::kEarly:
      on_early_landed(card, done);
      break;
    case DmaRole::kCopyIn:
      on_copied_in(card, done);
      break;
    case DmaRole::kCopyOut:
      on_copied_out(card, done);
      break;
  }
}

void on_connection_timer(Card& card, uint32_t index) {
  on_deadline(card, card.p2p.connections[index]);
}

void on_timer(Card& card) {
  card.p2p.wanted = card.due.messages = true;
  if (std::exchange(card.p2p.abandoned, false)) {
    for (Member& member : members_of(card)) throw_away_announced(card, member);
  }
  if (std::exchange(card.p2p.copies_starve, false)) {
    for (Member& member : members_of(card)) go_on_copying(card, member);
  }
  watch_awaited(card);
}

void fail_addresses(Card& card, const Member& member) {
  State& state = card.p2p;
  for (uint32_t i = 0; i < state.requests_touched; ++i) {
    Request& request = state.requests[i];
    if (request.place != Place::kWanting || request.member != member.index) continue;
    const Membership& self = member.membership;
    if (request.rank == self.rank || peer_entry(self.rank, request.rank, self.ranks) != kNoPeer) {
      continue;
    }
    end_request(card, request, PEAL_STATUS_DMA_FAULT);
  }
}

void advance_all(Card& card) {
  State& state = card.p2p;
  if (state.failing) end_members(card);
  if (state.wanted) serve_waiting(card);
  if (state.ready_first != 0) send_ready(card);
  // (A connection that was closed leaves its place to the next.)
  if (state.wanted) serve_waiting(card);
}

}  // namespace peal::p2p
