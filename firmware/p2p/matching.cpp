// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/matching.h"

#include <cstring>

#include "firmware/base/assert.h"
#include "firmware/p2p/abandoned.h"
#include "firmware/p2p/ending.h"
#include "firmware/p2p/records.h"
#include "firmware/p2p/request.h"
#include "firmware/p2p/seeking.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

// A program's receives take what the same program sends in the same iteration. (A rank that has
// failed may be in the next one before others know.)
bool is_of_another_iteration(const Card& card, const Request& receive,
                             const Announcement& message) {
  if (message.program == 0 || receive.ticket.owner != Owner::kQueue) return false;
  const Origin& own = card.queues.queues[receive.ticket.queue].origin;
  return message.program == own.slot && message.iteration != own.iteration;
}

bool is_wanted(const Card& card, const Request& receive, const Announcement& message) {
  return (receive.any_tag || receive.tag == message.tag) &&
         !is_of_another_iteration(card, receive, message);
}

// How it ended is known, but for telling the other side.
void tell_done(Card& card, Request& request, peal_status status) {
  request.status = static_cast<uint16_t>(status);
  request.due = Due::kDone;
  attach(card, request);
}

// The receive has its message, whose packet, if it came with its bytes, is held for it.
void match(Card& card, Connection& connection, Request& receive, const Announcement& message,
           bool whole) {
  unpost_receive(card, card.members[receive.member], receive);
  receive.matched = true;
  receive.engine = connection.engine;
  receive.owes = true;
  ++connection.owing;
  ++connection.told;
  if (message.packet != nullptr) ++connection.data_told;
  receive.peer_request = message.request;
  receive.tag = message.tag;
  const bool fits = message.bytes <= receive.bytes;
  receive.bytes = message.bytes;
  if (!fits || message.bytes == 0) {
    if (message.packet != nullptr) unhold_packet(card, message.packet);
    tell_done(card, receive, fits ? PEAL_STATUS_OK : PEAL_STATUS_TRUNCATED);
    return;
  }
  receive.packet = message.packet;
  receive.due = whole ? Due::kLand : Due::kReady;
  attach(card, receive);
}

Request* find_posted(Card& card, const Member& member, Rank rank, const Announcement& message) {
  for (uint16_t name = member.receives.first; name != 0;) {
    Request& receive = card.p2p.requests[name - 1];
    if (receive.rank == rank && is_wanted(card, receive, message)) return &receive;
    name = receive.next_posted;
  }
  return nullptr;
}

// With the first message that this connection has for it. False: there is none.
bool match_announced(Card& card, Connection& connection, Request& request) {
  if (!may_match(connection)) return false;
  for (uint32_t i = 0; i < connection.place_count; ++i) {
    const Announcement message = connection.places[i];
    if (!is_wanted(card, request, message)) continue;
    if (is_abandoned(card, connection, message.program, message.iteration)) continue;
    remove_place(connection, i);
    match(card, connection, request, message, message.packet != nullptr);
    return true;
  }
  return false;
}

}  // namespace

void match_receive(Card& card, Member& member, Request& request) {
  post_receive(card, member, request);
  Connection* connections[kEngines];
  for (uint8_t engine = 0; engine < kEngines; ++engine) {
    Connection*& connection = connections[engine];
    connection = find_connection(card, member.index, request.rank, engine);
    if (connection != nullptr && match_announced(card, *connection, request)) return;
  }
  for (Connection* connection : connections) {
    if (connection != nullptr) seek(card, *connection, request);
  }
}

peal_counter on_announce(Card& card, Connection& connection, Packet* packet) {
  const uint32_t data = packet->header->length - PEAL_P2P_BODY_BYTES;
  peal_p2p_announce body;
  std::memcpy(&body, packet->payload, sizeof(body));
  const bool whole = body.bytes == data;
  if (data != 0 && (!whole || connection.held >= connection.tokens)) {
    return PEAL_COUNTER_DROP_P2P_FIELD;
  }
  const Member& member = member_of(card, connection);
  Announcement message = {.tag = body.tag,
                          .bytes = body.bytes,
                          .request = body.request,
                          .program = body.program,
                          .iteration = body.iteration,
                          .packet = data != 0 ? packet : nullptr};
  if (may_match(connection) && is_abandoned(card, connection, message.program, message.iteration)) {
    const bool answered = throw_away(card, connection, body.request, data != 0);
    return answered ? PEAL_COUNTER_RECEIVED : PEAL_COUNTER_DROP_NO_P2P_REQUEST;
  }
  Request* receive =
      may_match(connection) ? find_posted(card, member, connection.rank, message) : nullptr;
  if (receive == nullptr) {
    if (connection.place_count > kPlaces) return PEAL_COUNTER_DROP_P2P_FIELD;
    count(card, PEAL_COUNTER_P2P_UNEXPECTED);
    connection.places[connection.place_count++] = message;
    if (message.packet != nullptr) ++connection.held;
  }
  if (message.packet != nullptr) ++packet->holds;
  if (receive != nullptr) match(card, connection, *receive, message, data != 0);
  seek(card, connection);
  return PEAL_COUNTER_RECEIVED;
}

