// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/sending.h"

#include <cstring>

#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/p2p/abandoned.h"
#include "firmware/p2p/announcing.h"
#include "firmware/p2p/control.h"
#include "firmware/p2p/ending.h"
#include "firmware/p2p/matching.h"
#include "firmware/p2p/opening.h"
#include "firmware/p2p/request.h"
#include "firmware/p2p/timing.h"
#include "firmware/p2p/waiting.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

bool is_answer(Due due) { return due == Due::kReady || due == Due::kLand || due == Due::kDone; }

bool has_room(const Connection& connection) {
  return static_cast<int16_t>(connection.given - connection.used) > 0;
}

// The request whose packet is the next new one; null: none may be sent now.
Request* next_request(Card& card, const Connection& connection) {
  State& state = card.p2p;
  if (under_way(connection) >= connection.window) return nullptr;
  Request* work = request_at(state, connection.work.first);
  switch (connection.phase) {
    case ConnectionPhase::kOpen:
      if (work != nullptr && is_answer(work->due)) return work;
      if (connection.sends.first != 0 && has_room(connection)) {
        return request_at(state, connection.sends.first);
      }
      return work;
    case ConnectionPhase::kDraining:
    case ConnectionPhase::kLeaving:
      return work != nullptr && is_answer(work->due) ? work : nullptr;
    default:
      return nullptr;
  }
}

[[gnu::always_inline]] inline SendRecord& number_data(Card& card, Connection& connection,
                                                      Request& request) {
  const uint8_t type = request.kind == Kind::kPut ? PEAL_PACKET_PUT : PEAL_PACKET_STREAM;
  const uint64_t left = request.bytes - request.at;
  SendRecord& record = number_record(card, connection, type, &request);
  record.offset = request.at;
  record.bytes = static_cast<uint16_t>(left < kChunkBytes ? left : kChunkBytes);
  record.awaited = !request.posted;
  request.at += record.bytes;
  record.last = request.at == request.bytes;
  if (record.last) request.due = Due::kNothing;
  return record;
}

// READY and DONE need nothing but what they say.
void add_answer(Card& card, Connection& connection, Request& request, uint8_t type,
                uint32_t second) {
  // A READY that is refused ends its receive.
  Request* owner = type == PEAL_PACKET_READY ? &request : nullptr;
  SendRecord& record = add_record(card, connection, type, owner);
  record.first = request.peer_request;
  record.second = second;
  request.due = Due::kNothing;
  if (request.owes) {
    request.owes = false;
    --connection.owing;
  }
}

// One step of the request; false: something could not be had.
bool step(Card& card, Connection& connection, Request& request) {
  State& state = card.p2p;
  switch (request.due) {
    case Due::kAnnounce:
      announce(card, connection, request);
      return true;
    case Due::kData:
      (void)number_data(card, connection, request);
      if (request.due == Due::kNothing) take_out(state, connection.work, request);
      return true;
    case Due::kGet:
      add_record(card, connection, PEAL_PACKET_GET, &request);
      request.due = Due::kNothing;
      take_out(state, connection.work, request);
      return true;
    case Due::kReady:
      take_out(state, connection.work, request);
      add_answer(card, connection, request, PEAL_PACKET_READY, handle_of(state, request));
      return true;
    case Due::kLand:
      if (!dma_suffices(card, 1)) return false;
      take_out(state, connection.work, request);
      land_early(card, request);
      return true;
    case Due::kDone: {
      take_out(state, connection.work, request);
      const auto status = static_cast<peal_status>(request.status);
      add_answer(card, connection, request, PEAL_PACKET_DONE, request.status);
      end_request(card, request, status);
      return true;
    }
    case Due::kNothing:
      break;
  }
  PEAL_ASSERT(false);
  return false;
}

// Does anybody wait for a packet behind this one?
bool is_last_awaited(const Connection& connection, uint32_t number) {
  while (++number != connection.next_number) {
    if (record_at(connection, number).awaited) return false;
  }
  return true;
}

// Packets since an answer was asked for, or came.
uint32_t unanswered(const Connection& connection, uint32_t number) {
  const bool later = static_cast<int32_t>(connection.asked - connection.base) > 0;
  return number + 1 - (later ? connection.asked : connection.base);
}

// Does the sender want to know at once? When it can go no further, or somebody waits for it, and
// now and then before. (With CardTimeouts::go_back_n time would tell that what has come is lost.)
[[gnu::always_inline]] inline bool wants_answer(const Card& card, const Connection& connection,
                                                bool awaited, uint32_t number) {
  if (connection.phase != ConnectionPhase::kOpen) return true;
  const bool full = under_way(connection) >= connection.window;
  if (full && number + 1 == connection.next_number) return true;
  if (!awaited && !card.timeouts.go_back_n) {
    if (anybody_waits(card.p2p)) return true;  // so that it can be given back
    return static_cast<int32_t>(unanswered(connection, number)) >= int32_t{kWindow / 2};
  }
  if (number % (kWindow / 4) == kWindow / 4 - 1) return true;
  return !full && connection.work.first == 0 && is_last_awaited(connection, number);
}

