// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/records.h"

#include "firmware/p2p/request.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

// Of a request that has failed; of no program's put: nothing.
MissingPut missing(const Request& request) {
  if (request.kind != Kind::kPut || request.program == 0) return {};
  return {.status = static_cast<peal_status>(request.status),
          .together = request.together,
          .late = false,
          .member = request.member,
          .program = request.program,
          .rank = request.rank,
          .connection = 0,
          .number = 0,
          .index = request.index,
          .iteration = request.notice.iteration,
          .told = {}};
}

}  // namespace

void mark_waiting(Card& card, Connection& connection, SendRecord& record) {
  record.state = RecordState::kWaiting;
  ++connection.waiting;
  note_ready(card, connection);
}

void skip_record(Card& card, Connection& connection, SendRecord& record, const MissingPut& put) {
  record.request = 0;
  record.bytes = 0;
  record.type = PEAL_PACKET_SKIP;
  record.program = put.program;
  record.first = put.index;
  const uint32_t how = (put.together ? PEAL_SKIP_TOGETHER : 0) | (put.late ? PEAL_SKIP_LATE : 0);
  record.second = static_cast<uint32_t>(put.status) | how << 16;
  record.offset = put.iteration;
  if (record.state != RecordState::kWaiting) mark_waiting(card, connection, record);
}

void skip_records(Card& card, Connection& connection, Request& request) {
  const uint16_t name = name_of(card.p2p, request);
  const MissingPut put = missing(request);
  for (uint32_t number = connection.base; number != connection.next_number; ++number) {
    SendRecord& record = record_at(connection, number);
    if (record.request != name || record.state == RecordState::kLanded) continue;
    --request.records;
    skip_record(card, connection, record, put);
  }
}

}  // namespace peal::p2p
