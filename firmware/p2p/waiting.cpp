// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/waiting.h"

#include "firmware/group/member.h"
#include "firmware/group/remote.h"
#include "firmware/p2p/matching.h"
#include "firmware/p2p/opening.h"
#include "firmware/p2p/records.h"
#include "firmware/p2p/request.h"
#include "firmware/p2p/timing.h"

namespace peal::p2p {
namespace {

Waiter& waiter_at(State& state, uint32_t place) {
  return state.waiters[(state.waiter_first + place) % kWaiters];
}

bool is_same(const Waiter& one, const Waiter& other) {
  return one.member == other.member && one.address.rank == other.address.rank &&
         one.engine == other.engine;
}

void serve_waiter(Card& card) {
  State& state = card.p2p;
  const Waiter waiter = waiter_at(state, 0);
  state.waiter_first = static_cast<uint16_t>((state.waiter_first + 1) % kWaiters);
  --state.waiter_count;
  Member* member = find_member(card, waiter.member);
  if (member == nullptr || member->membership.poisoned) return;
  Connection* connection = find_connection(card, member->index, waiter.address.rank, waiter.engine);
  if (connection == nullptr) return accept_connection(card, *member, waiter);
  // Its rank was asked meanwhile, and waits for an answer as well.
  (void)answer_open(card, *connection, {waiter.peer, waiter.life}, waiter.address);
}

// The first whose rank's address is known. False: none is; the others wait for it. (They keep their
// order: messages of a rank that stays unknown for a while are matched in it.)
bool serve_request(Card& card) {
  State& state = card.p2p;
  for (uint16_t name = state.wanting.first; name != 0;) {
    const Request& request = *request_at(state, name);
    Member& member = card.members[request.member];
    peal_peer_address own;
    const peal_peer_address* address = find_address_of(card, member, request.rank, &own);
    if (address != nullptr) {
      open_connection(card, member, *address, request.engine);
      return true;
    }
    name = request.next;
  }
  card.timers.arm_no_later(state.timer, card.now + kStarvedNs);
  return false;
}

bool has_had_its_turn(const Card& card, const Connection& connection) {
  return connection.packets >= kTurnPackets ||
         card.now - connection.opened_ns >= card.timeouts.nack_max_ns;
}

// Is all that it has sent in memory there, or waited for by nobody?
bool is_awaited(const Connection& connection) {
  for (uint32_t number = connection.base; number != connection.next_number; ++number) {
    if (record_at(connection, number).awaited) return true;
  }
  return false;
}

// Nobody waits for anything that is under way, and nothing has been sent for a while: whoever has
// just got a connection is about to use it.
bool is_quiet(const Card& card, const Connection& connection) {
  if (connection.packets == 0 && !has_had_its_turn(card, connection)) return false;
  if (card.now - connection.used_ns < card.timeouts.nack_ns) return false;
  return connection.phase == ConnectionPhase::kOpen && connection.heard &&
         connection.work.first == 0 && connection.sends.first == 0 && connection.place_count == 0 &&
         connection.owing == 0 && !awaits_receive(card, connection) && !is_awaited(connection);
}

// Who gives way: the quiet one that was not used for longest, else who has had its turn longest.
Connection* find_victim(Card& card) {
  State& state = card.p2p;
  Connection* quiet = nullptr;
  Connection* busy = nullptr;
  for (uint32_t i = 0; i < state.connections_touched; ++i) {
    Connection& each = state.connections[i];
    if (each.phase == ConnectionPhase::kFree || is_ending(each) || each.held != 0) continue;
    // The other side may be using it already, and would never learn that it is gone.
    if (each.phase == ConnectionPhase::kOpening && each.answered) continue;
    if (is_quiet(card, each)) {
      if (quiet == nullptr || each.used_ns < quiet->used_ns) quiet = &each;
    } else if (has_had_its_turn(card, each)) {
      if (busy == nullptr || each.opened_ns < busy->opened_ns) busy = &each;
    }
  }
  return quiet != nullptr ? quiet : busy;
}

// As many give way as there are waiting, but half of all at most.
void make_room(Card& card) {
  State& state = card.p2p;
  uint32_t ending = 0;
  for (uint32_t i = 0; i < state.connections_touched; ++i) {
    if (is_ending(state.connections[i])) ++ending;
  }
  const uint32_t waiting = state.waiter_count + (state.wanting.first != 0 ? 1u : 0u);
  for (; ending < waiting && ending < kConnections / 2; ++ending) {
    Connection* victim = find_victim(card);
    if (victim == nullptr) {
      card.timers.arm_no_later(state.timer, card.now + card.timeouts.nack_ns);
      return;
    }
    count(card, PEAL_COUNTER_CONNECTIONS_TAKEN_AWAY);
    if (victim->phase == ConnectionPhase::kOpening) {
      give_back(card, *victim);  // nothing went by it
    } else {
      begin_close(card, *victim);
    }
  }
}

}  // namespace

peal_counter accept_or_wait(Card& card, Member& member, const Waiter& asker) {
  State& state = card.p2p;
  for (uint32_t i = 0; i < state.waiter_count; ++i) {
    Waiter& waiter = waiter_at(state, i);
    if (!is_same(waiter, asker)) continue;
    if (is_earlier(asker.life, waiter.life)) return PEAL_COUNTER_DROP_CONNECTION;
    waiter.peer = asker.peer;
    waiter.life = asker.life;
    return PEAL_COUNTER_RECEIVED;
  }
  if (!anybody_waits(state) && has_free_connection(state)) {
    accept_connection(card, member, asker);
    return PEAL_COUNTER_RECEIVED;
  }
  if (state.waiter_count == kWaiters) return PEAL_COUNTER_DROP_NO_CONNECTION;
  count(card, PEAL_COUNTER_NO_CONNECTION);
  waiter_at(state, state.waiter_count++) = asker;
  state.wanted = card.due.messages = true;
  return PEAL_COUNTER_RECEIVED;
}

void note_turn(Card& card) {
  if (anybody_waits(card.p2p)) card.p2p.wanted = card.due.messages = true;
}

void serve_waiting(Card& card) {
  State& state = card.p2p;
  state.wanted = false;
  while (anybody_waits(state)) {
    if (!has_free_connection(state)) {
      make_room(card);
      if (!has_free_connection(state)) return;
    }
    const bool others = state.waiter_count != 0 && (state.turn || state.wanting.first == 0);
    state.turn = !others;
    if (others) {
      serve_waiter(card);
    } else if (!serve_request(card)) {
      if (state.waiter_count == 0) return;
      serve_waiter(card);
    }
  }
}

void forget_waiters(Card& card, const Member& member) {
  State& state = card.p2p;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < state.waiter_count; ++i) {
    const Waiter waiter = waiter_at(state, i);
    if (waiter.member != member.membership.handle) waiter_at(state, kept++) = waiter;
  }
  state.waiter_count = static_cast<uint16_t>(kept);
}

}  // namespace peal::p2p
