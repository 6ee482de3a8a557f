// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/abandoned.h"

#include <algorithm>

#include "firmware/p2p/connection.h"
#include "firmware/p2p/ending.h"
#include "firmware/p2p/request.h"
#include "firmware/p2p/timing.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

// Null: it is gone, or never was here.
const queue::Queue* find_program(const Card& card, uint16_t member, uint16_t program) {
  const uint32_t handle = card.members[member].membership.handle;
  for (const queue::Queue& each : card.queues.queues) {
    if (each.in_use && each.member == handle && each.origin.slot == program) return &each;
  }
  return nullptr;
}

// The same, or the one that had that name last and has left its place to no other: it may be freed
// while what it has posted is under way.
const queue::Queue* find_last(const Card& card, uint16_t member, uint16_t program) {
  const queue::Queue* living = find_program(card, member, program);
  if (living != nullptr) return living;
  const uint32_t handle = card.members[member].membership.handle;
  for (const queue::Queue& each : card.queues.queues) {
    if (each.member == handle && each.origin.slot == program) return &each;
  }
  return nullptr;
}

}  // namespace

bool is_of_failed(const Card& card, uint16_t member, uint16_t program, uint64_t iteration) {
  const queue::QueuePool& pool = card.queues;
  const uint32_t handle = card.members[member].membership.handle;
  for (uint32_t i = 0; i < pool.failed_top; ++i) {
    const queue::FailedIterations& each = pool.failed[i];
    if (each.in_use && each.member == handle && each.name + 1 == program &&
        each.from <= iteration && iteration < each.to) {
      return true;
    }
  }
  return false;
}

bool ended_well(const Card& card, uint16_t member, uint16_t program, uint64_t iteration) {
  const queue::Queue* own = find_program(card, member, program);
  return own != nullptr && iteration >= own->failed_before && iteration < own->origin.iteration;
}

void list_told(const Card& card, uint16_t member, uint16_t program,
               uint16_t (&told)[PEAL_SKIP_TOLD]) {
  const queue::Queue* own = find_last(card, member, program);
  if (own != nullptr) std::copy_n(own->tells, PEAL_SKIP_TOLD, told);
}

bool is_landing(const Card& card, const Member& member, uint16_t program, uint64_t from,
                uint64_t to) {
  const State& state = card.p2p;
  for (uint32_t i = 0; i < state.connections_touched; ++i) {
    const Connection& connection = state.connections[i];
    if (connection.phase == ConnectionPhase::kFree || connection.member != member.index ||
        connection.landing == 0) {
      continue;
    }
    for (const Slot& slot : connection.slots) {
      const Notice& notice = slot.notice;
      if (slot.state == SlotState::kLanding && slot.program == program &&
          notice.iteration >= from && notice.iteration < to) {
        return true;
      }
    }
  }
  return false;
}

bool throw_away(Card& card, Connection& connection, uint32_t request, bool whole) {
  Request* answer = take_request(card, member_of(card, connection), Kind::kServe, connection.rank,
                                 {Owner::kPeer, 0, 0, 0});
  if (answer == nullptr) return false;
  answer->engine = connection.engine;
  answer->peer_request = request;
  answer->due = Due::kDone;  // well, as far as its sender is concerned
  answer->owes = true;
  ++connection.owing;
  ++connection.told;
  if (whole) ++connection.data_told;
  count(card, PEAL_COUNTER_THROWN_AWAY);
  attach(card, *answer);
  return true;
}

void throw_away_announced(Card& card, Member& member) {
  State& state = card.p2p;
  for (uint32_t i = 0; i < state.connections_touched; ++i) {
    Connection& connection = state.connections[i];
    if (connection.phase == ConnectionPhase::kFree || connection.member != member.index) continue;
    for (uint32_t at = 0; may_match(connection) && at < connection.place_count;) {
      const Announcement message = connection.places[at];
      if (!is_abandoned(card, connection, message.program, message.iteration)) {
        ++at;
        continue;
      }
      if (!throw_away(card, connection, message.request, message.packet != nullptr)) {
        state.abandoned = true;
        card.timers.arm_no_later(state.timer, card.now + kStarvedNs);
        return;
      }
      remove_place(connection, at);
      if (message.packet != nullptr) unhold_packet(card, message.packet);
    }
  }
}

void give_up_messages(Card& card, uint16_t queue) {
  State& state = card.p2p;
  for (uint32_t i = 0; i < state.requests_touched; ++i) {
    Request& each = state.requests[i];
    if (each.over || each.ticket.owner != Owner::kQueue || each.ticket.queue != queue) continue;
    const bool receives = each.kind == Kind::kReceive && !each.matched;
    const bool sends = each.kind == Kind::kSend && !each.announced && !each.matched;
    if (receives || sends) end_request(card, each, PEAL_STATUS_CLOSED);
  }
}

}  // namespace peal::p2p