// Who has heard all that came needs no other answer than this header.
void note_told(Connection& connection) {
  if (connection.landed != connection.arrived || connection.questioned) return;
  connection.owes_answer = false;
  connection.unasked = 0;
}

[[gnu::always_inline]] inline void leave(Card& card, Connection& connection, SendRecord& record,
                                         uint32_t number, uint16_t length, Packet* packet,
                                         bool again) {
  const bool asks = again || wants_answer(card, connection, record.awaited, number);
  record.state = RecordState::kSent;
  record.asked = asks;
  record.order = ++connection.orders;
  record.sent_ns = connection.launched_ns = card.now;
  if (again) {
    if (record.times < 0xff) ++record.times;
  } else {
    record.times = 1;
  }
  write_header(connection, record.type, number, length, packet->header);
  if (asks) {
    packet->header->hop = PEAL_P2P_ASK;
    if (static_cast<int32_t>(number - connection.asked) >= 0) connection.asked = number + 1;
  }
  count(card, again ? PEAL_COUNTER_SENT_P2P_AGAIN : PEAL_COUNTER_SENT_P2P);
  note_told(connection);
  count_packet(card, connection);
  const TimeNs time_ns = answer_time(card, connection);
  if (again || connection.deadline_ns > card.now + time_ns) {
    expect_within(card, connection, time_ns);
  }
  launch_packet(card, packet, false, connection.engine);
}

[[gnu::noinline]] void launch_again(Card& card, Connection& connection, SendRecord& record,
                                    uint32_t number, uint16_t length, Packet* packet) {
  leave(card, connection, record, number, length, packet, true);
}

// The packet is whole but for its header.
[[gnu::always_inline]] inline void launch(Card& card, Connection& connection, SendRecord& record,
                                          uint32_t number, uint16_t length, Packet* packet) {
  if (record.times != 0) return launch_again(card, connection, record, number, length, packet);
  leave(card, connection, record, number, length, packet, false);
}

template <typename Body>
uint16_t put_body(Packet* packet, const Body& body) {
  std::memcpy(packet->payload, &body, sizeof(body));
  return sizeof(body);
}

uint16_t put_signal(Packet* packet, const SendRecord& record) {
  peal_p2p_put body = {};
  body.program = record.program;
  body.notice = {static_cast<uint16_t>(record.first >> 16), static_cast<uint16_t>(record.first),
                 record.second, record.offset};
  return put_body(packet, body);
}

uint16_t put_put(Packet* packet, const Request& put, const SendRecord& record) {
  const Notice& notice = put.notice;
  peal_p2p_put body = {put.remote_offset + record.offset,
                       put.remote_key,
                       put.program,
                       0,
                       {kNoQueue, 0, 0, notice.iteration}};
  if (record.last) {
    body.notice = {notice.queue, notice.counter, notice.steps, notice.iteration};
  }
  return put_body(packet, body);
}

uint16_t put_skip(const Card& card, const Connection& connection, const SendRecord& record,
                  Packet* packet) {
  peal_p2p_skip body = {.iteration = record.offset,
                        .index = record.first,
                        .program = record.program,
                        .status = static_cast<uint16_t>(record.second),
                        .how = static_cast<uint16_t>(record.second >> 16),
                        .told = {},
                        .reserved = {}};
  if (record.program != 0) list_told(card, connection.member, record.program, body.told);
  return put_body(packet, body);
}

// The part of the payload that is made here; its length.
uint16_t write_body(const Card& card, const Connection& connection, const SendRecord& record,
                    Packet* packet) {
  const State& state = card.p2p;
  switch (record.type) {
    case PEAL_PACKET_READY:
      return put_body(packet, peal_p2p_ready{record.first, record.second});
    case PEAL_PACKET_DONE:
      return put_body(packet, peal_p2p_done{record.first, record.second});
    case PEAL_PACKET_SKIP:
      return put_skip(card, connection, record, packet);
    default:
      if (record.request == 0) return put_signal(packet, record);
      break;
  }
  const Request& request = kept(state.requests[record.request - 1]);
  switch (record.type) {
    case PEAL_PACKET_PUT:
      return put_put(packet, request, record);
    case PEAL_PACKET_STREAM:
      return put_body(packet, peal_p2p_stream{record.offset, request.peer_request, {}});
    case PEAL_PACKET_ANNOUNCE:
      return put_body(packet,
                      peal_p2p_announce{request.tag, request.bytes, handle_of(state, request),
                                        request.program, 0, request.notice.iteration});
    default:
      return put_body(packet, peal_p2p_get{request.remote_offset, request.bytes, request.remote_key,
                                           handle_of(state, request)});
  }
}

