// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/doubling.h"

#include <bit>
#include <cstring>

#include "firmware/base/assert.h"
#include "firmware/base/mutation.h"
#include "firmware/collective/allgather/allgather.h"
#include "firmware/collective/allgather/schedule.h"
#include "firmware/group/inquiry.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/mover.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/repair.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/transmit.h"

namespace peal::doubling {
namespace {

// Where a transfer goes on.
enum Goal : uint8_t {
  kOwnRead,   // own block into a packet
  kOwnStage,  // own block into staging
  kOwnPlace,  // own block into the image
  kLand,      // a packet's payload into the image
};

// How far the steps of a piece are. Its bits are fragments that have come, a word per step.
struct Steps {
  uint8_t sent;
  uint8_t fragments_sent;      // of the step that is being sent
  uint8_t landed[kRoundsMax];  // fragments of a step that are in the image
};

// The mover takes the whole image to the user, and back into the order of ranks.
bool is_wanted(const Scope& /*scope*/, uint32_t /*piece*/, uint32_t /*position*/) { return true; }

Rank rank_at(const Membership& self, uint32_t position) {
  return schedule::rank_at(position, self.rank, self.ranks);
}

bool image_has_left(const Scope& scope) {
  Mover& mover = scope.operation.mover;
  if (mover.in_flight > 0) return false;
  piece_slot(scope.operation, mover.piece).delivery = Delivery::kDelivered;
  mover.active = false;
  return true;
}

constexpr mover::Plan kDeliverImage = {
    .wanted = is_wanted, .rank_at = rank_at, .piece_ended = image_has_left};

schedule::Step step_of(const Scope& scope, uint32_t k) {
  const Membership& self = scope.member.membership;
  return schedule::step(k, self.rank, self.ranks);
}

uint32_t fragment_count(const Operation& operation, uint32_t number, uint32_t blocks) {
  const uint32_t bytes = blocks * piece_length(operation, number);
  return bytes == 0 ? 1 : (bytes + CONFIG_MTU_BYTES - 1) / CONFIG_MTU_BYTES;
}

uint32_t fragment_bytes(const Operation& operation, uint32_t number, uint32_t blocks,
                        uint32_t fragment) {
  const uint32_t left = blocks * piece_length(operation, number) - fragment * CONFIG_MTU_BYTES;
  return left < CONFIG_MTU_BYTES ? left : CONFIG_MTU_BYTES;
}

bool send_fragment(const Scope& scope, uint32_t number, uint32_t k, uint32_t fragment,
                   const peal_peer_address& to, bool repair) {
  const schedule::Step step = step_of(scope, k);
  const ImagePart part = {number, step.send_first, fragment * CONFIG_MTU_BYTES,
                          fragment_bytes(scope.operation, number, step.blocks, fragment)};
  return send_from_image(scope, part,
                         {.origin = scope.member.membership.rank,
                          .hop = static_cast<uint8_t>(k),
                          .fragment = static_cast<uint8_t>(fragment)},
                         to, repair);
}

bool step_is_complete(const Scope& scope, const Piece& piece, uint32_t number, uint32_t k) {
  return own_state<Steps>(piece).landed[k] >=
         fragment_count(scope.operation, number, step_of(scope, k).blocks);
}

// Steps whose blocks are all in the image, from the first.
uint32_t steps_received(const Scope& scope, const Piece& piece, uint32_t number) {
  uint32_t k = 0;
  while (k < scope.member.membership.rounds && step_is_complete(scope, piece, number, k)) ++k;
  return k;
}

bool start_own(const Scope& scope, Piece& piece, uint32_t number) {
  auto& [card, member, operation] = scope;
  const uint32_t length = piece_length(operation, number);
  const uint32_t own = schedule::own_position(member.membership.rank, member.membership.ranks);
  const HostAddress from = own_address(operation, number);
  if (length == 0) {
    piece.own = OwnBlock::kPlaced;
    return true;
  }
  if (!dma_available(card, 2)) {
    count(card, PEAL_COUNTER_NO_DMA_RECORD);
    return false;
  }
  if (is_staged(operation)) {
    transfer_read(scope, {.step = kOwnStage,
                          .piece = number,
                          .host = from,
                          .card = staging_address(member, operation, own),
                          .bytes = length});
  } else {
    Packet* packet = take_packet(card);
    if (packet == nullptr) return false;
    transfer_read(scope, {.step = kOwnRead,
                          .piece = number,
                          .host = from,
                          .card = packet->payload,
                          .bytes = length,
                          .packet = packet});
  }
  piece.own = OwnBlock::kReading;
  return true;
}

// Sends every step whose blocks are together.
void send_steps(const Scope& scope, Piece& piece, uint32_t number) {
  const Membership& self = scope.member.membership;
  if (piece.own != OwnBlock::kPlaced) return;
  auto& steps = own_state<Steps>(piece);
  const uint32_t received = steps_received(scope, piece, number);
  while (steps.sent < self.rounds && steps.sent <= received) {
    const schedule::Step step = step_of(scope, steps.sent);
    const peal_peer_address& to = self.peers[peer_entry(self.rank, step.to, self.ranks)].address;
    const uint32_t fragments = fragment_count(scope.operation, number, step.blocks);
    while (steps.fragments_sent < fragments) {
      if (!send_fragment(scope, number, steps.sent, steps.fragments_sent, to, false)) {
        operation_starved(scope);
        return;
      }
      ++steps.fragments_sent;
    }
    ++steps.sent;
    steps.fragments_sent = 0;
  }
}

// A staged result: to the user in one write (two where Bruck's order must be turned back), and
// to the channel in one, for late NACKs.
void deliver_staged(const Scope& scope, Piece& piece, uint32_t number) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const uint32_t length = piece_length(operation, number);
  if (!dma_available(card, 3)) {
    count(card, PEAL_COUNTER_NO_DMA_RECORD);
    operation_starved(scope);
    return;
  }
  piece.delivery = Delivery::kDelivering;
  const uint32_t first = schedule::rotated(self.ranks) ? self.ranks - self.rank : self.ranks;
  const Rank first_rank = schedule::rank_at(0, self.rank, self.ranks);
  transfer_write(scope, {.step = mover::kDeliver,
                         .piece = number,
                         .host = user_address(operation, first_rank, number),
                         .card = staging_address(member, operation, 0),
                         .bytes = first * length});
  if (first < self.ranks) {
    transfer_write(scope, {.step = mover::kDeliver,
                           .piece = number,
                           .host = user_address(operation, 0, number),
                           .card = staging_address(member, operation, first),
                           .bytes = (self.ranks - first) * length});
  }
  transfer_write(scope, {.step = mover::kRetain,
                         .piece = number,
                         .host = image_address(member, operation, number, 0),
                         .card = staging_address(member, operation, 0),
                         .bytes = self.ranks * length});
}

bool piece_is_done(const Scope& scope, Piece& piece, uint32_t number) {
  Operation& operation = scope.operation;
  const uint32_t rounds = scope.member.membership.rounds;
  if (piece.own != OwnBlock::kPlaced || own_state<Steps>(piece).sent < rounds ||
      steps_received(scope, piece, number) < rounds || piece.dma > 0) {
    return false;
  }
  if (piece_length(operation, number) == 0) return true;
  if (piece.delivery == Delivery::kDelivered) return true;
  if (piece.delivery == Delivery::kGathering) {
    if (is_staged(operation)) {
      deliver_staged(scope, piece, number);
    } else {
      piece.delivery = Delivery::kDelivering;
      mover::start(operation, number);
      mover::advance(scope, kDeliverImage);
    }
  }
  return piece.delivery == Delivery::kDelivered && piece.dma == 0;
}

void open(const Scope& scope) {
  pieces_open(scope, piece_bytes_for(scope.member.membership.ranks), CONFIG_STAGING_BYTES);
}

void post(const Scope& /*scope*/) {}

peal_counter on_data(const Scope& scope, Packet* packet) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const peal_wire_header& header = *packet->header;
  if (header.hop >= self.rounds) return PEAL_COUNTER_DROP_HOP;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  const schedule::Step step = step_of(scope, header.hop);
  if (!is_expected(self, header.origin) || header.origin == self.rank) {
    return PEAL_COUNTER_DROP_ORIGIN;
  }
  if (header.sender != step.from || header.origin != header.sender) return PEAL_COUNTER_DROP_SENDER;
  if (header.fragment >= fragment_count(operation, header.piece, step.blocks)) {
    return PEAL_COUNTER_DROP_FRAGMENT;
  }
  if (header.length != fragment_bytes(operation, header.piece, step.blocks, header.fragment)) {
    return PEAL_COUNTER_DROP_LENGTH;
  }
  if (operation.phase == OperationPhase::kFinished || header.piece < operation.base) {
    return PEAL_COUNTER_DUPLICATE;
  }
  Piece* piece = piece_open(operation, header.piece);
  if (piece == nullptr) return PEAL_COUNTER_DROP_PIECE;
  const uint64_t bit = uint64_t{1} << header.fragment;
  if ((piece->bits[header.hop] & bit) != 0 && !mutated(Mutation::kDuplicateAccepted)) {
    return PEAL_COUNTER_DUPLICATE;
  }
  const uint32_t offset = header.fragment * CONFIG_MTU_BYTES;
  if (header.length == 0 || is_staged(operation)) {
    if (header.length > 0) {
      std::memcpy(staging_address(member, operation, step.receive_first, offset), packet->payload,
                  header.length);
      count(card, PEAL_COUNTER_STAGED);
    }
    ++own_state<Steps>(*piece).landed[header.hop];
  } else {
    if (!dma_available(card, 1)) return PEAL_COUNTER_DROP_NO_DMA;
    transfer_write(
        scope, {.step = kLand,
                .piece = header.piece,
                .host = image_address(member, operation, header.piece, step.receive_first, offset),
                .card = packet->payload,
                .bytes = header.length,
                .packet = packet,
                .detail = header.hop});
  }
  piece->bits[header.hop] |= bit;
  if (!is_posted(operation)) count(card, PEAL_COUNTER_EARLY_DATA);
  operation_progressed(scope);
  return PEAL_COUNTER_RECEIVED;
}

