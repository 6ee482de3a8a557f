// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/announcing.h"

#include "firmware/p2p/records.h"
#include "firmware/p2p/request.h"

namespace peal::p2p {

void announce(Card& card, Connection& connection, Request& request) {
  take_out(card.p2p, connection.sends, request);
  SendRecord& record = add_record(card, connection, PEAL_PACKET_ANNOUNCE, &request);
  const bool tokens = static_cast<int8_t>(connection.data_given - connection.data_used) > 0;
  if (request.bytes > 0 && request.bytes <= kChunkBytes && tokens) {
    record.bytes = static_cast<uint16_t>(request.bytes);
    ++connection.data_used;
  }
  ++connection.used;
  request.announced = true;
  request.due = Due::kNothing;
}

}  // namespace peal::p2p
