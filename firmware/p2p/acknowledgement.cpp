// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/acknowledgement.h"

#include <cstring>
#include <utility>

#include "firmware/p2p/control.h"
#include "firmware/p2p/ending.h"
#include "firmware/p2p/matching.h"
#include "firmware/p2p/records.h"
#include "firmware/p2p/request.h"
#include "firmware/p2p/timing.h"

namespace peal::p2p {
namespace {

// A packet is lost when one that was sent so much later is in memory: less may be the wire's
// order.
constexpr uint32_t kReordered = 3;

void note_sent(Card& card, Request& request) {
  --request.records;
  end_if_sent(card, request);
  finish_if_quiet(card, request);
}

// True: it was news.
[[gnu::always_inline]] inline bool note_landed(Card& card, Connection& connection,
                                               SendRecord& record) {
  if (record.state == RecordState::kLanded) return false;
  if (record.asked && record.times == 1 && record.state == RecordState::kSent) {
    note_round_trip(card, connection, card.now - record.sent_ns);
  }
  if (static_cast<int32_t>(record.order - connection.newest) > 0) connection.newest = record.order;
  if (record.state == RecordState::kWaiting) --connection.waiting;
  record.state = RecordState::kLanded;
  if (record.kept != nullptr) unkeep(card, record);
  if (record.request != 0) {
    note_sent(card, card.p2p.requests[std::exchange(record.request, uint16_t{0}) - 1]);
  }
  return true;
}

// Bit i: packet base + 1 + i is in memory as well. False: there is no such packet.
[[gnu::noinline]] bool note_landed_behind(Card& card, Connection& connection, uint64_t landed,
                                          uint32_t* count) {
  uint32_t number = connection.base + 1;
  for (; landed != 0; landed >>= 1, ++number) {
    if ((landed & 1) == 0) continue;
    if (number - connection.base >= under_way(connection)) return false;
    *count += note_landed(card, connection, record_at(connection, number)) ? 1u : 0u;
  }
  return true;
}

// What the other side has room for.
void take_room(Connection& connection, const peal_wire_header& header) {
  if (static_cast<int16_t>(header.origin - connection.given) > 0) connection.given = header.origin;
  if (static_cast<int8_t>(header.fragment - connection.data_given) > 0) {
    connection.data_given = header.fragment;
  }
}

// The window is how much the way to there holds: half as much after a loss, one more for each
// window that went without.
void grow_window(Connection& connection, uint32_t landed) {
  connection.credit += landed;
  if (connection.credit < connection.window) return;
  connection.credit = 0;
  if (connection.window < kWindow) ++connection.window;
}

void shrink_window(Connection& connection, uint32_t lost) {
  if (static_cast<int32_t>(lost - connection.recover) < 0) return;  // the same loss
  connection.recover = connection.next_number;
  connection.window = connection.window > 2 ? connection.window / 2 : 1;
  connection.credit = 0;
}

bool is_lost(const Connection& connection, const SendRecord& record) {
  return record.state == RecordState::kSent &&
         static_cast<int32_t>(connection.newest - record.order) >= int32_t{kReordered};
}

[[gnu::noinline]] void send_lost_again(Card& card, Connection& connection, uint32_t first) {
  for (uint32_t number = first; number != connection.next_number; ++number) {
    SendRecord& record = record_at(connection, number);
    if (!is_lost(connection, record)) continue;
    shrink_window(connection, number);
    mark_waiting(card, connection, record);
  }
}

// Usually there is none.
[[gnu::always_inline]] inline void look_for_lost(Card& card, Connection& connection) {
  for (uint32_t number = connection.base; number != connection.next_number; ++number) {
    if (!is_lost(connection, record_at(connection, number))) continue;
    return send_lost_again(card, connection, number);
  }
}

// Does something wait behind a get for its place in the window, or for the end of this life?
bool is_in_the_way(Card& card, const Connection& connection) {
  if (is_ending(connection)) return true;
  for (uint16_t name = connection.work.first; name != 0;) {
    const Request& each = *request_at(card.p2p, name);
    if (each.kind != Kind::kGet) return true;
    name = each.next;
  }
  return false;
}

// A get for which the other side had no record. It is asked again at the end of what this side has
// to do; where that is nothing, not before it has been repeated.
void on_busy(Card& card, Connection& connection, const SendRecord& record, Request& get) {
  if (record.times < 2 && !is_in_the_way(card, connection)) return;
  skip_records(card, connection, get);
  get.due = Due::kGet;
  attach(card, get);
}

// Of a posted put: its request is over, but what it was for is not.
void note_refused(Card& card, const Connection& connection, const SendRecord& record,
                  const peal_p2p_refused& body) {
  peal_p2p_put put;
  std::memcpy(&put, record.kept->payload, sizeof(put));
  count(card, PEAL_COUNTER_P2P_REFUSED);
  card.p2p.refused = {.status = static_cast<peal_status>(body.status),
                      .together = record.second != 0,
                      .late = false,
                      .member = connection.member,
                      .program = put.program,
                      .rank = connection.rank,
                      .connection = handle_of(card.p2p, connection),
                      .number = body.sequence,
                      .index = record.first,
                      .iteration = put.notice.iteration,
                      .told = {}};
  card.due.messages = true;
}

}  // namespace

bool take_news(Card& card, Connection& connection, const peal_wire_header& header,
               uint64_t landed) {
  const uint32_t first = header.piece;
  const uint32_t news = first - connection.base;
  if (news > under_way(connection)) return static_cast<int32_t>(news) < 0;  // older than others
  uint32_t count = 0;
  for (uint32_t number = connection.base; number != first; ++number) {
    SendRecord& record = kept(record_at(connection, number));
    count += note_landed(card, connection, record) ? 1u : 0u;
    record.state = RecordState::kFree;
  }
  connection.base = first;
  const bool each = !card.timeouts.go_back_n;
  if (landed != 0 && each && !note_landed_behind(card, connection, landed, &count)) return false;
  take_room(connection, header);
  if (count > 0) {
    connection.backoff = 0;
    grow_window(connection, count);
    if (each) look_for_lost(card, connection);
    expect_answer(card, connection);
  }
  note_ready(card, connection);
  return true;
}

void inquire(Card& card, Connection& connection) {
  connection.orders += kReordered;
  connection.inquired = connection.orders;
  connection.asked = connection.next_number;
  send_question(card, connection);
}

void take_answer(Card& card, Connection& connection) {
  const uint32_t order = std::exchange(connection.inquired, 0u);
  if (static_cast<int32_t>(order - connection.newest) > 0) connection.newest = order;
  look_for_lost(card, connection);
  note_ready(card, connection);
}

void give_up_refused(Card& card, const MissingPut& refused) {
  Connection* connection = find_of(card.p2p, refused);
  if (connection == nullptr) return;
  SendRecord& record = record_at(*connection, refused.number);
  if (record.kept == nullptr) return;
  unkeep(card, record);
  skip_record(card, *connection, record, refused);
}

void send_oldest_again(Card& card, Connection& connection) {
  count(card, PEAL_COUNTER_P2P_TIMEOUTS);
  const uint32_t most = card.timeouts.go_back_n ? under_way(connection) : 1;
  for (uint32_t i = 0; i < most; ++i) {
    SendRecord& record = record_at(connection, connection.base + i);
    if (record.state != RecordState::kSent) continue;
    shrink_window(connection, connection.base + i);
    mark_waiting(card, connection, record);
  }
}

peal_counter on_refused(Card& card, Connection& connection, const peal_p2p_refused& body) {
  if (body.sequence - connection.base >= under_way(connection)) return PEAL_COUNTER_DUPLICATE;
  switch (body.status) {
    case PEAL_STATUS_BAD_KEY:
    case PEAL_STATUS_BAD_BOUNDS:
    case PEAL_STATUS_BAD_ACCESS:
    case PEAL_STATUS_DMA_FAULT:
    case PEAL_STATUS_CLOSED:
    case PEAL_STATUS_BUSY:
      break;
    default:
      return PEAL_COUNTER_DROP_P2P_FIELD;
  }
  SendRecord& record = record_at(connection, body.sequence);
  if (record.state == RecordState::kLanded || record.type == PEAL_PACKET_SKIP) {
    return PEAL_COUNTER_DUPLICATE;
  }
  if (record.kept != nullptr && body.status != PEAL_STATUS_BUSY) {
    note_refused(card, connection, record, body);
    return PEAL_COUNTER_RECEIVED;
  }
  Request* request = request_at(card.p2p, record.request);
  if (request == nullptr) return PEAL_COUNTER_DROP_P2P_FIELD;
  if (body.status == PEAL_STATUS_BUSY) {
    if (request->kind != Kind::kGet) return PEAL_COUNTER_DROP_P2P_FIELD;
    on_busy(card, connection, record, *request);
    return PEAL_COUNTER_RECEIVED;
  }
  count(card, PEAL_COUNTER_P2P_REFUSED);
  end_request(card, *request, static_cast<peal_status>(body.status), connection.rank);
  return PEAL_COUNTER_RECEIVED;
}

}  // namespace peal::p2p
