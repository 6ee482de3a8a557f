// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/receiving.h"

#include <algorithm>
#include <numeric>

#include "abi/admin.h"
#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/host/keys.h"
#include "firmware/p2p/abandoned.h"
#include "firmware/p2p/acknowledgement.h"
#include "firmware/p2p/body.h"
#include "firmware/p2p/control.h"
#include "firmware/p2p/ending.h"
#include "firmware/p2p/matching.h"
#include "firmware/p2p/notices.h"
#include "firmware/p2p/records.h"
#include "firmware/p2p/request.h"
#include "firmware/p2p/waiting.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

Slot& slot_of(Connection& connection, uint32_t number) {
  return connection.slots[number % kWindow];
}

// What becomes of a packet whose number is expected.
struct Fate {
  peal_counter result;  // RECEIVED: its number is taken
  peal_status status;   // not OK: it is refused
};
constexpr Fate kTaken = {PEAL_COUNTER_RECEIVED, PEAL_STATUS_OK};
constexpr Fate dropped(peal_counter why) { return {why, PEAL_STATUS_OK}; }
constexpr Fate refused(peal_status status) { return {PEAL_COUNTER_P2P_REFUSED, status}; }

uint32_t data_bytes(const Packet& packet) { return packet.header->length - PEAL_P2P_BODY_BYTES; }

bool is_in_order(const peal_wire_header& header) {
  return header.type == PEAL_PACKET_ANNOUNCE || header.type == PEAL_PACKET_READY ||
         header.type == PEAL_PACKET_GET || header.type == PEAL_PACKET_DONE;
}

void tell_notice(Card& card, const Connection& connection, uint16_t program, const Notice& notice) {
  if (notice.queue == kNoQueue) return;
  tell_noticed(card, connection.member, connection.rank, program, notice);
}

void note_arrived(Connection& connection) {
  while (connection.arrived - connection.landed < kWindow) {
    const SlotState state = slot_of(connection, connection.arrived).state;
    if (state == SlotState::kEmpty || state == SlotState::kRefused) return;
    ++connection.arrived;
  }
}

// Packets in memory, in order, are done with.
void note_landed(Card& card, Connection& connection) {
  for (;;) {
    Slot& slot = slot_of(connection, connection.landed);
    if (slot.state != SlotState::kLanded) break;
    slot.state = SlotState::kEmpty;
    ++connection.landed;
    tell_notice(card, connection, slot.program, slot.notice);
  }
  if (static_cast<int32_t>(connection.arrived - connection.landed) < 0) {
    connection.arrived = connection.landed;
  }
}

void answer_if_due(Card& card, Connection& connection) {
  if (!connection.owes_answer) return;
  if (connection.landing == 0 || connection.unasked >= kWindow / 4) {
    send_ack(card, connection);
  }
}

// Bytes behind the body go there. The key, if there is one, is held meanwhile.
[[gnu::always_inline]] inline void land(Card& card, Connection& connection, Packet* packet,
                                        const HostAddress& to, uint32_t key, Request* request) {
  State& state = card.p2p;
  Member& member = member_of(card, connection);
  slot_of(connection, packet->header->sequence).state = SlotState::kLanding;
  ++connection.landing;
  ++member.dma;
  if (key != 0) hold_key(card, key);
  if (request != nullptr) ++request->dma;
  const uint64_t name = request == nullptr ? 0 : name_of(state, *request);
  dma_write(card, {.host = to,
                   .card = packet->payload + PEAL_P2P_BODY_BYTES,
                   .bytes = data_bytes(*packet),
                   .packet = packet,
                   .tag = {.member = connection.member,
                           .owner = DmaOwner::kPointToPoint,
                           .slot = 0,
                           .role = static_cast<uint8_t>(DmaRole::kLand),
                           .step = 0,
                           .piece = key,
                           .detail = packet->header->sequence,
                           .sequence = name << 32 | handle_of(state, connection)}});
}

Notice notice_of(const peal_p2p_put& body) {
  return {body.notice.queue, body.notice.counter, body.notice.steps, body.notice.iteration};
}

