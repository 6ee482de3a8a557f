// SPDX-License-Identifier: BSD-2-Clause
// How long a connection waits for an answer: the round trip as it has been, smoothed, and four
// times how much it varies (Jacobson; packets that were sent twice say nothing: Karn), twice as
// long each time that nothing came. What is lost sooner is known by what came after it.
#pragma once

#include "firmware/card_types.h"
#include "firmware/p2p/connection.h"

namespace peal::p2p {

// Before something that could not be had is tried again.
inline constexpr TimeNs kStarvedNs = 10'000;
// A connection without anything to do is given back after so many longest NACK intervals.
inline constexpr TimeNs kIdleIntervals = 4;

// It waits for an answer that makes or ends its life.
[[nodiscard]] bool is_asking(const Connection& connection);
// Messages wait for room at the receiver, which may have said in a packet that was lost that it
// has some.
[[nodiscard]] bool waits_for_room(const Connection& connection);
// One round trip took so long.
void note_round_trip(Connection& connection, TimeNs took_ns);
[[nodiscard]] TimeNs answer_time(const Card& card, const Connection& connection);
// An answer is due from now on; where nothing is under way, the connection may become idle.
void expect_answer(Card& card, Connection& connection);

// Where a rank lives: the own address, which is written to *own, a peer's, or a remembered one.
// Null: it is being read.
const peal_peer_address* find_address_of(Card& card, Member& member, Rank rank,
                                         peal_peer_address* own);

}  // namespace peal::p2p
