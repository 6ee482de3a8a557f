// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/ring.h"

#include "firmware/collective/allgather/allgather.h"
#include "firmware/collective/allgather/gathering.h"
#include "firmware/collective/allgather/ring_piece.h"
#include "firmware/collective/allgather/ring_questions.h"
#include "firmware/group/early.h"
#include "firmware/operation/landing.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/mover.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal::ring {
namespace {

// Where a transfer goes on.
enum Step : uint8_t {
  kOwnRead,  // own block into a packet
  kLand,     // a packet's payload into the user's buffer
  kKeep,     // the same into the channel, from where it can be asked for
};

// The mover fetches what came before the host's post and found no room to wait in its packet.
bool is_early(const Scope& scope, uint32_t number, uint32_t position) {
  if (!piece_is_open(scope.operation, number)) return false;
  return gathering::is_in(own_state<Blocks>(piece_slot(scope.operation, number)).early, position);
}

constexpr mover::Plan kFetch = {
    .wanted = is_early, .rank_at = gathering::rank_at, .piece_ended = gathering::next_early_piece};

// How many blocks this rank holds back when it passes this one on.
uint8_t note_passed(const Membership& self, Piece& piece, Rank origin) {
  auto& blocks = own_state<Blocks>(piece);
  const uint32_t end = distance_of(self, origin) + 1;
  if (end > blocks.passed) blocks.passed = static_cast<uint16_t>(end);
  return held_back(blocks.passed, piece.arrived - (has_bit(piece, right_of(self)) ? 1u : 0u));
}

// To the right neighbour, unless the block is its own.
void pass_on(const Scope& scope, Packet* packet, Piece& piece, Rank origin, bool summed) {
  auto& [card, member, operation] = scope;
  Membership& self = member.membership;
  const Rank to = right_of(self);
  if (self.ranks == 1 || origin == to) return;
  const uint8_t held = note_passed(self, piece, origin);
  Peer& right = self.peers[right_entry(self)];
  Packet* copy = share_packet(card, packet);
  if (copy == nullptr) {  // its receiver finds that it is missing
    edge_skip(right);
    return;
  }
  const uint32_t number = piece.number - 1;
  const uint32_t length = piece_length(operation, number);
  peal_wire_header* header = copy->header;
  const uint32_t sum =
      summed ? packet->header->payload_crc : payload_sum(card, packet->payload, length);
  address_packet(right.address, packet_kind(operation, PEAL_PACKET_DATA), header);
  header->payload_crc = sum;
  header->piece = number;
  header->origin = static_cast<uint16_t>(origin);
  header->fragment = held;
  header->length = static_cast<uint16_t>(length);
  edge_count(right, header);
  launch_packet(card, copy, true);
  count(card, PEAL_COUNTER_SENT_DATA);
  if (origin != self.rank) count(card, PEAL_COUNTER_FORWARDED);
}

// Own block, or one that has come, into the channel: what the right neighbour has lost of it is
// read there, whoever the user's buffers belong to by then.
void keep(const Scope& scope, Packet* packet, uint32_t number, Rank origin, uint8_t step) {
  auto& [card, member, operation] = scope;
  transfer_write(scope, {.step = step,
                         .piece = number,
                         .host = image_address(member, operation, number, origin),
                         .card = packet->payload,
                         .bytes = piece_length(operation, number),
                         .packet = packet,
                         .detail = origin});
}

void land_at_user(const Scope& scope, Packet* packet, uint32_t number, Rank origin) {
  transfer_write(scope, {.step = kLand,
                         .piece = number,
                         .host = user_address(scope.operation, origin, number),
                         .card = packet->payload,
                         .bytes = piece_length(scope.operation, number),
                         .packet = packet});
}

// Puts a block into the channel, and to the user if the host has posted: else it waits in its
// packet, or for the mover. False: not enough DMA records.
bool land(const Scope& scope, Packet* packet, Piece& piece) {
  auto& [card, member, operation] = scope;
  const uint32_t number = packet->header->piece;
  const Rank origin = packet->header->origin;
  if (packet->header->length == 0) {
    gathering::put_in(own_state<Blocks>(piece).kept, origin);
    return true;
  }
  if (!dma_available(card, is_posted(operation) ? 2 : 1)) return false;
  if (is_posted(operation)) {
    land_at_user(scope, packet, number, origin);
  } else if (!early_keep(scope, packet, piece, origin)) {
    gathering::put_in(own_state<Blocks>(piece).early, origin);
    ++operation.mover.landing;
    keep(scope, packet, number, origin, mover::kLandEarly);
    return true;
  }
  keep(scope, packet, number, origin, kKeep);
  return true;
}

// The own block has been read into the packet.
void on_own_read(const Scope& scope, Packet* packet, uint32_t number) {
  auto& [card, member, operation] = scope;
  const Rank rank = member.membership.rank;
  Piece& piece = piece_slot(operation, number);
  const uint32_t length = piece_length(operation, number);
  if (length > 0 && !gathering::has_dma_or_reads_again(scope, piece, number)) return;
  if (length > 0) {
    keep(scope, packet, number, rank, kKeep);
    if (!operation.command.in_place) land_at_user(scope, packet, number, rank);
  } else {
    gathering::put_in(own_state<Blocks>(piece).kept, rank);
  }
  piece.own = OwnBlock::kPlaced;
  set_bit(piece, rank);
  ++piece.arrived;
  pass_on(scope, packet, piece, rank, false);
}

bool start_own(const Scope& scope, Piece& piece, uint32_t number) {
  return gathering::read_own(scope, piece, number, kOwnRead, on_own_read);
}

void open(const Scope& scope) {
  pieces_open(scope, piece_bytes_for(scope.member.membership.ranks), 0);
}

void post(const Scope& scope) {
  Operation& operation = scope.operation;
  if (operation.block_bytes == 0) return;
  for (uint32_t number = 0; number < kPieceSlots && number < operation.piece_count; ++number) {
    if (!piece_is_open(operation, number) || piece_slot(operation, number).arrived == 0) continue;
    mover::start(operation, 0);
    return;
  }
}

peal_counter on_data(const Scope& scope, Packet* packet) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const peal_wire_header& header = *packet->header;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (header.length != piece_length(operation, header.piece)) return PEAL_COUNTER_DROP_LENGTH;
  if (header.hop != 0) return PEAL_COUNTER_DROP_HOP;
  if (!is_expected(self, header.origin) || header.origin == self.rank) {
    return PEAL_COUNTER_DROP_ORIGIN;
  }
  if (header.sender != left_of(self)) return PEAL_COUNTER_DROP_SENDER;
  Piece* piece = nullptr;
  const peal_counter found = find_piece_of_new(operation, header.piece, header.origin, &piece);
  if (found != kPacketGood) return found;
  if (!land(scope, packet, *piece)) return PEAL_COUNTER_DROP_NO_DMA;
  note_arrival(scope, *piece, header.origin);
  listen(scope, *piece, header);
  pass_on(scope, packet, *piece, header.origin, true);
  return PEAL_COUNTER_RECEIVED;
}

