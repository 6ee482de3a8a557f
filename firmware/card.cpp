// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/card.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/base/mutation.h"
#include "firmware/card_types.h"
#include "firmware/channels.h"
#include "firmware/dma/dma.h"
#include "firmware/group/at_hand.h"
#include "firmware/group/early.h"
#include "firmware/group/liveness.h"
#include "firmware/group/member.h"
#include "firmware/group/promises.h"
#include "firmware/group/recycling.h"
#include "firmware/group/remote.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/group/unsettled.h"
#include "firmware/host/completion.h"
#include "firmware/host/context.h"
#include "firmware/host/keys.h"
#include "firmware/operation/admission.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/gone_on.h"
#include "firmware/operation/lead.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/refusal.h"
#include "firmware/operation/settle.h"
#include "firmware/operation/transfer.h"
#include "firmware/p2p/p2p.h"
#include "firmware/p2p/submission.h"
#include "firmware/queue/failed.h"
#include "firmware/queue/fetch.h"
#include "firmware/queue/gates.h"
#include "firmware/queue/point_to_point.h"
#include "firmware/queue/pool.h"
#include "firmware/queue/start.h"
#include "firmware/queue/tasks.h"
#include "firmware/queue/turn.h"
#include "firmware/queue/watch.h"
#include "firmware/receive.h"
#include "firmware/wire/transmit.h"
#include "firmware/wire/wire_check.h"

