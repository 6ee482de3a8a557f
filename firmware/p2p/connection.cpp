// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/connection.h"

#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/p2p/request.h"
#include "firmware/p2p/timing.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

void leave_bucket(State& state, Connection& connection) {
  uint16_t* link = &bucket_of(state, connection.whose);
  const auto name = static_cast<uint16_t>(index_of(state, connection) + 1);
  while (*link != name) link = &state.connections[*link - 1].next;
  *link = connection.next;
}

void leave_ready(State& state, Connection& connection) {
  if (!connection.ready) return;
  const auto name = static_cast<uint16_t>(index_of(state, connection) + 1);
  uint16_t before = 0;
  uint16_t each = state.ready_first;
  while (each != name) {
    before = each;
    each = state.connections[each - 1].next_ready;
  }
  if (before == 0) {
    state.ready_first = connection.next_ready;
  } else {
    state.connections[before - 1].next_ready = connection.next_ready;
  }
  if (state.ready_last == name) state.ready_last = before;
  connection.ready = false;
}

// Room for messages that come with their bytes: half of the connections, so that the others can
// always be given back.
void take_tokens(State& state, Connection& connection) {
  if (state.with_tokens >= kConnections / 2 || state.tokens_used + kTokens > state.tokens_most) {
    return;
  }
  ++state.with_tokens;
  state.tokens_used = static_cast<uint16_t>(state.tokens_used + kTokens);
  connection.tokens = kTokens;
  connection.data_told = kTokens;
}

void give_tokens_back(State& state, Connection& connection) {
  if (connection.tokens == 0) return;
  --state.with_tokens;
  state.tokens_used = static_cast<uint16_t>(state.tokens_used - kTokens);
}

// Messages that were announced and have no receive are forgotten on both sides, and announced
// anew: the sender's record of them stays. In their order, before those that were not
// announced.
void announce_again(Card& card, const Connection& connection) {
  State& state = card.p2p;
  for (uint64_t last = 0;;) {
    Request* next = nullptr;
    for (uint32_t i = 0; i < state.requests_touched; ++i) {
      Request& each = state.requests[i];
      if (each.kind != Kind::kSend || !each.announced || each.matched || each.over) continue;
      if (!carries(connection, each)) continue;
      if (each.order > last && (next == nullptr || each.order < next->order)) next = &each;
    }
    if (next == nullptr) return;
    last = next->order;
    next->announced = false;
    next->due = Due::kAnnounce;
    put_last(state, state.wanting, *next, Place::kWanting);
  }
}

void want_again(State& state, RequestList& list) {
  while (Request* request = take_first(state, list)) {
    put_last(state, state.wanting, *request, Place::kWanting);
  }
}

void enlist(Card& card, Connection& connection, Request& request) {
  State& state = card.p2p;
  switch (request.due) {
    case Due::kAnnounce:
      put_last(state, connection.sends, request, Place::kSends);
      break;
    case Due::kData:
    case Due::kGet:
      put_last(state, connection.work, request, Place::kWork);
      break;
    default:  // the other side waits for it
      put_first(state, connection.work, request, Place::kWork);
      break;
  }
  note_ready(card, connection);
}

}  // namespace

Connection* find_by_handle(Card& card, const Member& member, const peal_wire_header& header) {
  const uint32_t handle = header.block_bytes;
  const uint32_t index = handle & 0xffff;
  if (index >= card.p2p.connections_touched) return nullptr;
  Connection& connection = kept(card.p2p.connections[index]);
  const bool good = is_in_life(connection, handle) && connection.member == member.index &&
                    connection.rank == header.sender && connection.engine == header.edge;
  return good ? &connection : nullptr;
}