// Begins to read the bytes that go with it.
[[gnu::always_inline]] inline void read_bytes(Card& card, Connection& connection, Request& request,
                                              SendRecord& record, uint32_t number, Packet* packet) {
  State& state = card.p2p;
  record.state = RecordState::kReading;
  ++request.dma;
  ++member_of(card, connection).dma;
  ++state.reads;
  dma_read(card,
           {.host = {request.memory.region, request.memory.offset + record.offset},
            .card = packet->payload + PEAL_P2P_BODY_BYTES,
            .bytes = record.bytes,
            .packet = packet,
            .tag = {.member = connection.member,
                    .owner = DmaOwner::kPointToPoint,
                    .slot = 0,
                    .role = static_cast<uint8_t>(DmaRole::kRead),
                    .step = 0,
                    .piece = 0,
                    .detail = number,
                    .sequence = uint64_t{record.request} << 32 | handle_of(state, connection)}});
}

// Of a packet whose body is followed by bytes.
uint16_t length_with(uint32_t bytes) { return static_cast<uint16_t>(PEAL_P2P_BODY_BYTES + bytes); }

// Of a posted put; false: there was no packet.
bool transmit_kept(Card& card, Connection& connection, SendRecord& record, uint32_t number) {
  Packet* packet = share_packet(card, record.kept);
  if (packet == nullptr) return false;
  --connection.waiting;
  launch(card, connection, record, number, length_with(record.bytes), packet);
  return true;
}

// False: there was no packet, or no DMA record.
bool transmit(Card& card, Connection& connection, uint32_t number) {
  SendRecord& record = kept(record_at(connection, number));
  if (record.kept != nullptr) return transmit_kept(card, connection, record, number);
  if (record.bytes > 0 && !dma_suffices(card, 1)) return false;
  Packet* packet = take_packet(card);
  if (packet == nullptr) return false;
  --connection.waiting;
  const uint16_t body = write_body(card, connection, record, packet);
  if (record.bytes > 0) {
    Request& request = kept(card.p2p.requests[record.request - 1]);
    read_bytes(card, connection, request, record, number, packet);
  } else {
    launch(card, connection, record, number, body, packet);
  }
  return true;
}

// The oldest packet that waits to be sent.
uint32_t first_waiting(const Connection& connection) {
  const uint32_t newest = connection.next_number - 1;
  if (connection.waiting == 1 && record_at(connection, newest).state == RecordState::kWaiting) {
    return newest;
  }
  uint32_t number = connection.base;
  while (record_at(connection, number).state != RecordState::kWaiting) ++number;
  return number;
}

// Its bytes are here: it is over, as long as there is room to keep them.
void post(Card& card, Request& request, Packet* packet, SendRecord& record) {
  State& state = card.p2p;
  packet->payload_bytes = length_with(record.bytes);
  Packet* copy = state.kept < state.kept_most ? share_packet(card, packet) : nullptr;
  record.awaited = copy == nullptr;
  if (copy == nullptr) return;
  ++state.kept;
  record.kept = copy;
  record.first = request.index;
  record.second = request.together ? 1 : 0;
  record.request = 0;
  --request.records;
  end_put(request);
}

Connection* take_ready(State& state) {
  if (state.ready_first == 0) return nullptr;
  Connection& connection = kept(state.connections[state.ready_first - 1]);
  state.ready_first = connection.next_ready;
  if (state.ready_first == 0) state.ready_last = 0;
  connection.ready = false;
  return &connection;
}

// What is carried out in order, and has no bytes to be read, would overtake what was numbered
// before it and is still being read: it would be dropped at the other end, and waited for.
bool is_held(const Connection& connection, uint32_t number) {
  const SendRecord& record = record_at(connection, number);
  if (record.bytes != 0 || record.type == PEAL_PACKET_PUT) return false;
  for (uint32_t before = connection.base; before != number; ++before) {
    if (record_at(connection, before).state == RecordState::kReading) return true;
  }
  return false;
}

// One packet of this connection, if none is held; false: something could not be had.
bool send_one(Card& card, Connection& connection) {
  if (connection.waiting == 0) {
    Request* request = next_request(card, connection);
    if (request == nullptr) return true;
    if (!step(card, connection, *request)) return false;
  }
  if (connection.waiting == 0) return true;
  const uint32_t number = first_waiting(connection);
  return is_held(connection, number) || transmit(card, connection, number);
}