Fate on_put(Card& card, Connection& connection, Packet* packet) {
  const auto body = body_of<peal_p2p_put>(*packet);
  const uint32_t bytes = data_bytes(*packet);
  Slot& slot = slot_of(connection, packet->header->sequence);
  slot.program = body.program;
  slot.notice = notice_of(body);
  if (bytes == 0) {
    slot.state = SlotState::kLanded;
    return kTaken;
  }
  if (is_put_abandoned(card, connection, body.program, body.notice.iteration)) {
    count(card, PEAL_COUNTER_THROWN_AWAY);
    slot.state = SlotState::kLanded;
    return kTaken;
  }
  HostAddress to;
  const Member& member = member_of(card, connection);
  const peal_status status =
      check_range(card, member.context, body.key, body.offset, bytes, PEAL_ACCESS_WRITE, &to);
  if (status != PEAL_STATUS_OK) return refused(status);
  if (!dma_suffices(card, 1)) return dropped(PEAL_COUNTER_DROP_NO_DMA);
  land(card, connection, packet, to, body.key, nullptr);
  return kTaken;
}

Fate on_stream(Card& card, Connection& connection, Packet* packet) {
  const auto body = body_of<peal_p2p_stream>(*packet);
  const uint32_t bytes = data_bytes(*packet);
  Request* request = find_request(card, connection, body.request);
  const bool expected =
      request != nullptr &&
      (request->kind == Kind::kGet || (request->kind == Kind::kReceive && request->matched));
  if (!expected) return refused(PEAL_STATUS_CLOSED);
  if (body.offset > request->bytes || bytes > request->bytes - body.offset) {
    return refused(PEAL_STATUS_BAD_BOUNDS);
  }
  Slot& slot = slot_of(connection, packet->header->sequence);
  slot.notice.queue = kNoQueue;
  slot.program = 0;
  if (bytes == 0) {
    slot.state = SlotState::kLanded;
    if (request->bytes == 0) end_request(card, *request, PEAL_STATUS_OK);
    return kTaken;
  }
  if (!dma_suffices(card, 1)) return dropped(PEAL_COUNTER_DROP_NO_DMA);
  land(card, connection, packet, {request->memory.region, request->memory.offset + body.offset}, 0,
       request);
  return kTaken;
}

Fate on_get(Card& card, Connection& connection, const Packet& packet) {
  const auto body = body_of<peal_p2p_get>(packet);
  Member& member = member_of(card, connection);
  HostAddress from = {};
  const bool empty = body.bytes == 0;  // of no memory, then
  const peal_status status = empty ? PEAL_STATUS_OK
                                   : check_range(card, member.context, body.key, body.offset,
                                                 body.bytes, PEAL_ACCESS_READ, &from);
  if (status != PEAL_STATUS_OK) return refused(status);
  Request* request =
      take_request(card, member, Kind::kServe, connection.rank, {Owner::kPeer, 0, 0, 0});
  // Whoever holds the records may wait for what this get is in the way of: so it comes again by
  // another number, and not by this one, of which a copy may still be under way.
  if (request == nullptr) return refused(PEAL_STATUS_BUSY);
  request->memory = from;
  request->bytes = body.bytes;
  request->key = empty ? 0 : body.key;
  if (!empty) hold_key(card, body.key);
  request->engine = connection.engine;
  request->peer_request = body.request;
  request->due = Due::kData;
  attach(card, *request);
  return kTaken;
}

Fate carry_out(Card& card, Connection& connection, Packet* packet) {
  switch (packet->header->type) {
    case PEAL_PACKET_PUT:
      return on_put(card, connection, packet);
    case PEAL_PACKET_STREAM:
      return on_stream(card, connection, packet);
    case PEAL_PACKET_ANNOUNCE:
      return {on_announce(card, connection, packet), PEAL_STATUS_OK};
    case PEAL_PACKET_READY: {
      const peal_status status = on_ready(card, connection, body_of<peal_p2p_ready>(*packet));
      return status == PEAL_STATUS_OK ? kTaken : refused(status);
    }
    case PEAL_PACKET_GET:
      return on_get(card, connection, *packet);
    default:
      return {on_done(card, connection, body_of<peal_p2p_done>(*packet)), PEAL_STATUS_OK};
  }
}

