// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/timing.h"

#include "firmware/group/liveness.h"
#include "firmware/group/remote.h"
#include "firmware/p2p/acknowledgement.h"
#include "firmware/p2p/control.h"
#include "firmware/p2p/matching.h"
#include "firmware/p2p/opening.h"
#include "firmware/p2p/p2p.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

// Before the first round trip was seen.
constexpr TimeNs kFirstIntervals = 5;

bool is_asking(const Connection& connection) {
  return connection.phase == ConnectionPhase::kOpening ||
         connection.phase == ConnectionPhase::kAccepted ||
         connection.phase == ConnectionPhase::kClosing;
}

// Messages wait for room at the receiver, and it may have said so in a packet that was lost.
bool waits_for_room(const Connection& connection) {
  return connection.phase == ConnectionPhase::kOpen && connection.sends.first != 0;
}

bool is_idle(const Card& card, const Connection& connection) {
  return !awaits_receive(card, connection) && connection.work.first == 0 &&
         connection.sends.first == 0 && connection.owing == 0 && connection.place_count == 0;
}

void ask_again(Card& card, Connection& connection) {
  switch (connection.phase) {
    case ConnectionPhase::kOpening:
      tell_phase(card, connection, PEAL_PACKET_OPEN);
      break;
    case ConnectionPhase::kAccepted:
      tell_phase(card, connection, PEAL_PACKET_ACCEPT);
      break;
    default:
      tell_phase(card, connection, PEAL_PACKET_CLOSE);
      break;
  }
}

void watch(Card& card, const Connection& connection) {
  Member& member = member_of(card, connection);
  if (connection.rank != member.membership.rank) await_peer(card, member, connection.rank);
}

void grow_patient(Connection& connection) {
  if (connection.backoff < 16) ++connection.backoff;
}

}  // namespace

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

void on_connection_timer(Card& card, uint32_t index) {
  Connection& connection = card.p2p.connections[index];
  if (card.now < connection.deadline_ns) {  // it was put off meanwhile
    card.timers.arm(connection.timer, connection.deadline_ns);
    return;
  }
  if (is_asking(connection)) {
    watch(card, connection);
    grow_patient(connection);
    ask_again(card, connection);
  } else if (connection.base != connection.next_number) {
    watch(card, connection);
    grow_patient(connection);
    send_oldest_again(card, connection);
  } else if (waits_for_room(connection)) {
    grow_patient(connection);
    send_ack(card, connection, true);
  } else if (connection.phase == ConnectionPhase::kOpen && is_idle(card, connection) &&
             card.now - connection.used_ns >= kIdleIntervals * card.timeouts.nack_max_ns) {
    begin_close(card, connection);
    return;
  }
  expect_answer(card, connection);
}

}  // namespace peal::p2p
