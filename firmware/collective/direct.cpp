// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct.h"

#include <bit>

#include "firmware/base/assert.h"
#include "firmware/collective/direct_landing.h"
#include "firmware/collective/direct_piece.h"
#include "firmware/collective/direct_repair.h"
#include "firmware/collective/direct_sending.h"
#include "firmware/group/early.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/liveness.h"
#include "firmware/group/remote.h"
#include "firmware/operation/landing.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/parts.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/refusal.h"
#include "firmware/wire/transmit.h"

namespace peal::direct {
namespace {

// Ranks that are asked, or watched, at a time.
constexpr uint32_t kAskedAtOnce = 8;

bool piece_is_done(const Scope& scope, const Piece& piece) {
  const auto& sending = own_state<Sending>(piece);
  return sending.kept == scope.member.membership.ranks && piece.arrived == sending.expected &&
         sending.early_count == 0 && piece.waiting == 0 && piece.dma == 0;
}

// Which pieces of the window have not come from this rank, a bit each. Where a loss is known for
// certain, those that should have come before what shows it.
uint64_t missing_from(const Scope& scope, Rank origin) {
  Operation& operation = scope.operation;
  uint64_t missing = 0;
  uint64_t come = 0;
  for (uint32_t i = 0; i < kPieceSlots && operation.base + i < operation.piece_count; ++i) {
    const uint32_t number = operation.base + i;
    if (!exchanges(scope, number, origin)) break;
    const bool here =
        piece_is_open(operation, number) && has_bit(piece_slot(operation, number), origin);
    if (here) come |= uint64_t{1} << i;
    if (!here && i < kPieceWindow) missing |= uint64_t{1} << i;
  }
  const bool before = come != 0 && follows_perhaps(operation.inquiry);
  return before ? missing & (std::bit_floor(come) - 1) : missing;
}

void ask(const Scope& scope, Rank origin, uint64_t missing) {
  auto& [card, member, operation] = scope;
  const auto first = static_cast<uint32_t>(std::countr_zero(missing));
  const peal_nack nack = question(card, missing >> first);
  const SmallPacket what = {.piece = operation.base + first,
                            .origin = static_cast<uint16_t>(origin),
                            .payload = &nack,
                            .length = sizeof(nack)};
  if (send_small_to(card, member, origin, packet_kind(operation, PEAL_PACKET_NACK), what)) {
    count(card, PEAL_COUNTER_SENT_NACK);
  }
}

// Length and number of a block of parts; kPacketGood or why not. What disagrees is refused.
peal_counter check_part(const Scope& scope, const peal_wire_header& header) {
  const Operation& operation = scope.operation;
  if (header.length != cut(operation, header.block_bytes, header.piece)) {
    return PEAL_COUNTER_DROP_LENGTH;
  }
  if (!is_known(operation)) return kPacketGood;
  if (header.block_bytes != part_from(scope, header.origin).bytes) {
    refuse(scope, PEAL_STATUS_MISMATCH, header.sender);
    return PEAL_COUNTER_DROP_SIGNATURE;
  }
  return exchanges(scope, header.piece, header.origin) ? kPacketGood : PEAL_COUNTER_DROP_PIECE;
}

peal_counter check_block(const Scope& scope, const peal_wire_header& header) {
  if (has_parts(scope.operation)) return check_part(scope, header);
  const bool whole = header.length == piece_length(scope.operation, header.piece);
  return whole ? kPacketGood : PEAL_COUNTER_DROP_LENGTH;
}

// Sends own blocks, one piece after the other: others cannot go on before they have the first.
void send_pieces(const Scope& scope) {
  Operation& operation = scope.operation;
  const uint32_t end = operation.base + kPieceSlots;
  for (uint32_t number = operation.base; number < end && number < operation.piece_count; ++number) {
    if (!piece_is_open(operation, number)) continue;
    Piece& piece = piece_slot(operation, number);
    if (piece.own != OwnBlock::kReading) continue;
    send_own(scope, piece, number);
    if (own_state<Sending>(piece).next < scope.member.membership.ranks) return;
  }
}

// Fetches what came early from the channel.
void move_pieces(const Scope& scope) {
  Operation& operation = scope.operation;
  const uint32_t end = operation.base + kPieceSlots;
  for (uint32_t number = operation.base; number < end && number < operation.piece_count; ++number) {
    if (!piece_is_open(operation, number)) continue;
    Piece& piece = piece_slot(operation, number);
    if (own_state<Sending>(piece).early_count > 0) move_early(scope, piece, number);
  }
}

}  // namespace

void open(const Scope& scope, Own own) {
  own_state<Exchange>(scope.operation).own = own;
  open_blocks(scope);
}

void post(const Scope& scope) { expect_addresses(scope.card, scope.member); }

peal_counter on_data(const Scope& scope, Packet* packet) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const peal_wire_header& header = *packet->header;
  if (header.hop != 0) return PEAL_COUNTER_DROP_HOP;
  if (header.fragment != 0) return PEAL_COUNTER_DROP_FRAGMENT;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (header.origin >= self.ranks || header.origin == self.rank) return PEAL_COUNTER_DROP_ORIGIN;
  if (header.origin != header.sender) return PEAL_COUNTER_DROP_SENDER;
  const peal_counter block = check_block(scope, header);
  if (block != kPacketGood) return block;
  Piece* piece = nullptr;
  const peal_counter found = find_piece_of_new(operation, header.piece, header.origin, &piece);
  if (found != kPacketGood) return found;
  if (!land(scope, *piece, packet)) return PEAL_COUNTER_DROP_NO_DMA;
  note_arrival(scope, *piece, header.origin);
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
  for (uint64_t bits = nack.fragments; bits != 0; bits &= bits - 1) {
    const auto i = static_cast<uint32_t>(std::countr_zero(bits));
    const Answer done = answer(scope, header.piece + i, *to);
    repaired |= done == Answer::kRepaired;
    owing |= done == Answer::kNotYet;
  }
  if (!repaired && !owing) return PEAL_COUNTER_DROP_STALE;
  // Silence would cost the asker's patience, whatever the reason.
  if (!repaired) send_not_yet(scope, *to, header, nack, Owed::kByHost);
  return PEAL_COUNTER_RECEIVED;
}

