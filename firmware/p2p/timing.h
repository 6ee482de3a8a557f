// SPDX-License-Identifier: BSD-2-Clause
// How long a connection waits for an answer: the round trip as it has been, smoothed, and four
// times how much it varies (Jacobson; packets that were sent twice say nothing: Karn), twice as
// long each time that nothing came. What is lost sooner is known by what came after it.
#pragma once

#include "firmware/card_types.h"

namespace peal::p2p {

// Before something that could not be had is tried again.
inline constexpr TimeNs kStarvedNs = 10'000;
// A connection without anything to do is given back after so many longest NACK intervals.
inline constexpr TimeNs kIdleIntervals = 4;

// Before the first round trip was seen an answer may take so many shortest NACK intervals.
inline constexpr TimeNs kFirstIntervals = 5;

// It waits for an answer that makes or ends its life.
[[nodiscard]] inline bool is_asking(const Connection& connection) {
  return connection.phase == ConnectionPhase::kOpening ||
         connection.phase == ConnectionPhase::kAccepted ||
         connection.phase == ConnectionPhase::kClosing;
}
// Messages wait for room at the receiver, which may have said in a packet that was lost that it
// has some.
[[nodiscard]] inline bool waits_for_room(const Connection& connection) {
  return connection.phase == ConnectionPhase::kOpen && connection.sends.first != 0;
}
// One round trip took so long.
void note_round_trip(const Card& card, Connection& connection, TimeNs took_ns);
[[nodiscard]] inline TimeNs answer_time(const Card& card, const Connection& connection) {
  const TimeNs time = connection.answer_ns << connection.backoff;
  return time < card.timeouts.nack_max_ns ? time : card.timeouts.nack_max_ns;
}
inline void expect_within(Card& card, Connection& connection, TimeNs time_ns) {
  connection.deadline_ns = card.now + time_ns;
  card.timers.arm_no_later(connection.timer, connection.deadline_ns);
}
// An answer is due from now on; where nothing is under way, the connection may become idle.
inline void expect_answer(Card& card, Connection& connection) {
  const bool due = connection.base != connection.next_number || is_asking(connection) ||
                   waits_for_room(connection);
  const TimeNs idle_ns = kIdleIntervals * card.timeouts.nack_max_ns;
  expect_within(card, connection, due ? answer_time(card, connection) : idle_ns);
}

// Where a rank lives: the own address, which is written to *own, a peer's, or a remembered one.
// Null: it is being read.
const peal_peer_address* find_address_of(Card& card, Member& member, Rank rank,
                                         peal_peer_address* own);

}  // namespace peal::p2p