Connection& take_connection(Card& card, const Member& member, const peal_peer_address& address,
                            uint8_t engine) {
  State& state = card.p2p;
  PEAL_ASSERT(has_free_connection(state));
  uint32_t index = state.connections_touched;
  if (state.free_connection != 0) {
    index = state.free_connection - 1u;
    state.free_connection = state.connections[index].next;
  } else {
    ++state.connections_touched;
  }
  Connection& connection = state.connections[index];
  uint16_t generation = connection.generation;
  if (generation == 0) generation = card.first_generation;
  connection = {};
  connection.generation = next_generation(generation);
  connection.member = member.index;
  connection.rank = address.rank;
  connection.engine = engine;
  connection.whose = whose(member.index, address.rank, engine);
  connection.life = ++state.lives;
  connection.address = address;
  address_packet(address, membership_kind(member.membership, 0), &connection.sent);
  connection.sent.edge = engine;
  const Membership& self = member.membership;
  const uint32_t entry = peer_entry(self.rank, address.rank, self.ranks);
  connection.peer_entry = entry == kNoPeer ? kNoEntry : static_cast<uint8_t>(entry);
  connection.told = kPlaces;
  connection.window = kWindow / 2;
  connection.answer_ns = kFirstIntervals * card.timeouts.nack_ns;
  connection.opened_ns = connection.used_ns = card.now;
  connection.timer.kind = TimerKind::kConnection;
  connection.timer.member = static_cast<uint16_t>(index);
  take_tokens(state, connection);
  uint16_t& bucket = bucket_of(state, connection.whose);
  connection.next = bucket;
  bucket = static_cast<uint16_t>(index + 1);
  ++state.connections_used;
  ++card.members[member.index].p2p_uses;
  count(card, PEAL_COUNTER_CONNECTIONS_OPENED);
  return connection;
}

void give_back(Card& card, Connection& connection) {
  State& state = card.p2p;
  card.timers.disarm(connection.timer);
  for (uint32_t i = 0; i < connection.place_count; ++i) {
    Announcement& place = connection.places[i];
    if (place.packet != nullptr) unhold_packet(card, place.packet);
  }
  leave_ready(state, connection);
  announce_again(card, connection);
  want_again(state, connection.work);
  want_again(state, connection.sends);
  leave_bucket(state, connection);
  give_tokens_back(state, connection);
  connection.phase = ConnectionPhase::kFree;
  connection.heard_by = {};
  connection.next = state.free_connection;
  state.free_connection = static_cast<uint16_t>(index_of(state, connection) + 1);
  --state.connections_used;
  state.wanted = card.due.messages = true;
  count(card, PEAL_COUNTER_CONNECTIONS_CLOSED);
  leave_member(card, card.members[connection.member]);
}

void attach(Card& card, Request& request) {
  Connection* connection = find_connection(card, request);
  if (connection != nullptr) {
    enlist(card, *connection, request);
    return;
  }
  put_last(card.p2p, card.p2p.wanting, request, Place::kWanting);
  card.p2p.wanted = card.due.messages = true;
}

void attach_wanting(Card& card, Connection& connection) {
  State& state = card.p2p;
  RequestList others = {};
  while (Request* request = take_first(state, state.wanting)) {
    if (carries(connection, *request)) {
      enlist(card, connection, *request);
    } else {
      put_last(state, others, *request, Place::kWanting);
    }
  }
  state.wanting = others;
}

void put_on_ready_list(Card& card, Connection& connection) {
  State& state = card.p2p;
  connection.ready = true;
  connection.next_ready = 0;
  const auto name = static_cast<uint16_t>(index_of(state, connection) + 1);
  if (state.ready_first == 0) {
    state.ready_first = name;
  } else {
    state.connections[state.ready_last - 1].next_ready = name;
  }
  state.ready_last = name;
  card.due.messages = true;
}

void remove_place(Connection& connection, uint32_t at) {
  if (connection.places[at].packet != nullptr) --connection.held;
  --connection.place_count;
  for (uint32_t i = at; i < connection.place_count; ++i) {
    connection.places[i] = connection.places[i + 1];
  }
}

}  // namespace peal::p2p
