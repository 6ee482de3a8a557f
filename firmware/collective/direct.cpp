// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct.h"

#include <bit>

#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/collective/direct_blocks.h"
#include "firmware/collective/direct_gone_on.h"
#include "firmware/collective/direct_landing.h"
#include "firmware/collective/direct_pair.h"
#include "firmware/collective/direct_progress.h"
#include "firmware/collective/direct_questions.h"
#include "firmware/collective/direct_repair.h"
#include "firmware/collective/direct_sending.h"
#include "firmware/dma/dma.h"
#include "firmware/group/by_rank.h"
#include "firmware/group/early.h"
#include "firmware/group/remote.h"
#include "firmware/operation/lead.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/parts.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/refusal.h"
#include "firmware/wire/transmit.h"

namespace peal::direct {
namespace {

// Length and number of a block of parts; kPacketGood or why not. What disagrees is refused.
[[gnu::noinline]] peal_counter check_part(const Scope& scope, const Pair& pair,
                                          const peal_wire_header& header) {
  const Operation& operation = scope.operation;
  if (header.length != cut(operation, header.block_bytes, header.piece)) {
    return PEAL_COUNTER_DROP_LENGTH;
  }
  if (!is_known(operation)) return kPacketGood;
  if (header.block_bytes != part_from(scope, header.origin).bytes) {
    refuse(scope, PEAL_STATUS_MISMATCH, header.sender);
    return PEAL_COUNTER_DROP_SIGNATURE;
  }
  return exchanges(pair, header.piece) ? kPacketGood : PEAL_COUNTER_DROP_PIECE;
}

peal_counter check_block(const Scope& scope, const Pair& pair, const peal_wire_header& header) {
  if (has_parts(scope.operation)) return check_part(scope, pair, header);
  const bool whole = header.length == piece_length(scope.operation, header.piece);
  return whole ? kPacketGood : PEAL_COUNTER_DROP_LENGTH;
}

// The pair's piece that a block is new to: kPacketGood, or why not.
peal_counter check_new(const Operation& operation, const Pair& pair, uint32_t number) {
  if (operation.phase == OperationPhase::kFinished || number < pair.base) {
    return PEAL_COUNTER_DUPLICATE;
  }
  if (number - pair.base >= kPieceSlots) return PEAL_COUNTER_DROP_PIECE;
  return (pair.come & bit_in(pair, number)) != 0 ? PEAL_COUNTER_DUPLICATE : kPacketGood;
}

[[gnu::noinline]] void end(const Scope& scope) {
  dma_take_back(scope);
  operation_finish(scope);
}

void end_if_over(const Scope& scope) {
  Operation& operation = scope.operation;
  if (own_state<Exchange>(operation).left == 0 && operation.dma == 0) end(scope);
}

// Others wait for the own blocks, and only the host for what waits; which lets pairs go on.
[[gnu::noinline]] void go_on_with_pairs(const Scope& scope) {
  send_own(scope);
  if (is_any(scope, pairs_of(scope).stored)) move_early(scope);
  if (early_waits(scope.operation)) {
    land_waiting(scope);
    send_own(scope);
  }
  end_if_over(scope);
}

}  // namespace

void open(const Scope& scope, Own own, uint32_t reserved_bytes) {
  auto& exchange = own_state<Exchange>(scope.operation);
  exchange.own = own;
  exchange.pairs = pairs_at(scope.member, scope.operation.timer.slot);
  open_blocks(scope, reserved_bytes);
  open_pairs(scope);
}

void post(const Scope& scope) {
  expect_addresses(scope.card, scope.member);
  if (!has_parts(scope.operation)) begin_pairs(scope);
  ask_soon_again(scope);
}

peal_counter on_data(const Scope& scope, Packet* packet) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const peal_wire_header& header = *packet->header;
  if (header.hop != 0) return PEAL_COUNTER_DROP_HOP;
  if (header.fragment != 0) return PEAL_COUNTER_DROP_FRAGMENT;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (header.origin >= self.ranks || header.origin == self.rank) return PEAL_COUNTER_DROP_ORIGIN;
  if (header.origin != header.sender) return PEAL_COUNTER_DROP_SENDER;
  const uint32_t way = way_of(self, header.origin);
  const Pair& pair = kept(pair_at(scope, way));
  const peal_counter is_new = check_new(operation, pair, header.piece);
  if (is_new != kPacketGood) return is_new;
  const peal_counter block = check_block(scope, pair, header);
  if (block != kPacketGood) return block;
  const PieceBits bit = bit_in(pair, header.piece);
  const auto before = static_cast<PieceBits>((bit - 1) & ~(pair.come | pair.lost));
  // (What has no bytes is not read before it leaves, and overtakes what is.)
  const bool in_order = header.length != 0 || self.losses;
  if (before != 0 && in_order) note_lost(scope, way, before);
  if (!land(scope, way, packet)) {
    note_lost(scope, way, bit);
    return PEAL_COUNTER_DROP_NO_DMA;
  }
  if (!is_posted(operation)) count(card, PEAL_COUNTER_EARLY_DATA);
  const bool found = (pair.lost & bit) != 0;
  if (!is_posted(operation) && !has_come(pair)) note_gone_on(scope, way);
  note_come(scope, way, header.piece);
  if (found) {
    const bool asked = pair_at(scope, way).asked;
    if (asked && (header.flags & PEAL_PACKET_REPAIR) == 0) note_overtaken(member);
    pair_at(scope, way).asked = false;
    ask_soon_again(scope);
  }
  lead_returned(card.lead);
  operation_progressed(scope);
  return PEAL_COUNTER_RECEIVED;
}

peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack) {
  auto& [card, member, operation] = scope;
  if (header.hop != 0) return PEAL_COUNTER_DROP_HOP;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (header.origin != member.membership.rank) return PEAL_COUNTER_DROP_ORIGIN;
  const uint32_t left = operation.piece_count - header.piece;
  const uint32_t most = left < kPieceWindow ? left : kPieceWindow;
  if (nack.fragments == 0 || nack.fragments >> most != 0) return PEAL_COUNTER_DROP_FRAGMENT;
  const peal_peer_address* to = find_address(card, member, header.sender);
  PEAL_ASSERT(to != nullptr);  // by it the sender was known
  bool repaired = false;
  bool owing = false;
  bool held = false;
  peal_wire_header named = header;  // in the answer: the first piece that cannot be sent again
  for (uint64_t bits = nack.fragments; bits != 0; bits &= bits - 1) {
    const auto i = static_cast<uint32_t>(std::countr_zero(bits));
    const Answer done = answer(scope, header.piece + i, *to);
    repaired |= done == Answer::kRepaired;
    owing |= done == Answer::kNotYet;
    if (done == Answer::kHeld && !held) {
      held = true;
      named.piece = header.piece + i;
    }
  }
  if (!repaired && !owing && !held) return PEAL_COUNTER_DROP_STALE;
  if (owing) {
    const auto pieces = static_cast<uint32_t>(std::bit_width(nack.fragments));
    note_asked_for(scope, way_of(member.membership, header.sender), header.piece + pieces - 1);
  }
  // Silence would cost the asker's patience, whatever the reason.
  if (held || !repaired) {
    send_not_yet(scope, *to, named, nack, held ? Owed::kAgain : Owed::kByHost);
  }
  return PEAL_COUNTER_RECEIVED;
}

bool on_dma(const Scope& scope, const TransferDone& done) {
  if (!done.ok) return true;
  switch (done.step) {
    case kOwnRead:
      if (!is_refused(scope.operation)) on_own_read(scope, done);
      break;
    case kOwnForAll:
      if (!is_refused(scope.operation)) on_read_for_all(scope, done);
      break;
    case kOwnFramed:
      return on_own_framed(scope, done);
    case kOwnKept:
      on_own_kept(scope, done);
      break;
    case kLand:
      --own_state<Exchange>(scope.operation).landing;
      break;
    case kEarlyFramed:
      return on_early_framed(scope, done);
    case kLandEarly:
      note_early(scope, done.detail, done.piece);
      break;
    case kEarlyRead:
      if (!is_refused(scope.operation)) on_early_read(scope, done);
      break;
    case kPartsRead:
      if (is_refused(scope.operation)) break;
      if (!parts_on_read(scope, kPartsRead)) return false;
      if (adopt_parts(scope)) begin_pairs(scope);
      break;
    default:
      break;
  }
  return true;
}

// Most that comes or is done leaves nothing to go on with, which is one look.
void advance(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  if (!is_known(operation)) return parts_read(scope, kPartsRead);
  const Pairs& pairs = pairs_of(scope);
  if (is_any(scope, pairs.ready) || is_any(scope, pairs.stored) || early_waits(operation)) {
    return go_on_with_pairs(scope);
  }
  end_if_over(scope);
}

}  // namespace peal::direct