bool on_dma(const Scope& scope, const TransferDone& done) {
  auto& [card, member, operation] = scope;
  if (done.step >= mover::kFirstStep) return mover::on_dma(scope, kDeliverImage, done);
  if (!done.ok) return true;
  Piece& piece = piece_slot(operation, done.piece);
  switch (done.step) {
    case kOwnRead:
      if (is_refused(operation)) break;
      // The read has just given its record back, so there is one.
      transfer_write(scope, {.step = kOwnPlace,
                             .piece = done.piece,
                             .host = image_address(member, operation, done.piece,
                                                   schedule::own_position(member.membership.rank,
                                                                          member.membership.ranks)),
                             .card = done.packet->payload,
                             .bytes = done.bytes,
                             .packet = done.packet});
      break;
    case kOwnStage:
    case kOwnPlace:
      piece.own = OwnBlock::kPlaced;
      break;
    case kLand:
      ++own_state<Steps>(piece).landed[done.detail];
      break;
    default:
      break;
  }
  return true;
}

void advance(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  start_own_pieces(scope, start_own);
  for (uint32_t number = operation.base;
       number < operation.base + kPieceSlots && number < operation.piece_count; ++number) {
    if (piece_is_open(operation, number)) send_steps(scope, piece_slot(operation, number), number);
  }
  mover::advance(scope, kDeliverImage);
  const uint32_t base = operation.base;
  while (operation.base < operation.piece_count && piece_is_open(operation, operation.base) &&
         piece_is_done(scope, piece_slot(operation, operation.base), operation.base)) {
    ++operation.base;
  }
  if (operation.base == operation.piece_count && operation.dma == 0) {
    operation_finish(scope);
  } else if (operation.base != base) {
    advance(scope);  // the window moved: at most 2W deep
  }
}

