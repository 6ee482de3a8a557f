// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/opening.h"

#include "firmware/p2p/control.h"
#include "firmware/p2p/timing.h"
#include "firmware/p2p/waiting.h"

namespace peal::p2p {

void open_connection(Card& card, const Member& member, const peal_peer_address& address) {
  Connection& connection = take_connection(card, member, address);
  connection.phase = ConnectionPhase::kOpening;
  tell_phase(card, connection, PEAL_PACKET_OPEN);
  expect_answer(card, connection);
  attach_wanting(card, connection);
}

void accept_connection(Card& card, const Member& member, const Waiter& waiter) {
  Connection& connection = take_connection(card, member, waiter.address);
  connection.phase = ConnectionPhase::kAccepted;
  connection.peer = waiter.peer;
  tell_phase(card, connection, PEAL_PACKET_ACCEPT);
  expect_answer(card, connection);
  attach_wanting(card, connection);
}

peal_counter on_open(Card& card, Member& member, uint32_t peer, const peal_peer_address& address) {
  Connection* connection = find_connection(card, member.index, address.rank);
  if (connection == nullptr) return accept_or_wait(card, member, peer, address);
  switch (connection->phase) {
    case ConnectionPhase::kOpening:
      // Both have asked. Its answer to our question says which life of its it is.
      tell(card, member.membership, address, PEAL_PACKET_ACCEPT, peer,
           handle_of(card.p2p, *connection));
      return PEAL_COUNTER_RECEIVED;
    case ConnectionPhase::kAccepted:
      connection->peer = peer;  // the question before may have been one of an earlier life
      break;
    default:
      if (connection->peer != peer) return PEAL_COUNTER_DROP_CONNECTION;
      break;
  }
  tell_phase(card, *connection, PEAL_PACKET_ACCEPT);
  return PEAL_COUNTER_RECEIVED;
}

peal_counter on_accept(Card& card, Member& member, const peal_wire_header& header, uint32_t peer,
                       const peal_peer_address& address) {
  Connection* connection = find_by_handle(card, member, address.rank, header.block_bytes);
  if (connection == nullptr) {
    // It has accepted what nobody wants any more.
    tell(card, member.membership, address, PEAL_PACKET_CLOSED, peer, 0);
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
  send_ack(card, *connection, false);
  return PEAL_COUNTER_RECEIVED;
}

peal_counter on_close(Card& card, Member& member, const peal_wire_header& header, uint32_t peer,
                      const peal_peer_address& address) {
  Connection* connection = find_by_handle(card, member, address.rank, header.block_bytes);
  if (connection == nullptr) {
    tell(card, member.membership, address, PEAL_PACKET_CLOSED, peer, 0);
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
  Connection* connection = find_by_handle(card, member, header.sender, header.block_bytes);
  if (connection == nullptr) return PEAL_COUNTER_DROP_CONNECTION;
  // Nothing is sent before anything was heard: a life that the other side does not know is empty.
  if (connection->phase != ConnectionPhase::kClosing && connection->heard) {
    return PEAL_COUNTER_DROP_CONNECTION;
  }
  if (connection->phase == ConnectionPhase::kOpening) return PEAL_COUNTER_DROP_CONNECTION;
  give_back(card, *connection);
  return PEAL_COUNTER_RECEIVED;
}

void note_heard(Card& card, Connection& connection) {
  connection.used_ns = card.now;
  if (connection.heard) return;
  connection.heard = true;
  if (connection.phase == ConnectionPhase::kOpening ||
      connection.phase == ConnectionPhase::kAccepted) {
    connection.phase = ConnectionPhase::kOpen;
    connection.backoff = 0;
    note_ready(card, connection);
    expect_answer(card, connection);
  }
}

void begin_close(Card& card, Connection& connection) {
  connection.phase = ConnectionPhase::kDraining;
  note_ready(card, connection);
  close_if_quiet(card, connection);
}

void close_if_quiet(Card& card, Connection& connection) {
  if (connection.base != connection.next_number || connection.owing != 0) return;
  if (connection.phase == ConnectionPhase::kDraining) {
    connection.phase = ConnectionPhase::kClosing;
    connection.backoff = 0;
    tell_phase(card, connection, PEAL_PACKET_CLOSE);
    expect_answer(card, connection);
  } else if (connection.phase == ConnectionPhase::kLeaving) {
    tell_phase(card, connection, PEAL_PACKET_CLOSED);
    give_back(card, connection);
  }
}

}  // namespace peal::p2p