namespace peal {
namespace {

Member* own_member(Card& card, ContextId context, uint32_t handle) {
  Member* member = find_member(card, handle);
  return member != nullptr && member->context == context ? member : nullptr;
}

void on_member_timer(Card& card, Member& member) {
  if (member.phase != MemberPhase::kActive || member.membership.poisoned) return;
  const TimeNs recycling = recycling_chase(card, member);
  const TimeNs watching = watch_peers(card, member);
  if (member.membership.poisoned) return;
  const TimeNs next = std::min({recycling, watching, keep_promises(card, member)});
  if (next != kNever) card.timers.arm_no_later(member.timer, next);
}

// What queues wait for. (One packet, or one DMA, brings no more than there is room for.)
void take_notices(Card& card) {
  for (const p2p::Noticed& each : p2p::noticed(card)) {
    Member& member = card.members[each.member];
    if (card.queues.failed_top != 0 && queue::is_told_in_vain(card, member, each)) {
      continue;
    }
    queue::tell(card, member, each.source, each.notice);
  }
  p2p::forget_noticed(card);
}

// Addresses have come, or have not: who waited for them goes on, or ends.
void on_addresses(Card& card, const DmaDone& done) {
  Member& member = card.members[done.member];
  const bool good = take_addresses(card, done);
  if (!good) p2p::fail_addresses(card, member);
  card.p2p.wanted = card.due.messages = true;
  while (Packet* packet = take_awaited_packet(member, done)) {
    count(card, receive_checked(card, packet));
    unhold_packet(card, packet);
    take_notices(card);
  }
  if (member.phase != MemberPhase::kActive) return;
  for (Operation& operation : member.operations) {
    const Scope scope = {card, member, operation};
    if (!is_open(operation) || operation.algorithm->senders != Senders::kGroup) continue;
    if (!good) refuse(scope, PEAL_STATUS_DMA_FAULT, member.membership.rank);
    operation_advance(scope);
  }
}

void end_request(Card& card, p2p::Request& over) {
  if (over.ticket.owner == p2p::Owner::kQueue) {
    queue::task_over(card, over.ticket, static_cast<peal_status>(over.status), over.failed_rank);
  } else {
    p2p::complete(card, over);
  }
  p2p::forget_over(card, over);
}

// What came of point-to-point: requests that are over, and what queues wait for.
[[gnu::always_inline]] inline void finish_point_to_point(Card& card) {
  while (card.due.messages) {
    p2p::advance(card);
    while (p2p::Request* over = p2p::next_over(card)) end_request(card, *over);
    p2p::MissingPut put;
    while (p2p::next_refused(card, &put)) {
      if (queue::fail_posted(card, put)) p2p::give_up_refused(card, put);
    }
    while (p2p::next_skipped(card, &put)) {
      if (queue::fail_skipped(card, put)) p2p::take_skipped(card, put);
    }
    while (p2p::next_uncopied(card, &put)) {
      p2p::end_uncopied(card, put, queue::fail_uncopied(card, put));
    }
    take_notices(card);
    settle(card);
  }
}

// Queues have their turn when all is told that came; what they ask for is on its way then.
[[gnu::noinline]] void finish_messages(Card& card) {
  finish_point_to_point(card);
  if (!card.due.queues) return;
  queue::take_turns(card);
  finish_point_to_point(card);
  if (card.due.queues) queue::expect_turn(card);
}

// Usually nothing is, which is one look.
[[gnu::always_inline]] inline bool is_due(const Card& card) {
  return std::bit_cast<uint32_t>(card.due) != 0;
}

[[gnu::noinline]] void finish_all(Card& card) {
  settle(card);
  if (is_due(card)) finish_messages(card);
}

// The end of an entry point.
[[gnu::always_inline]] inline void finish(Card& card) {
  if (is_due(card)) finish_all(card);
}

// Looks at the frame before anybody else does.
[[gnu::always_inline]] inline peal_counter receive_frame(Card& card, Packet* packet,
                                                         uint32_t frame_bytes) {
  if (!is_whole(*packet, frame_bytes)) return why_not_whole(*packet, frame_bytes);
  if (card.checksums == Checksums::kSoftware && !sums_are_right(*packet)) {
    return why_not_right(*packet);
  }
  return receive_packet(card, packet);
}

void on_queue_dma(Card& card, const DmaDone& done) {
  queue::Queue& queue = card.queues.queues[done.piece];
  queue::on_fetched({card, card.members[done.member], queue}, done, done.ok);
}

}  // namespace

size_t card_bytes() { return sizeof(Card); }
size_t card_alignment() { return alignof(Card); }
uint32_t card_geometry() { return geometry_hash(); }

CardTimeouts default_timeouts() {
  return {.nack_ns = CONFIG_NACK_TIMEOUT_US * TimeNs{1000},
          .nack_max_ns = CONFIG_NACK_TIMEOUT_MAX_US * TimeNs{1000},
          .probe_interval_ns = CONFIG_PROBE_INTERVAL_US * TimeNs{1000},
          .dead_ns = CONFIG_DEAD_TIMEOUT_US * TimeNs{1000}};
}

Card* card_start(void* memory, Port& port, const CardIdentity& identity,
                 const CardTimeouts& timeouts) {
  Card* card = static_cast<Card*>(memory);
  card->port = &port;
  card->identity = identity;
  card->timeouts = timeouts;
  card->checksums = port.checksums();
  card->own_most = own_share(port.packet_buffers());
  card->transfers_most = transfers_most(port.dma_batch());
  card->timers = {card->timer_entries, kTimers, 0};
  card->retry_timer.kind = TimerKind::kCard;
  card->queues.timer.kind = TimerKind::kQueues;
  card->queues.watch_timer.kind = TimerKind::kQueueWatch;
  card->queues.failure_timer.kind = TimerKind::kFailures;
  queue::use_network(*card, queue::kPointToPoint);
  card->repairs = pace_start(timeouts, 0, kRepairsPerInterval);
  // Handles begin elsewhere in every life of a card.
  card->first_generation = static_cast<uint16_t>(identity.incarnation * 0x9e3779b1u >> 16);
  early_init(*card);
  at_hand_init(*card);
  sent_blocks_init(*card);
  p2p::start(*card);
  return card;
}

void card_describe(const Card& card, peal_device* device) {
  std::memset(device, 0, sizeof(*device));
  std::memcpy(device->mac, card.identity.mac, PEAL_MAC_BYTES);
  device->card_index = card.identity.index;
  device->incarnation = card.identity.incarnation;
  device->ranks_max = CONFIG_GROUP_RANKS_MAX;
  device->members_max = CONFIG_CARD_MEMBERS;
  device->channels = kChannels;
  device->parked_max = CONFIG_PARKED_OPERATIONS;
  device->piece_window = kPieceWindow;
  device->mtu_bytes = CONFIG_MTU_BYTES;
  device->channel_bytes = CONFIG_CHANNEL_BYTES + kShortImageBytes;
  device->geometry = geometry_hash();
  device->remembered_addresses = CONFIG_REMEMBERED_ADDRESSES;
  device->dead_timeout_us = static_cast<uint32_t>(card.timeouts.dead_ns / 1000);
}

peal_status card_open_context(Card& card, ContextId context, ClientId client) {
  return context_open(card, context, client);
}

void card_close_context(Card& card, ContextId context, TimeNs now) {
  if (!context_is_open(card, context)) return;
  card.now = now;
  card.contexts[context].phase = ContextPhase::kClosing;
  for (Member& member : members_of(card)) {
    if (member.context != context) continue;
    if (member.phase == MemberPhase::kReserved) release_member(card, member);
    if (member.phase == MemberPhase::kActive) leave_group(card, member);
  }
  finish(card);
  context_try_close(card, context);
}

bool card_context_quiet(const Card& card, ContextId context) {
  return context >= CONFIG_CONTEXTS || card.contexts[context].phase == ContextPhase::kFree;
}

peal_status card_register_memory(Card& card, ContextId context, RegionId region, uint64_t bytes,
                                 uint32_t access, uint32_t* key) {
  if (!context_is_open(card, context)) return PEAL_STATUS_CLOSED;
  return register_key(card, context, region, bytes, access, key);
}

peal_status card_unregister_memory(Card& card, ContextId context, uint32_t key, RegionId* region) {
  return unregister_key(card, context, key, region);
}

peal_status card_reserve_group(Card& card, ContextId context, const peal_reserve_group& request,
                               RegionId channels, TimeNs now, peal_peer_address* address) {
  if (!context_is_open(card, context)) return PEAL_STATUS_CLOSED;
  card.now = now;
  return reserve_member(card, context, request.ranks, request.rank, channels, address);
}

peal_status card_add_peers(Card& card, ContextId context, const peal_add_peers& request) {
  Member* member = own_member(card, context, request.member);
  return member == nullptr ? PEAL_STATUS_BAD_GROUP : add_peers(*member, request);
}

peal_status card_connect_group(Card& card, ContextId context, const peal_connect_group& request,
                               TimeNs now) {
  Member* member = own_member(card, context, request.member);
  if (member == nullptr) return PEAL_STATUS_BAD_GROUP;
  card.now = now;
  return connect_member(card, *member, request);
}

peal_status card_abandon_group(Card& card, ContextId context, uint32_t handle, TimeNs now) {
  Member* member = own_member(card, context, handle);
  if (member == nullptr) return PEAL_STATUS_BAD_GROUP;
  if (member->phase == MemberPhase::kReserved) {
    release_member(card, *member);
    return PEAL_STATUS_OK;
  }
  card.now = now;
  // Connected: others may have posted already, and must not wait for ever.
  leave_group(card, *member);
  finish(card);
  return PEAL_STATUS_OK;
}

peal_status card_commit_program(Card& card, ContextId context, const peal_commit_program& request,
                                peal_commit_program_reply* reply) {
  Member* member = own_member(card, context, request.member);
  if (member == nullptr || member->phase != MemberPhase::kActive) return PEAL_STATUS_BAD_GROUP;
  reply->starts = queue::kStarts;
  return queue::commit(card, *member, request, &reply->program);
}

peal_status card_free_program(Card& card, ContextId context, uint32_t program) {
  return queue::free_program(card, context, program);
}

bool card_channel_released(Card& card, RegionId* channels) {
  if (card.released_count == 0) return false;
  *channels = card.released[--card.released_count];
  return true;
}

void card_on_submission(Card& card, ContextId context, const peal_submission& entry, TimeNs now) {
  card.now = now;
  if (!context_is_open(card, context)) return;
  if (p2p::is_submission(entry) || queue::is_start(entry)) {
    const peal_status status = queue::is_start(entry) ? queue::accept_start(card, context, entry)
                                                      : p2p::submit(card, context, entry);
    if (status != PEAL_STATUS_OK) complete_refused(card, context, entry, status);
    finish(card);
    return;
  }
  const peal_status status = accept_entry(card, context, entry);
  if (status != PEAL_STATUS_OK) complete_refused(card, context, entry, status);
  finish(card);
}

void card_on_packet(Card& card, Packet* packet, uint32_t frame_bytes, TimeNs now) {
  card.now = now;
  packet->holds = 1;
  const peal_counter result = receive_frame(card, packet, frame_bytes);
  count(card, result);
  finish(card);
  if (mutated(Mutation::kLeakOnDrop) && result != PEAL_COUNTER_RECEIVED) {
    ++card.packets_held;
    return;
  }
  let_go_of_arrival(card, packet);
}

void card_on_dma_done(Card& card, DmaToken token, bool ok, TimeNs now) {
  card.now = now;
  const DmaDone done = dma_take_done(card, token, ok);
  Member& member = kept(card.members[done.member]);
  const ContextId context = member.context;
  if (done.owner == DmaOwner::kOperation) {
    on_transfer_done(card, member, done);
  } else if (done.owner == DmaOwner::kAddresses) {
    on_addresses(card, done);
  } else if (done.owner == DmaOwner::kQueue) {
    on_queue_dma(card, done);
  } else {
    p2p::on_dma(card, done);
  }
  if (member.phase == MemberPhase::kDying) note_unsettled(card, member);
  finish(card);
  context_try_close(card, context);
  if (card.dma_stalled != 0) dma_retry_stalled(card);
}

void card_on_timer(Card& card, TimeNs now) {
  card.now = now;
  const TimeNs due = card.timers.earliest();
  card.behind_ns = due < now ? now - due : 0;
  lead_turn(card.lead);
  if (due < now && now - due >= card.timeouts.probe_interval_ns) {
    count(card, PEAL_COUNTER_STALLS);
    forgive_stall(card, now - due);
  }
  while (Timer* timer = card.timers.pop_due(now)) {
    switch (timer->kind) {
      case TimerKind::kOperation: {
        Member& member = card.members[timer->member];
        note_depth(member);
        on_operation_timer({card, member, member.operations[timer->slot]});
        break;
      }
      case TimerKind::kMember:
        on_member_timer(card, card.members[timer->member]);
        break;
      case TimerKind::kConnection:
        p2p::on_connection_timer(card, timer->member);
        break;
      case TimerKind::kPointToPoint:
        p2p::on_timer(card);
        break;
      case TimerKind::kCard:
        dma_retry_stalled(card);
        break;
      case TimerKind::kQueues:
        break;  // they have their turn at the end of every entry point
      case TimerKind::kFailures:
        queue::repeat_failures(card);
        break;
      case TimerKind::kQueueWatch:
        queue::watch_awaited(card);
        break;
    }
    finish(card);
  }
}

TimeNs card_next_deadline(const Card& card) { return card.timers.earliest(); }

const uint64_t* card_counters(const Card& card) { return card.counters; }

const char* card_counter_name(peal_counter counter) {
  static constexpr const char* kNames[] = {
#define PEAL_COUNTER_NAME(symbol, name, text) name,
      PEAL_COUNTERS(PEAL_COUNTER_NAME)
#undef PEAL_COUNTER_NAME
  };
  return counter < PEAL_COUNTER_COUNT ? kNames[counter] : "unknown";
}

uint32_t card_sent_blocks(const Card& card) { return card.sent_blocks_held; }

uint32_t card_outstanding(const Card& card, ContextId context) {
  return context < CONFIG_CONTEXTS ? card.contexts[context].outstanding : 0;
}

CardHolds card_holds(const Card& card) {
  uint32_t open = 0;
  uint32_t sent = 0;
  for (const Member& member : members_of(card)) {
    if (member.phase == MemberPhase::kFree) continue;
    for (const Operation& operation : member.operations) {
      open += is_open(operation) ? 1 : 0;
      for (uint16_t i = operation.sent_first; i != 0; i = card.sent_blocks[i - 1].next) ++sent;
    }
  }
  return {card.packets_held, card.dma_in_use, open, sent};
}

}  // namespace peal
