// SPDX-License-Identifier: BSD-2-Clause
// Headers of point-to-point packets, and those that have no number: nothing of theirs is kept,
// what they say is asked for again.
#pragma once

#include "firmware/card_types.h"
#include "firmware/p2p/connection.h"

namespace peal::p2p {

// Makes the header of a connection's packet: also what has come by it.
inline void write_header(const Connection& connection, uint8_t type, uint32_t sequence,
                         uint16_t length, peal_wire_header* header) {
  *header = connection.sent;
  header->type = type;
  header->sequence = sequence;
  header->piece = connection.landed;
  header->origin = connection.told;
  header->fragment = connection.data_told;
  header->length = length;
  header->block_bytes = connection.peer;
}

// Without a connection here, to the one of this handle there. False: there was no packet; nothing
// is lost that is not asked for again.
bool tell(Card& card, const Membership& self, const peal_peer_address& to, uint8_t engine,
          uint8_t type, uint32_t handle, uint32_t own_handle, uint32_t life = 0);
// OPEN, ACCEPT, CLOSE or CLOSED of this connection.
void tell_phase(Card& card, const Connection& connection, uint8_t type);
// What is in memory; and, once nothing is on its way there any more, an answer to an ACK that
// asked.
void send_ack(Card& card, Connection& connection);
// The same, and asks the other side.
void send_question(Card& card, Connection& connection);
// Which tags are wanted.
void send_seek(Card& card, const Connection& connection, const peal_p2p_seek& body);
void send_refused(Card& card, Connection& connection, uint32_t sequence, peal_status status);

}  // namespace peal::p2p
