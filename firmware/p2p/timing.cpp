// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/timing.h"

#include "firmware/group/remote.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

// Before the first round trip was seen.
constexpr TimeNs kFirstIntervals = 5;

}  // namespace

bool is_asking(const Connection& connection) {
  return connection.phase == ConnectionPhase::kOpening ||
         connection.phase == ConnectionPhase::kAccepted ||
         connection.phase == ConnectionPhase::kClosing;
}

// Messages wait for room at the receiver, and it may have said so in a packet that was lost.
bool waits_for_room(const Connection& connection) {
  return connection.phase == ConnectionPhase::kOpen && connection.sends.first != 0;
}

void note_round_trip(Connection& connection, TimeNs took_ns) {
  if (connection.round_trip_ns == 0) {
    connection.round_trip_ns = took_ns + 1;
    connection.variation_ns = took_ns / 2;
    return;
  }
  const TimeNs smoothed = connection.round_trip_ns;
  const TimeNs off = took_ns > smoothed ? took_ns - smoothed : smoothed - took_ns;
  connection.variation_ns = (3 * connection.variation_ns + off) / 4;
  connection.round_trip_ns = (7 * smoothed + took_ns) / 8 + 1;
}

TimeNs answer_time(const Card& card, const Connection& connection) {
  const CardTimeouts& timeouts = card.timeouts;
  TimeNs time = connection.round_trip_ns == 0
                    ? kFirstIntervals * timeouts.nack_ns
                    : connection.round_trip_ns + 4 * connection.variation_ns;
  if (time < timeouts.nack_ns) time = timeouts.nack_ns;
  time <<= connection.backoff;
  return time < timeouts.nack_max_ns ? time : timeouts.nack_max_ns;
}

void expect_answer(Card& card, Connection& connection) {
  const bool due = is_asking(connection) || connection.base != connection.next_number ||
                   waits_for_room(connection);
  connection.deadline_ns =
      card.now + (due ? answer_time(card, connection) : kIdleIntervals * card.timeouts.nack_max_ns);
  card.timers.arm_no_later(connection.timer, connection.deadline_ns);
}

const peal_peer_address* find_address_of(Card& card, Member& member, Rank rank,
                                         peal_peer_address* own) {
  if (rank != member.membership.rank) return find_address(card, member, rank);
  *own = own_address(card, member.membership);
  return own;
}

}  // namespace peal::p2p