void refuse(Card& card, Connection& connection, uint32_t number, peal_status status) {
  Slot& slot = slot_of(connection, number);
  slot.state = SlotState::kRefused;
  slot.status = static_cast<uint16_t>(status);
  send_refused(card, connection, number, status);
}

// A packet has taken its number; does it ask for an answer?
void take_number(Card& card, Connection& connection, uint32_t number, bool asks) {
  Slot& slot = slot_of(connection, number);
  if (slot.state != SlotState::kLanding && slot.state != SlotState::kLanded) {
    slot.state = SlotState::kLanded;
    slot.notice.queue = kNoQueue;
  }
  if (static_cast<int32_t>(number - connection.beyond) >= 0) connection.beyond = number + 1;
  // A gap, or its end, is told at once.
  const bool late = number != connection.arrived;
  if (slot.state == SlotState::kLanded) ++connection.unasked;
  note_arrived(connection);
  if (late || asks) connection.owes_answer = true;
  note_landed(card, connection);
  count_packet(card, connection);
  answer_if_due(card, connection);
}

// What was found of a packet whose number is expected.
peal_counter meet(Card& card, Connection& connection, const peal_wire_header& header,
                  const Fate& fate) {
  if (fate.result == PEAL_COUNTER_P2P_REFUSED) {
    refuse(card, connection, header.sequence, fate.status);
  } else if (fate.result == PEAL_COUNTER_RECEIVED) {
    take_number(card, connection, header.sequence, (header.hop & PEAL_P2P_ASK) != 0);
  }
  return fate.result;
}

// Values of a packet that can be.
bool is_sound(const peal_p2p_skip& body) {
  if ((body.reserved[0] | body.reserved[1] | body.reserved[2]) != 0) return false;
  if ((body.how & ~(PEAL_SKIP_TOGETHER | PEAL_SKIP_LATE)) != 0) return false;
  if (body.program == 0) {
    const auto told = std::accumulate(body.told, body.told + PEAL_SKIP_TOLD, 0u);
    return (body.iteration | body.index | body.status | body.how | told) == 0;
  }
  return body.iteration != ~uint64_t{0} && body.status != PEAL_STATUS_OK &&
         body.status < PEAL_STATUS_COUNT;
}

peal_counter on_skip(Card& card, Connection& connection, const Packet& packet) {
  const peal_wire_header& header = *packet.header;
  const auto body = body_of<peal_p2p_skip>(packet);
  if (!is_sound(body)) return PEAL_COUNTER_DROP_P2P_FIELD;
  if (body.program == 0) {
    take_number(card, connection, header.sequence, (header.hop & PEAL_P2P_ASK) != 0);
    return PEAL_COUNTER_RECEIVED;
  }
  // Not before it is noted that this iteration has failed: nothing behind it is told until then.
  card.p2p.skipped = {.status = static_cast<peal_status>(body.status),
                      .together = (body.how & PEAL_SKIP_TOGETHER) != 0,
                      .late = (body.how & PEAL_SKIP_LATE) != 0,
                      .member = connection.member,
                      .program = body.program,
                      .rank = connection.rank,
                      .connection = handle_of(card.p2p, connection),
                      .number = header.sequence,
                      .index = body.index,
                      .iteration = body.iteration,
                      .told = {}};
  std::copy_n(body.told, PEAL_SKIP_TOLD, card.p2p.skipped.told);
  card.due.messages = true;
  return PEAL_COUNTER_RECEIVED;
}

// The same as take_number(), of one that is the next and that nothing was known behind.
[[gnu::always_inline]] inline void take_next(Card& card, Connection& connection,
                                             const peal_wire_header& header) {
  connection.arrived = connection.beyond = header.sequence + 1;
  count_packet(card, connection);
  if ((header.hop & PEAL_P2P_ASK) != 0) connection.owes_answer = true;
  answer_if_due(card, connection);
}

}  // namespace