// There is something that it cannot have now.
[[gnu::cold]] [[gnu::noinline]] void starve(Card& card, Connection& connection) {
  note_ready(card, connection);
  card.timers.arm_no_later(card.p2p.timer, card.now + kStarvedNs);
}

// A packet of it, if it may send one, and its place among those that may send more; false: there is
// something that cannot be had now.
bool serve(Card& card, Connection& connection) {
  const bool sent = send_one(card, connection);
  const bool held = connection.waiting != 0 && is_held(connection, first_waiting(connection));
  if (!held) note_ready(card, connection);  // else when it has been read
  if (!sent) starve(card, connection);
  return sent;
}

// May it send without waiting for its turn?
bool goes_at_once(const State& state, const Connection& connection) {
  return connection.phase == ConnectionPhase::kOpen && state.ready_first == 0 &&
         state.reads < kReadsMax && !connection.ready;
}

}  // namespace

void send_ready(Card& card) {
  State& state = card.p2p;
  while (state.reads < kReadsMax) {
    Connection* connection = take_ready(state);
    if (connection == nullptr) return;
    if (connection->waiting == 0 && next_request(card, *connection) == nullptr) {
      close_if_quiet(card, *connection);
      continue;
    }
    if (!serve(card, *connection)) return;
  }
}

bool start_signal(Card& card, const Member& member, const Signal& signal) {
  const peal_descriptor& what = signal.what;
  Connection* const found = find_connection(card, member.index, what.rank, signal.origin.engine);
  if (found == nullptr || found->phase != ConnectionPhase::kOpen) return false;
  Connection& connection = *found;
  // Puts before it have no numbers yet; or it has none.
  if (connection.work.first != 0 || under_way(connection) >= connection.window) return false;
  const bool next = connection.waiting == 0 && goes_at_once(card.p2p, connection);
  Packet* const packet = next ? take_packet(card) : nullptr;
  const uint32_t number = connection.next_number;
  SendRecord& record = number_record(card, connection, PEAL_PACKET_PUT, nullptr);
  record.awaited = false;
  record.first = uint32_t{what.queue} << 16 | what.counter;
  record.second = what.steps;
  record.program = signal.origin.slot;
  record.offset = signal.origin.iteration;
  if (packet != nullptr) {
    --connection.waiting;
    leave(card, connection, record, number, put_signal(packet, record), packet, false);
    note_ready(card, connection);
  } else if (next) {
    starve(card, connection);
  } else {
    send_now(card, connection);
  }
  return true;
}

void send_put(Card& card, Connection& connection, Request& request) {
  const bool one = request.bytes != 0 && request.bytes <= kChunkBytes;
  const bool next = one && !has_to_send(connection) && under_way(connection) < connection.window &&
                    goes_at_once(card.p2p, connection);
  if (!next) {
    put_last(card.p2p, connection.work, request, Place::kWork);
    return send_now(card, connection);
  }
  const uint32_t number = connection.next_number;
  SendRecord& record = number_data(card, connection, request);
  Packet* const packet = dma_suffices(card, 1) ? take_packet(card) : nullptr;
  if (packet == nullptr) return starve(card, connection);
  --connection.waiting;
  (void)put_put(packet, request, record);
  read_bytes(card, connection, request, record, number, packet);
}

void send_now(Card& card, Connection& connection) {
  if (goes_at_once(card.p2p, connection)) {
    (void)serve(card, connection);
  } else {
    note_ready(card, connection);
  }
}

void on_read_done(Card& card, const DmaDone& done) {
  State& state = card.p2p;
  Member& member = card.members[done.member];
  Request& request = kept(state.requests[(done.sequence >> 32) - 1]);
  --state.reads;
  --member.dma;
  if (state.ready_first != 0) card.due.messages = true;
  const auto handle = static_cast<uint32_t>(done.sequence);
  Connection& connection = kept(state.connections[handle & 0xffff]);
  const uint32_t number = done.detail;
  SendRecord& record = kept(record_at(connection, number));
  const bool same_life = is_in_life(connection, handle);
  const bool live = same_life && number - connection.base < under_way(connection) &&
                    record.state == RecordState::kReading;
  if (live && done.ok) {
    PEAL_ASSERT(done.packet->holds == 1);
    done.packet->holds = 0;
    if (request.posted) post(card, request, done.packet, record);
    launch(card, connection, record, number, length_with(done.bytes), done.packet);
  } else {
    unhold_packet(card, done.packet);
    if (live) fail_sending(card, request);
  }
  if (same_life && connection.waiting != 0) note_ready(card, connection);  // what was held
  request_dma_done(card, request);
}

}  // namespace peal::p2p