peal_status on_ready(Card& card, Connection& connection, const peal_p2p_ready& body) {
  Request* send = find_request(card, connection, body.request);
  if (send == nullptr || send->kind != Kind::kSend || !send->announced || send->matched ||
      send->bytes == 0) {
    return PEAL_STATUS_DMA_FAULT;
  }
  send->matched = true;
  send->peer_request = body.receive;
  send->due = Due::kData;
  attach(card, *send);
  return PEAL_STATUS_OK;
}

peal_counter on_done(Card& card, Connection& connection, const peal_p2p_done& body) {
  const bool fault = body.status == PEAL_STATUS_DMA_FAULT;
  if (!fault && body.status != PEAL_STATUS_OK && body.status != PEAL_STATUS_TRUNCATED) {
    return PEAL_COUNTER_DROP_P2P_FIELD;
  }
  Request* request = find_request(card, connection, body.request);
  if (request == nullptr) return PEAL_COUNTER_RECEIVED;  // it has ended otherwise
  const bool sends = request->kind == Kind::kSend && request->announced && !request->matched;
  const bool awaits = request->kind == Kind::kGet || request->kind == Kind::kReceive;
  if (sends || (awaits && fault)) {
    const Rank whose = fault ? Rank{connection.rank} : Rank{PEAL_NO_RANK};
    end_request(card, *request, static_cast<peal_status>(body.status), whose);
  }
  return PEAL_COUNTER_RECEIVED;
}

bool awaits_receive(const Card& card, const Connection& connection) {
  const State& state = card.p2p;
  for (uint32_t i = 0; i < state.requests_touched; ++i) {
    const Request& each = state.requests[i];
    if (each.kind == Kind::kSend && each.announced && !each.matched && !each.over &&
        carries(connection, each)) {
      return true;
    }
  }
  return false;
}

void land_early(Card& card, Request& request) {
  Packet* packet = request.packet;
  request.packet = nullptr;
  request.due = Due::kNothing;
  ++request.dma;
  ++card.members[request.member].dma;
  dma_write(card, {.host = request.memory,
                   .card = packet->payload + PEAL_P2P_BODY_BYTES,
                   .bytes = static_cast<uint32_t>(request.bytes),
                   .packet = packet,
                   .tag = {.member = request.member,
                           .owner = DmaOwner::kPointToPoint,
                           .slot = 0,
                           .role = static_cast<uint8_t>(DmaRole::kEarly),
                           .step = 0,
                           .piece = 0,
                           .detail = 0,
                           .sequence = uint64_t{name_of(card.p2p, request)} << 32}});
  unhold_packet(card, packet);
}

void on_early_landed(Card& card, const DmaDone& done) {
  Request& request = card.p2p.requests[(done.sequence >> 32) - 1];
  --card.members[request.member].dma;
  unhold_packet(card, done.packet);
  if (!request.over) tell_done(card, request, done.ok ? PEAL_STATUS_OK : PEAL_STATUS_DMA_FAULT);
  request_dma_done(card, request);
}

void end_if_sent(Card& card, Request& request) {
  if (request.over || request.records != 0 || request.due != Due::kNothing) return;
  const bool streams = request.kind == Kind::kSend && request.matched;
  if (request.kind == Kind::kPut || request.kind == Kind::kServe || streams) {
    end_request(card, request, PEAL_STATUS_OK);
  }
}

void fail_sending(Card& card, Request& request) {
  if (request.over) return;
  if (request.kind == Kind::kServe || (request.kind == Kind::kSend && request.matched)) {
    // The other side waits for bytes that will not come.
    Connection* connection = find_connection(card, request);
    PEAL_ASSERT(connection != nullptr);
    skip_records(card, *connection, request);
    if (request.place == Place::kWork) take_out(card.p2p, connection->work, request);
    tell_done(card, request, PEAL_STATUS_DMA_FAULT);
    return;
  }
  end_request(card, request, PEAL_STATUS_DMA_FAULT);
}

}  // namespace peal::p2p
