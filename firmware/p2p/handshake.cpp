// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/handshake.h"

#include "firmware/p2p/connection.h"
#include "firmware/p2p/control.h"
#include "firmware/p2p/opening.h"
#include "firmware/p2p/waiting.h"

namespace peal::p2p {

peal_counter on_open(Card& card, Member& member, const peal_wire_header& header,
                     const peal_p2p_open& body, const peal_peer_address& address) {
  Connection* connection = find_connection(card, member.index, address.rank, header.edge);
  if (connection == nullptr) {
    return accept_or_wait(card, member,
                          {.engine = header.edge,
                           .member = member.membership.handle,
                           .peer = body.handle,
                           .life = body.life,
                           .address = address});
  }
  return answer_open(card, *connection, body, address) ? PEAL_COUNTER_RECEIVED
                                                       : PEAL_COUNTER_DROP_CONNECTION;
}

peal_counter on_accept(Card& card, Member& member, const peal_wire_header& header, uint32_t peer,
                       const peal_peer_address& address) {
  Connection* connection = find_by_handle(card, member, header);
  if (connection == nullptr) {
    // It has accepted what nobody wants any more.
    tell(card, member.membership, address, header.edge, PEAL_PACKET_CLOSED, peer, 0);
    return PEAL_COUNTER_DROP_CONNECTION;
  }
  if (connection->phase == ConnectionPhase::kOpening) {
    connection->peer = peer;
    note_heard(card, *connection);
  } else if (connection->peer != peer) {
    return PEAL_COUNTER_DROP_CONNECTION;
  } else {
    note_heard(card, *connection);
  }
  send_ack(card, *connection);
  return PEAL_COUNTER_RECEIVED;
}

peal_counter on_close(Card& card, Member& member, const peal_wire_header& header, uint32_t peer,
                      const peal_peer_address& address) {
  Connection* connection = find_by_handle(card, member, header);
  if (connection == nullptr) {
    tell(card, member.membership, address, header.edge, PEAL_PACKET_CLOSED, peer, 0);
    return PEAL_COUNTER_DROP_CONNECTION;
  }
  if (connection->phase == ConnectionPhase::kOpening) connection->peer = peer;
  if (connection->peer != peer) return PEAL_COUNTER_DROP_CONNECTION;
  connection->heard = true;
  connection->phase = ConnectionPhase::kLeaving;
  note_ready(card, *connection);
  close_if_quiet(card, *connection);
  return PEAL_COUNTER_RECEIVED;
}

peal_counter on_closed(Card& card, Member& member, const peal_wire_header& header) {
  Connection* connection = find_by_handle(card, member, header);
  if (connection == nullptr) return PEAL_COUNTER_DROP_CONNECTION;
  // Nothing is sent before anything was heard: a life that the other side does not know is empty.
  if (connection->phase != ConnectionPhase::kClosing && connection->heard) {
    return PEAL_COUNTER_DROP_CONNECTION;
  }
  if (connection->phase == ConnectionPhase::kOpening) return PEAL_COUNTER_DROP_CONNECTION;
  give_back(card, *connection);
  return PEAL_COUNTER_RECEIVED;
}

}  // namespace peal::p2p
