// SPDX-License-Identifier: BSD-2-Clause
// DMA of an operation: counted in its record, its piece and its member, and gone on with where its
// algorithm says when it is done.
#pragma once

#include "firmware/card_types.h"
#include "firmware/dma/dma.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/refusal.h"
#include "firmware/wire/transmit.h"

namespace peal {

enum class TransferRole : uint8_t {
  kPart,       // of the result: the operation ends when it fails
  kSend,       // image into a packet whose header is ready, which goes out then; detail: peer entry
  kRepair,     // the same for a repair: holds up neither its piece nor its operation; it reads the
               // channel, and whoever gets it later than that has passed the slot knows it as stale
  kSendOwn,    // as kSend, from the user's memory: the operation ends when it fails
  kRepairOwn,  // a repair from there: the operation, though not the piece, waits for it
  kRepairFramed,  // as kRepair, of a block behind its frame (frame.h): goes out if it is what the
                  // packet's header says
  kWhole,         // as kPart, of no piece
};

// A bit for each role.
constexpr uint32_t bit_of(TransferRole role) { return 1u << static_cast<uint32_t>(role); }
inline constexpr uint32_t kApart =
    bit_of(TransferRole::kRepair) | bit_of(TransferRole::kRepairFramed);
inline constexpr uint32_t kOfNoPiece =
    kApart | bit_of(TransferRole::kRepairOwn) | bit_of(TransferRole::kWhole);
constexpr bool holds_operation(TransferRole role) { return (kApart & bit_of(role)) == 0; }
constexpr bool holds_piece(TransferRole role) { return (kOfNoPiece & bit_of(role)) == 0; }

struct TransferRequest {
  TransferRole role = TransferRole::kPart;
  uint8_t step = 0;  // given back to the algorithm (struct TransferDone)
  uint32_t piece;
  HostAddress host;
  uint8_t* card;  // memory on the card: a payload or staging
  uint32_t bytes;
  Packet* packet = nullptr;  // held until the transfer is done
  uint32_t detail = 0;
};

// A packet to read into, when there are so many DMA records besides, and half of all are free for
// what arrives. Null (counted) when not.
[[nodiscard]] inline Packet* take_bounce(Card& card, uint32_t records) {
  return records == 0 || dma_may_begin(card, records) ? take_packet(card) : nullptr;
}
// Own blocks of direct exchanges leave half of the card's packets to what arrives, which is lost
// where there is none, and to what was lost. docs/decisions/0054
constexpr uint32_t own_share(uint32_t buffers) { return buffers == 0 ? ~0u : buffers / 2; }
[[nodiscard]] inline Packet* take_for_own(Card& card, uint32_t records) {
  if (card.packets_held <= card.own_most) return take_bounce(card, records);
  count(card, PEAL_COUNTER_NO_PACKET);
  return nullptr;
}
// The same for what the operation goes on with: without, it is starved, and tries again soon.
[[nodiscard]] Packet* take_bounce_or_starve(const Scope& scope, uint32_t records = 1);
// Only the records.
[[nodiscard]] inline bool has_dma_or_starves(const Scope& scope, uint32_t records = 1) {
  if (dma_suffices(scope.card, records)) return true;
  operation_starved(scope);
  return false;
}

// Transfers of a piece that may be under way when it begins another one: engines work in order, and
// what others wait for must not wait for long.
inline constexpr uint32_t kPieceTransfers = 8;
// Of own blocks of a direct exchange, as many as the port makes most of: none waits for another.
constexpr uint32_t transfers_most(uint32_t batch) {
  return batch > kPieceTransfers ? batch : kPieceTransfers;
}

// Takes a DMA record, which the caller has made sure of (dma_available()). In line, for the few
// transfers that every operation makes: most of what they ask for is known there.
[[gnu::always_inline]] inline void transfer_start(const Scope& scope,
                                                  const TransferRequest& request, DmaKind kind) {
  auto& [card, member, operation] = scope;
  ++member.dma;
  if (holds_operation(request.role)) ++operation.dma;
  if (holds_piece(request.role)) ++piece_slot(operation, request.piece).dma;
  dma_start(card,
            {.host = request.host,
             .card = request.card,
             .bytes = request.bytes,
             .packet = request.packet,
             .tag = {.member = member.index,
                     .owner = DmaOwner::kOperation,
                     .slot = operation.timer.slot,
                     .role = static_cast<uint8_t>(request.role),
                     .step = request.step,
                     .piece = request.piece,
                     .detail = request.detail,
                     .sequence = operation.sequence}},
            kind);
}

// The same, of all others.
void transfer_read(const Scope& scope, const TransferRequest& request);
void transfer_write(const Scope& scope, const TransferRequest& request);

// One that is no part of a result, or whose slot serves another operation by now.
void on_other_done(const Scope& scope, const DmaDone& done, bool live);
// Whose it was goes on, unless its slot serves another operation by now. In line: the card's one
// entry point for them calls it.
[[gnu::always_inline]] inline void on_transfer_done(Card& card, Member& member,
                                                    const DmaDone& done) {
  Operation& operation = kept(member.operations[done.slot]);
  const Scope scope = {card, member, operation};
  // It may outlive its operation: a repair under way when the slot was recycled.
  const bool live = operation.phase != OperationPhase::kFree && operation.sequence == done.sequence;
  --member.dma;
  if (static_cast<TransferRole>(done.role) != TransferRole::kPart || !live) {
    return on_other_done(scope, done, live);
  }
  --operation.dma;
  --piece_slot(operation, done.piece).dma;
  const bool may_advance = operation.algorithm->does.on_dma(scope, done);
  if (done.packet != nullptr) unhold_packet(card, done.packet);
  if (!done.ok) refuse(scope, PEAL_STATUS_DMA_FAULT, member.membership.rank);
  if (may_advance) operation_advance(scope);
}

}  // namespace peal
