// SPDX-License-Identifier: BSD-2-Clause
// What acknowledgements say of the packets that were sent: all below a number are in memory,
// and some behind it. A packet is lost when others that were sent well after it are in memory,
// whatever their numbers, or when nothing comes for too long; it alone is sent again then. With
// CardTimeouts::go_back_n, for comparison, only time tells, and all is sent again.
#pragma once

#include "firmware/card_types.h"
#include "firmware/p2p/connection.h"

namespace peal::p2p {

// The fields of any packet's header; `landed`: of an ACK's body, else 0. False: they cannot be.
[[nodiscard]] bool take_news(Card& card, Connection& connection, const peal_wire_header& header,
                             uint64_t landed);
// Does it say no more than others did, in a life that is not to end?
[[nodiscard]] inline bool says_nothing_new(const Connection& connection,
                                           const peal_wire_header& header) {
  return header.piece == connection.base && header.origin == connection.given &&
         header.fragment == connection.data_given && connection.phase == ConnectionPhase::kOpen;
}
// The same, where most headers say nothing new.
[[nodiscard]] inline bool take_acknowledgement(Card& card, Connection& connection,
                                               const peal_wire_header& header, uint64_t landed) {
  if (landed == 0 && says_nothing_new(connection, header)) return true;
  return take_news(card, connection, header, landed);
}
// Has something been sent that no answer was asked for?
inline bool may_inquire(const Card& card, const Connection& connection) {
  return connection.asked != connection.next_number && !card.timeouts.go_back_n;
}
// Nothing came in time of what nobody was asked about: asks before anything is sent again. The
// answer names what is lost: whatever was sent before and has not come.
void inquire(Card& card, Connection& connection);
void take_answer(Card& card, Connection& connection);
// Nothing came in time.
void send_oldest_again(Card& card, Connection& connection);
// The packet of this number cannot be carried out there.
peal_counter on_refused(Card& card, Connection& connection, const peal_p2p_refused& body);

}  // namespace peal::p2p
