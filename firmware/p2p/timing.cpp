// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/timing.h"

#include "firmware/group/remote.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {

void note_round_trip(const Card& card, Connection& connection, TimeNs took_ns) {
  if (connection.round_trip_ns == 0) {
    connection.round_trip_ns = took_ns + 1;
    connection.variation_ns = took_ns / 2;
  } else {
    const TimeNs smoothed = connection.round_trip_ns;
    const TimeNs off = took_ns > smoothed ? took_ns - smoothed : smoothed - took_ns;
    connection.variation_ns = (3 * connection.variation_ns + off) / 4;
    connection.round_trip_ns = (7 * smoothed + took_ns) / 8 + 1;
  }
  const TimeNs answer_ns = connection.round_trip_ns + 4 * connection.variation_ns;
  const TimeNs least_ns = card.timeouts.nack_ns;
  connection.answer_ns = answer_ns < least_ns ? least_ns : answer_ns;
}

const peal_peer_address* find_address_of(Card& card, Member& member, Rank rank,
                                         peal_peer_address* own) {
  if (rank != member.membership.rank) return find_address(card, member, rank);
  *own = own_address(card, member.membership);
  return own;
}

}  // namespace peal::p2p
