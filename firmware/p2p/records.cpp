// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/records.h"

#include "firmware/p2p/request.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {

void mark_waiting(Card& card, Connection& connection, SendRecord& record) {
  record.state = RecordState::kWaiting;
  ++connection.waiting;
  note_ready(card, connection);
}

void skip_records(Card& card, Connection& connection, Request& request) {
  const uint16_t name = name_of(card.p2p, request);
  for (uint32_t number = connection.base; number != connection.next_number; ++number) {
    SendRecord& record = record_at(connection, number);
    if (record.request != name || record.state == RecordState::kLanded) continue;
    record.request = 0;
    record.bytes = 0;
    record.type = PEAL_PACKET_SKIP;
    --request.records;
    if (record.state != RecordState::kWaiting) mark_waiting(card, connection, record);
  }
}

}  // namespace peal::p2p
