// SPDX-License-Identifier: BSD-2-Clause
// Send records of a connection: packets that are not acknowledged, by their numbers.
#pragma once

#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/card_types.h"
#include "firmware/p2p/connection.h"
#include "firmware/p2p/request.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {

inline SendRecord& record_at(Connection& connection, uint32_t number) {
  return connection.records[number % kWindow];
}
inline const SendRecord& record_at(const Connection& connection, uint32_t number) {
  return connection.records[number % kWindow];
}
// Packets that have a record.
inline uint32_t under_way(const Connection& connection) {
  return connection.next_number - connection.base;
}
// A record must be sent, or sent again.
void mark_waiting(Card& card, Connection& connection, SendRecord& record);
// The next packet with a number, for which the window has room. `request` may be null.
inline SendRecord& number_record(Card& card, Connection& connection, uint8_t type,
                                 Request* request) {
  SendRecord& record = kept(record_at(connection, connection.next_number++));
  PEAL_ASSERT(record.state == RecordState::kFree);
  record = {};
  record.type = type;
  record.awaited = true;
  if (request != nullptr) {
    record.request = name_of(card.p2p, *request);
    ++request->records;
  }
  record.state = RecordState::kWaiting;
  ++connection.waiting;
  return record;
}
// The same, and its connection is on the list of those that may send.
inline SendRecord& add_record(Card& card, Connection& connection, uint8_t type, Request* request) {
  SendRecord& record = number_record(card, connection, type, request);
  note_ready(card, connection);
  return record;
}
// The packet of a posted put is not needed any more.
inline void unkeep(Card& card, SendRecord& record) {
  drop_packet(card, record.kept);
  record.kept = nullptr;
  --card.p2p.kept;
}
// The packet will not be sent, or not again: a SKIP takes its number, and says whose put it was of.
void skip_record(Card& card, Connection& connection, SendRecord& record, const MissingPut& put);
// The request is over: so for what of it is not acknowledged yet.
void skip_records(Card& card, Connection& connection, Request& request);

// Tags of point-to-point's DMA; sequence has the connection's handle below, the request above.
enum class DmaRole : uint8_t {
  kRead,   // detail: the packet's number
  kLand,   // the same, of a packet that came; piece: the key that is held
  kEarly,  // of a message that came before its receive; no connection
  // Of a put to the own rank (copying.h); detail: the chunk.
  kCopyIn,
  kCopyOut,  // piece: the key that is held
};

}  // namespace peal::p2p
