// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/opening.h"

#include "firmware/p2p/acknowledgement.h"
#include "firmware/p2p/control.h"
#include "firmware/p2p/timing.h"

namespace peal::p2p {
namespace {

// By what this member knows: so a packet that is like it has all that the long way asks for.
void expect_packets(Card& card, Connection& connection) {
  const Membership& self = member_of(card, connection).membership;
  if (connection.rank == self.rank) return;
  peal_wire_header& pattern = connection.heard_by;
  pattern = self.pattern;
  pattern.identity = peal_identity(&connection.address);
  pattern.sender = connection.rank;
  pattern.edge = connection.engine;
  pattern.block_bytes = handle_of(card.p2p, connection);
}

}  // namespace

void open_connection(Card& card, const Member& member, const peal_peer_address& address,
                     uint8_t engine) {
  Connection& connection = take_connection(card, member, address, engine);
  connection.phase = ConnectionPhase::kOpening;
  tell_phase(card, connection, PEAL_PACKET_OPEN);
  expect_answer(card, connection);
  attach_wanting(card, connection);
}

void accept_connection(Card& card, const Member& member, const Waiter& waiter) {
  Connection& connection = take_connection(card, member, waiter.address, waiter.engine);
  connection.phase = ConnectionPhase::kAccepted;
  connection.peer = waiter.peer;
  connection.peer_life = waiter.life;
  tell_phase(card, connection, PEAL_PACKET_ACCEPT);
  expect_answer(card, connection);
  attach_wanting(card, connection);
}

bool answer_open(Card& card, Connection& connection, const peal_p2p_open& open,
                 const peal_peer_address& address) {
  const uint32_t peer = open.handle;
  switch (connection.phase) {
    case ConnectionPhase::kOpening:
      // Both have asked. Its answer to our question says which life of its it is.
      tell(card, member_of(card, connection).membership, address, connection.engine,
           PEAL_PACKET_ACCEPT, peer, handle_of(card.p2p, connection));
      connection.answered = true;
      return true;
    case ConnectionPhase::kAccepted:
      // The question before may have been one of an earlier life: that it is closed, the answer to
      // that, must not be taken for one to this.
      // (And one of an earlier life that comes behind is nobody's any more: whoever asked later may
      // have the answer, and use it.)
      if (is_earlier(open.life, connection.peer_life)) return false;
      if (connection.peer != peer) connection.generation = next_generation(connection.generation);
      connection.peer = peer;
      connection.peer_life = open.life;
      break;
    default:
      if (connection.peer != peer) return false;
      break;
  }
  tell_phase(card, connection, PEAL_PACKET_ACCEPT);
  return true;
}

void note_heard_first(Card& card, Connection& connection) {
  connection.heard = true;
  expect_packets(card, connection);
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
  if (connection.base != connection.next_number) {
    // What nobody has waited for is waited for now.
    if (is_ending(connection) && may_inquire(card, connection)) inquire(card, connection);
    return;
  }
  if (connection.owing != 0) return;
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
