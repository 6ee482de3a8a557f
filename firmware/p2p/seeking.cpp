// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/seeking.h"

#include "firmware/p2p/announcing.h"
#include "firmware/p2p/connection.h"
#include "firmware/p2p/control.h"
#include "firmware/p2p/records.h"
#include "firmware/p2p/request.h"

namespace peal::p2p {
namespace {

// All that was announced has come and has a place, so that the sender will say no more.
bool may_seek(const Connection& connection) {
  return connection.place_count == kPlaces && connection.phase == ConnectionPhase::kOpen;
}

bool is_sound(const peal_p2p_seek& body) {
  if (body.count > PEAL_P2P_SOUGHT || body.reserved != 0) return false;
  for (uint32_t i = body.count; i < PEAL_P2P_SOUGHT; ++i) {
    if (body.tags[i] != 0) return false;
  }
  return true;
}

bool is_sought(const peal_p2p_seek& body, uint64_t tag) {
  for (uint32_t i = 0; i < body.count; ++i) {
    if (body.tags[i] == tag) return true;
  }
  return false;
}

// Calls each(receive) for those that wait for a message of this connection's rank, in their order.
template <typename Each>
void for_receives(Card& card, const Connection& connection, const Each& each) {
  const Member& member = member_of(card, connection);
  for (uint16_t name = member.receives.first; name != 0;) {
    const Request& receive = *request_at(card.p2p, name);
    if (receive.rank == connection.rank) each(receive);
    name = receive.next_posted;
  }
}

}  // namespace

void seek(Card& card, Connection& connection, const Request& receive) {
  if (may_seek(connection)) send_seek(card, connection, {{receive.tag}, 1, 0});
}

void seek(Card& card, Connection& connection) {
  if (!may_seek(connection)) return;
  uint32_t waiting = 0;
  for_receives(card, connection, [&waiting](const Request&) { ++waiting; });
  if (waiting == 0) return;
  const uint32_t first = connection.sought % waiting;
  peal_p2p_seek body = {};
  body.count = waiting < PEAL_P2P_SOUGHT ? waiting : uint32_t{PEAL_P2P_SOUGHT};
  uint32_t place = waiting - first;  // of the first one, in what is said from `first` on
  for_receives(card, connection, [&](const Request& receive) {
    if (place == waiting) place = 0;
    if (place < body.count) body.tags[place] = receive.tag;
    ++place;
  });
  connection.sought = static_cast<uint16_t>(first + body.count);
  send_seek(card, connection, body);
}

peal_counter on_seek(Card& card, Connection& connection, const peal_wire_header& header,
                     const peal_p2p_seek& body) {
  if (!is_sound(body)) return PEAL_COUNTER_DROP_P2P_FIELD;
  // Something has been announced that the receiver had not seen, or another answer is under way.
  if (static_cast<uint16_t>(header.origin) != connection.used) return PEAL_COUNTER_RECEIVED;
  const bool free =
      connection.phase == ConnectionPhase::kOpen && under_way(connection) < connection.window;
  if (!free) return PEAL_COUNTER_RECEIVED;
  for (uint16_t name = connection.sends.first; name != 0;) {
    Request& send = *request_at(card.p2p, name);
    if (is_sought(body, send.tag)) {
      announce(card, connection, send);
      note_ready(card, connection);
      break;
    }
    name = send.next;
  }
  return PEAL_COUNTER_RECEIVED;
}

}  // namespace peal::p2p
