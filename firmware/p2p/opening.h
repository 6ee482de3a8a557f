// SPDX-License-Identifier: BSD-2-Clause
// How a life of a connection begins and ends, on this side (handshake.h: what the other says).
// OPEN and ACCEPT tell each other the handles, so that nothing of an earlier life can be taken
// for one of this. CLOSE says that its sender has nothing under way and sends nothing more by
// this life; CLOSED that the other side has neither: then both forget it. Whoever is asked
// twice answers twice, also when it has forgotten.
#pragma once

#include "firmware/card_types.h"
#include "firmware/p2p/connection.h"

namespace peal::p2p {

// Asks the other side for a connection. The request that wants it, and all others for that rank,
// go to it.
void open_connection(Card& card, const Member& member, const peal_peer_address& address,
                     uint8_t engine);
// To a rank that has asked.
void accept_connection(Card& card, const Member& member, const Waiter& waiter);
// Does an OPEN that says one life of its card's come from an earlier one than that of the other?
inline bool is_earlier(uint32_t life, uint32_t than) {
  return static_cast<int32_t>(life - than) < 0;
}
// To one that has asked, so, for what there is already. False: it is another life's.
bool answer_open(Card& card, Connection& connection, const peal_p2p_open& open,
                 const peal_peer_address& address);

// Something came that only who knows this life can have sent.
void note_heard_first(Card& card, Connection& connection);
inline void note_heard(Card& card, Connection& connection) {
  connection.used_ns = card.now;
  if (!connection.heard) note_heard_first(card, connection);
}
// Nothing new is sent from now on; CLOSE when what is under way is acknowledged.
void begin_close(Card& card, Connection& connection);
// Sends CLOSE or CLOSED if its time has come; the connection may be gone afterwards.
void close_if_quiet(Card& card, Connection& connection);

}  // namespace peal::p2p