peal_counter on_usual_put(Card& card, Connection& connection, Packet* packet) {
  const peal_wire_header& header = *packet->header;
  connection.used_ns = card.now;
  if (!take_acknowledgement(card, connection, header, 0)) return PEAL_COUNTER_DROP_P2P_FIELD;
  const uint32_t number = header.sequence;
  const uint32_t ahead = number - connection.landed;
  const Slot& slot = slot_of(connection, number);
  if (number != connection.arrived || number != connection.beyond || ahead >= kWindow ||
      slot.state != SlotState::kEmpty) {
    return on_numbered(card, connection, packet);
  }
  if (ahead == 0 && data_bytes(*packet) == 0) {
    // Nothing of it is noted but that it has come: all before it is in memory.
    connection.landed = number + 1;
    ++connection.unasked;
    const auto body = body_of<peal_p2p_put>(*packet);
    tell_notice(card, connection, body.program, notice_of(body));
    take_next(card, connection, header);
    return PEAL_COUNTER_RECEIVED;
  }
  const Fate fate = on_put(card, connection, packet);
  if (slot.state != SlotState::kLanding) return meet(card, connection, header, fate);
  take_next(card, connection, header);
  return PEAL_COUNTER_RECEIVED;
}

peal_counter on_numbered(Card& card, Connection& connection, Packet* packet) {
  const peal_wire_header& header = *packet->header;
  const uint32_t ahead = header.sequence - connection.landed;
  if (static_cast<int32_t>(ahead) < 0) {
    send_ack(card, connection);
    return PEAL_COUNTER_DUPLICATE;
  }
  if (ahead >= kWindow) return PEAL_COUNTER_DROP_P2P_ORDER;
  Slot& slot = slot_of(connection, header.sequence);
  if (slot.state == SlotState::kRefused && header.type != PEAL_PACKET_SKIP) {
    send_refused(card, connection, header.sequence, static_cast<peal_status>(slot.status));
    return PEAL_COUNTER_DUPLICATE;
  }
  if (slot.state == SlotState::kLanding || slot.state == SlotState::kLanded) {
    if ((header.hop & PEAL_P2P_ASK) != 0) connection.owes_answer = true;
    answer_if_due(card, connection);
    return PEAL_COUNTER_DUPLICATE;
  }
  if ((is_in_order(header) || card.timeouts.go_back_n) && header.sequence != connection.arrived) {
    if (!card.timeouts.go_back_n) send_ack(card, connection);
    return PEAL_COUNTER_DROP_P2P_ORDER;
  }
  if (header.type == PEAL_PACKET_SKIP) return on_skip(card, connection, *packet);
  return meet(card, connection, header, carry_out(card, connection, packet));
}

void take_skipped(Card& card, const MissingPut& skipped) {
  Connection* connection = find_of(card.p2p, skipped);
  if (connection != nullptr) take_number(card, *connection, skipped.number, true);
}

void on_landed(Card& card, const DmaDone& done) {
  State& state = card.p2p;
  Member& member = card.members[done.member];
  --member.dma;
  unhold_packet(card, done.packet);
  if (done.piece != 0) let_go_of_key(card, done.piece);
  const auto handle = static_cast<uint32_t>(done.sequence);
  Request* request = request_at(state, static_cast<uint16_t>(done.sequence >> 32));
  Connection& connection = kept(state.connections[handle & 0xffff]);
  const bool live = is_in_life(connection, handle);
  if (request != nullptr && live) {
    request->landed += done.bytes;
    if (!done.ok) {
      end_request(card, *request, PEAL_STATUS_DMA_FAULT);
    } else if (request->landed >= request->bytes) {
      end_request(card, *request, PEAL_STATUS_OK);
    }
  }
  if (request != nullptr) request_dma_done(card, *request);
  if (!live) return;
  --connection.landing;
  if (done.ok) {
    slot_of(connection, done.detail).state = SlotState::kLanded;
    ++connection.unasked;
    note_landed(card, connection);
    note_ready(card, connection);  // it may have waited for this to be closed
  } else {
    refuse(card, connection, done.detail, PEAL_STATUS_DMA_FAULT);
    if (static_cast<int32_t>(done.detail - connection.arrived) < 0) {
      connection.arrived = done.detail;
    }
  }
  answer_if_due(card, connection);
}

}  // namespace peal::p2p
