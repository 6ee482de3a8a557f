// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/card.h"

#include <cstring>

#include "firmware/base/mutation.h"
#include "firmware/card_types.h"
#include "firmware/collective/allgather/broadcast_all.h"
#include "firmware/collective/allgather/doubling.h"
#include "firmware/dma/dma.h"
#include "firmware/group/liveness.h"
#include "firmware/group/member.h"
#include "firmware/group/verdict.h"
#include "firmware/host/context.h"
#include "firmware/operation/command_check.h"
#include "firmware/operation/mover.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/repair.h"
#include "firmware/receive.h"
#include "firmware/wire/transmit.h"

namespace peal {
namespace {

// A DMA of a live operation is done: what it was for goes on.
void on_operation_dma(const Scope& scope, DmaRecord& record) {
  Operation& operation = scope.operation;
  Piece& piece = piece_slot(operation, record.piece);
  const bool doubles = operation.algorithm == PEAL_ALGORITHM_RECURSIVE_DOUBLING;
  switch (record.kind) {
    case DmaKind::kOwnRead:
      if (operation.refused) break;
      if (doubles) {
        doubling::on_own_read(scope, record.packet, record.piece);
      } else {
        broadcast_all::on_own_read(scope, record.packet, record.piece);
      }
      break;
    case DmaKind::kOwnStage:
      doubling::on_own_staged(scope, record.piece);
      break;
    case DmaKind::kLand:
      if (doubles) doubling::on_landed(scope, record.piece, record.aux);
      break;
    case DmaKind::kLandEarly:
      --operation.early_dma;
      break;
    case DmaKind::kRetain:
      piece.retained = true;
      break;
    case DmaKind::kDeliver:
      piece.delivered = true;
      break;
    case DmaKind::kMoveWrite:
      mover::on_written(scope);
      break;
    case DmaKind::kSend:
    case DmaKind::kMoveRead:
      break;
  }
}

// A repair that cannot be read is asked for again; anything else is part of the result.
bool is_vital(DmaKind kind) { return kind != DmaKind::kSend; }

void finish_dma(Card& card, DmaRecord& record, bool ok) {
  Member& member = card.members[record.member];
  Operation& operation = member.operations[record.slot];
  const Scope scope = {card, member, operation};
  // The record may outlive its operation: a repair under way when the place was recycled.
  const bool live =
      operation.phase != OperationPhase::kFree && operation.sequence == record.sequence;
  const DmaRecord done = record;
  if (ok && live && record.kind == DmaKind::kMoveRead && !operation.refused) {
    mover::on_read(scope, record);
    return;
  }
  dma_free(card, record);
  --member.dma;
  if (live && is_part_of_operation(done)) {
    --operation.dma;
    --piece_slot(operation, done.piece).dma;
  }
  DmaRecord copy = done;
  const bool sends = done.kind == DmaKind::kSend && ok && !(live && operation.refused);
  if (sends) {
    on_send_read(scope, copy);
  } else if (live && ok) {
    on_operation_dma(scope, copy);
  } else if (live && done.kind == DmaKind::kLandEarly) {
    --operation.early_dma;
  }
  if (!sends && done.packet != nullptr) unhold_packet(card, done.packet);
  if (!live) return;
  if (!ok && is_vital(done.kind)) refuse(scope, PEAL_STATUS_DMA_FAULT, member.membership.rank);
  operation_advance(scope);
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
  card->timers = {card->timer_entries, kTimers, 0};
  card->retry_timer.kind = TimerKind::kCard;
  card->repairs = pace_start(timeouts, 0, kRepairsPerInterval);
  // Handles begin elsewhere in every life of a card.
  card->first_generation = static_cast<uint16_t>(identity.incarnation * 0x9e3779b1u >> 16);
  for (Member& member : card->members) member.generation = card->first_generation;
  dma_init(*card);
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
  device->channel_bytes = CONFIG_CHANNEL_BYTES;
  device->geometry = geometry_hash();
  device->dead_timeout_us = static_cast<uint32_t>(card.timeouts.dead_ns / 1000);
}

void card_on_submission(Card& card, ContextId context, const peal_submission& entry, TimeNs now) {
  card.now = now;
  if (context >= CONFIG_CONTEXTS || card.contexts[context].phase != ContextPhase::kOpen) return;
  Member* member = nullptr;
  Command command;
  peal_status status = check_command(card, context, entry, &member, &command);
  if (status == PEAL_STATUS_OK) {
    command.accepted_ns = now;
    status = accept_command(card, *member, command);
  }
  if (status == PEAL_STATUS_OK) return;
  count(card, PEAL_COUNTER_COMMANDS_REFUSED);
  peal_completion refusal = {};
  refusal.cookie = entry.cookie;
  refusal.sequence = entry.sequence;
  refusal.member = entry.member;
  refusal.failed_rank = PEAL_NO_RANK;
  refusal.status = static_cast<uint16_t>(status);
  refusal.opcode = entry.opcode;
  card.port->complete(context, refusal);
}

void card_on_packet(Card& card, Packet* packet, uint32_t frame_bytes, TimeNs now) {
  card.now = now;
  ++card.packets_held;
  packet->holds = 1;
  const peal_counter result = receive_packet(card, packet, frame_bytes);
  count(card, result);
  if (mutated(Mutation::kLeakOnDrop) && result != PEAL_COUNTER_RECEIVED) return;
  unhold_packet(card, packet);
}

void card_on_dma_done(Card& card, DmaToken token, bool ok, TimeNs now) {
  card.now = now;
  PEAL_ASSERT(token < CONFIG_DMA_RECORDS && card.dma[token].in_use);
  DmaRecord& record = card.dma[token];
  Member& member = card.members[record.member];
  const ContextId context = member.context;
  if (!ok) count(card, PEAL_COUNTER_DMA_FAULT);
  finish_dma(card, record, ok);
  if (member.phase == MemberPhase::kDying && member.dma == 0) release_member(card, member);
  context_try_close(card, context);
  if (card.dma_stalled != 0) dma_retry_stalled(card);
}

void card_on_timer(Card& card, TimeNs now) {
  card.now = now;
  const TimeNs due = card.timers.earliest();
  if (due < now && now - due >= card.timeouts.probe_interval_ns) {
    count(card, PEAL_COUNTER_STALLS);
    forgive_stall(card, now - due);
  }
  while (Timer* timer = card.timers.pop_due(now)) {
    Member& member = card.members[timer->member];
    switch (timer->kind) {
      case TimerKind::kOperation:
        on_operation_timer(card, member, member.operations[timer->slot]);
        break;
      case TimerKind::kMember:
        on_member_timer(card, member);
        break;
      case TimerKind::kCard:
        dma_retry_stalled(card);
        break;
    }
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

uint32_t card_outstanding(const Card& card, ContextId context) {
  return context < CONFIG_CONTEXTS ? card.contexts[context].outstanding : 0;
}

CardHolds card_holds(const Card& card) {
  uint32_t open = 0;
  for (const Member& member : card.members) {
    if (member.phase == MemberPhase::kFree) continue;
    for (const Operation& operation : member.operations) {
      open +=
          operation.phase == OperationPhase::kEarly || operation.phase == OperationPhase::kRunning
              ? 1
              : 0;
    }
  }
  return {card.packets_held, card.dma_in_use, open};
}

}  // namespace peal