void chase(const Scope& scope) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  if (!is_posted(operation)) return;
  const uint32_t last = operation.base + kPieceWindow;
  uint32_t partners = 0;  // that were asked for an earlier piece, by step
  for (uint32_t number = operation.base; number < last && number < operation.piece_count;
       ++number) {
    Piece* piece = piece_open(operation, number);
    PEAL_ASSERT(piece != nullptr);
    for (uint32_t k = 0; k < self.rounds; ++k) {
      const schedule::Step step = step_of(scope, k);
      const uint32_t fragments = fragment_count(operation, number, step.blocks);
      const uint64_t all = fragments == 64 ? ~uint64_t{0} : (uint64_t{1} << fragments) - 1;
      uint64_t missing = all & ~piece->bits[k];
      // Of a step that has begun to come, what is behind its last packet is on its way.
      if (asks_suspects(operation.inquiry) && piece->bits[k] != 0) {
        missing &= std::bit_floor(piece->bits[k]) - 1;
      }
      if (missing == 0) continue;
      if ((partners >> k & 1) != 0 && !asks_suspects(operation.inquiry)) break;
      partners |= 1u << k;
      const peal_peer_address& to =
          self.peers[peer_entry(self.rank, step.from, self.ranks)].address;
      if (!operation_may_ask(scope, to.rank)) {
        if (asks_suspects(operation.inquiry)) continue;
        break;  // later steps wait for this one anyway
      }
      const peal_nack nack = question(card, missing);
      const SmallPacket what = {.piece = number,
                                .origin = to.rank,
                                .hop = static_cast<uint8_t>(k),
                                .payload = &nack,
                                .length = sizeof(nack)};
      if (send_small(card, self, to, packet_kind(operation, PEAL_PACKET_NACK), what)) {
        count(card, PEAL_COUNTER_SENT_NACK);
      }
      break;
    }
  }
}

peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  if (header.hop >= self.rounds) return PEAL_COUNTER_DROP_HOP;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  const schedule::Step step = step_of(scope, header.hop);
  if (header.sender != step.to) return PEAL_COUNTER_DROP_SENDER;
  const uint32_t fragments = fragment_count(operation, header.piece, step.blocks);
  if (fragments < 64 && (nack.fragments >> fragments) != 0) return PEAL_COUNTER_DROP_FRAGMENT;
  const peal_peer_address& to = self.peers[peer_entry(self.rank, step.to, self.ranks)].address;
  uint64_t available = 0;
  if (piece_is_open(operation, header.piece)) {
    const auto& steps = own_state<Steps>(piece_slot(operation, header.piece));
    if (header.hop < steps.sent) {
      available = ~uint64_t{0};
    } else if (header.hop == steps.sent) {
      available = (uint64_t{1} << steps.fragments_sent) - 1;
    }
  }
  const uint64_t resend = nack.fragments & available;
  bool sent = false;
  for (uint32_t fragment = 0; fragment < fragments; ++fragment) {
    if ((resend >> fragment & 1) == 0) continue;
    if (!may_repair(card)) break;
    if (!send_fragment(scope, header.piece, header.hop, fragment, to, true)) break;
    sent = true;
  }
  // Silence would cost the asker's patience, whatever the reason.
  if (!sent) send_not_yet(scope, to, header, nack, Owed::kByHost);
  return PEAL_COUNTER_RECEIVED;
}

}  // namespace

constinit const AlgorithmFunctions kFunctions = {
    allgather::check, open, post, on_data, nullptr, on_nack, on_dma, advance, chase};

}  // namespace peal::doubling