bool on_dma(const Scope& scope, const TransferDone& done) {
  if (!done.ok) return true;
  Piece& piece = piece_slot(scope.operation, done.piece);
  switch (done.step) {
    case kOwnRead:
      if (!is_refused(scope.operation)) on_own_read(scope, piece, done);
      break;
    case kOwnForAll:
      if (!is_refused(scope.operation)) on_read_for_all(scope, piece, done);
      break;
    case kOwnFramed:
      return on_own_framed(scope, piece, done);
    case kOwnKept:
      on_own_kept(scope, piece, done);
      break;
    case kEarlyFramed:
      return on_early_framed(scope, piece, done);
    case kLandEarly:
      note_early(piece, done.detail);
      break;
    case kEarlyRead:
      if (!is_refused(scope.operation)) return on_early_read(scope, done);
      break;
    case kPartsRead:
      if (is_refused(scope.operation)) break;
      if (!parts_on_read(scope, kPartsRead)) return false;
      adopt_parts(scope);
      break;
    default:
      break;
  }
  return true;
}

void advance(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  if (!is_known(operation)) {
    parts_read(scope, kPartsRead);
    return;
  }
  uint32_t base;
  do {
    base = operation.base;
    start_own_pieces(scope, start_own);
    send_pieces(scope);
    // Others wait for the own blocks, and only the host for these.
    move_pieces(scope);
    if (early_waits(operation)) land_early(scope, kLand, is_free, result_address);
    while (operation.base < operation.piece_count && piece_is_open(operation, operation.base) &&
           piece_is_done(scope, piece_slot(operation, operation.base))) {
      ++operation.base;
    }
  } while (operation.base != base);
  if (operation.base == operation.piece_count && operation.dma == 0) operation_finish(scope);
}

// One question for each rank that owes something, of a few at a time. Peers are watched all the
// time: of the dead most are somebody's peers, who waits as well.
void chase(const Scope& scope) {
  auto& [card, member, operation] = scope;
  if (!is_known(operation)) return;
  const Membership& self = member.membership;
  auto& turn = own_state<Exchange>(operation);
  const bool suspects = asks_suspects(operation.inquiry);
  uint32_t visited = 0;
  uint32_t last = turn.way;
  for (uint32_t i = 1; i < self.ranks; ++i) {
    const uint32_t way = 1 + (turn.way + i) % (self.ranks - 1);
    const Rank origin = minus(self.rank, way, self.ranks);
    const uint64_t missing = missing_from(scope, origin);
    if (missing == 0) continue;
    if (visited == kAskedAtOnce) {
      if (peer_entry(self.rank, origin, self.ranks) != kNoPeer) await_peer(card, member, origin);
      continue;
    }
    const bool asked = operation_may_ask(scope, origin);
    if (asked) ask(scope, origin, missing);
    if (suspects && !asked) continue;
    ++visited;
    last = way - 1;
  }
  turn.way = last;
}

}  // namespace peal::direct
