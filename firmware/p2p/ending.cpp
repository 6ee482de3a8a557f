// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/ending.h"

#include "firmware/base/assert.h"
#include "firmware/host/keys.h"
#include "firmware/p2p/connection.h"
#include "firmware/p2p/request.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

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
  const bool skips = request.status != PEAL_STATUS_OK && request.records > 0;
  if (request.place == Place::kNowhere && !request.owes && !skips) return;
  Connection* connection = find_connection(card, request);
  if (connection == nullptr) return;
  if (request.place == Place::kWork) take_out(card.p2p, connection->work, request);
  if (request.place == Place::kSends) take_out(card.p2p, connection->sends, request);
  if (request.owes) {
    request.owes = false;
    --connection->owing;
    note_ready(card, *connection);
  }
  if (skips) skip_records(card, *connection, request);
}

}  // namespace

void end_request(Card& card, Request& request, peal_status status, Rank failed) {
  if (request.over) return;
  request.over = true;
  request.status = static_cast<uint16_t>(status);
  request.failed_rank = failed;
  request.due = Due::kNothing;
  if (request.place == Place::kWanting) take_out(card.p2p, card.p2p.wanting, request);
  if (request.place == Place::kCopies) {
    take_out(card.p2p, card.members[request.member].copies, request);
  }
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

void finish(Card& card, Request& request) {
  if (request.key != 0) let_go_of_key(card, request.key);
  request.key = 0;
  if (request.kind == Kind::kServe) {
    free_request(card, request);
    return;
  }
  put_last(card.p2p, card.p2p.over, request, Place::kOver);
  card.due.messages = true;
  if (request.kind == Kind::kPut) look_at_fences(card);
}

void end_fence_if_passed(Card& card, Request& fence) {
  for (uint32_t i = 0; i < card.p2p.requests_touched; ++i) {
    if (is_awaited(card.p2p.requests[i], fence)) return;
  }
  end_request(card, fence, PEAL_STATUS_OK);
}

void drop_records(Card& card, Connection& connection) {
  for (SendRecord& record : connection.records) {
    Request* request = request_at(card.p2p, record.request);
    if (record.kept != nullptr) unkeep(card, record);
    record = {};
    if (request == nullptr) continue;
    --request->records;
    finish_if_quiet(card, *request);
  }
}

}  // namespace peal::p2p