bool on_dma(const Scope& scope, const TransferDone& done) {
  const bool keeps = done.step == kKeep || done.step == mover::kLandEarly;
  if (keeps && done.ok) {
    gathering::put_in(own_state<Blocks>(piece_slot(scope.operation, done.piece)).kept, done.detail);
  }
  if (done.step >= mover::kFirstStep) return mover::on_dma(scope, kFetch, done);
  if (done.step == kOwnRead && done.ok && !is_refused(scope.operation)) {
    on_own_read(scope, done.packet, done.piece);
  }
  return true;
}

void advance(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  // Others wait for the own block, and only the host for what came before the post.
  start_own_pieces(scope, start_own);
  if (early_waits(operation)) {
    land_early(scope, gathering::landing(kLand));
  }
  mover::advance(scope, kFetch);
  while (operation.base < operation.piece_count && piece_is_open(operation, operation.base) &&
         gathering::has_all(scope, piece_slot(operation, operation.base), operation.base)) {
    ++operation.base;
    start_own_pieces(scope, start_own);
  }
  if (operation.base == operation.piece_count && operation.dma == 0) operation_finish(scope);
}

}  // namespace

constinit const AlgorithmFunctions kFunctions = {
    allgather::check, open, post, on_data, nullptr, on_nack, on_dma, advance, chase};

}  // namespace peal::ring
