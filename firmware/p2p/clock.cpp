// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/clock.h"

#include "firmware/group/liveness.h"
#include "firmware/p2p/acknowledgement.h"
#include "firmware/p2p/connection.h"
#include "firmware/p2p/control.h"
#include "firmware/p2p/matching.h"
#include "firmware/p2p/opening.h"
#include "firmware/p2p/timing.h"

namespace peal::p2p {
namespace {

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

void watch_rank(Card& card, Member& member, Rank rank) {
  if (rank != member.membership.rank) await_peer(card, member, rank);
}

void watch(Card& card, const Connection& connection) {
  watch_rank(card, member_of(card, connection), connection.rank);
}

void grow_patient(Connection& connection) {
  if (connection.backoff < 16) ++connection.backoff;
}

// A put's packets take turns with those of others, and only the last asks for an answer: until it
// has left for long enough there is nothing to be impatient about. (What was lost before it is
// known by those that came behind.)
bool puts_off(Card& card, Connection& connection) {
  const TimeNs due = connection.launched_ns + answer_time(card, connection);
  if (card.now >= due) return false;
  connection.deadline_ns = due;
  card.timers.arm(connection.timer, due);
  return true;
}

}  // namespace

void expect_awaited(Card& card) {
  card.timers.arm_no_later(card.p2p.timer, card.now + card.timeouts.dead_ns / kLooksPerDeath);
}

void watch_awaited(Card& card) {
  State& state = card.p2p;
  if (state.requests_used == 0) return;
  for (uint32_t i = 0; i < state.requests_touched; ++i) {
    const Request& request = state.requests[i];
    if (request.kind == Kind::kFree || request.over) continue;
    watch_rank(card, card.members[request.member], request.rank);
  }
  expect_awaited(card);
}

void on_deadline(Card& card, Connection& connection) {
  if (card.now < connection.deadline_ns) {  // it was put off meanwhile
    card.timers.arm(connection.timer, connection.deadline_ns);
    return;
  }
  if (is_asking(connection)) {
    watch(card, connection);
    grow_patient(connection);
    ask_again(card, connection);
  } else if (connection.base != connection.next_number) {
    if (puts_off(card, connection)) return;
    watch(card, connection);
    if (may_inquire(card, connection)) {
      inquire(card, connection);
    } else {
      grow_patient(connection);
      send_oldest_again(card, connection);
    }
  } else if (waits_for_room(connection)) {
    grow_patient(connection);
    send_question(card, connection);
  } else if (connection.phase == ConnectionPhase::kOpen && is_idle(card, connection) &&
             card.now - connection.used_ns >= kIdleIntervals * card.timeouts.nack_max_ns) {
    begin_close(card, connection);
    return;
  }
  expect_answer(card, connection);
}

}  // namespace peal::p2p
