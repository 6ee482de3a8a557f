// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/broadcast_all.h"

#include <cstring>

#include "firmware/base/mutation.h"
#include "firmware/collective/allgather/allgather.h"
#include "firmware/collective/allgather/broadcast_all_answers.h"
#include "firmware/collective/allgather/broadcast_all_blocks.h"
#include "firmware/collective/allgather/broadcast_all_questions.h"
#include "firmware/collective/allgather/broadcast_all_repair.h"
#include "firmware/collective/allgather/gathering.h"
#include "firmware/collective/hopping.h"
#include "firmware/group/early.h"
#include "firmware/group/liveness.h"
#include "firmware/operation/landing.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/mover.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/transfer.h"
#include "firmware/operation/usual.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal::broadcast_all {
namespace {

// Where a transfer goes on.
enum Step : uint8_t {
  kOwnRead,  // own block into a packet
  kLand,     // a packet's payload into the user's buffer
};

// The mover fetches what came before the host's post. What comes later goes straight to the user,
// also while it is at work (docs/decisions/0018).
bool is_early(const Scope& scope, uint32_t number, uint32_t position) {
  if (!piece_is_open(scope.operation, number)) return false;
  return gathering::is_in(own_state<Blocks>(piece_slot(scope.operation, number)).early, position);
}

constexpr mover::Plan kFetch = {
    .wanted = is_early, .rank_at = gathering::rank_at, .piece_ended = gathering::next_early_piece};

// Puts a block into the user's buffer, or the channel. False: no DMA record.
bool land(const Scope& scope, Packet* packet, Piece& piece) {
  if (packet->header->length == 0) return true;
  auto& [card, member, operation] = scope;
  const uint32_t number = packet->header->piece;
  const Rank origin = packet->header->origin;
  const bool direct = is_posted(operation);
  if (!direct && early_keep(scope, packet, piece, origin)) return true;
  if (!dma_available(card, 1)) return false;
  transfer_write(scope, {.step = direct ? uint8_t{kLand} : uint8_t{mover::kLandEarly},
                         .piece = number,
                         .host = direct ? user_address(operation, origin, number)
                                        : image_address(member, operation, number, origin),
                         .card = packet->payload,
                         .bytes = packet->header->length,
                         .packet = packet});
  if (!direct) {
    ++operation.mover.landing;
    gathering::put_in(own_state<Blocks>(piece).early, origin);
  }
  return true;
}

// Puts it into staging, where results gather there.
[[gnu::always_inline]] inline void stage(const Scope& scope, const Packet* packet) {
  const uint32_t length = packet->header->length;
  uint8_t* image = staged_image(scope.member, scope.operation);
  std::memcpy(image + packet->header->origin * length, packet->payload, length);
  count(scope.card, PEAL_COUNTER_STAGED);
}

// The own block has been read into the packet.
void on_own_read(const Scope& scope, Packet* packet, uint32_t number) {
  auto& [card, member, operation] = scope;
  const Rank rank = member.membership.rank;
  const uint32_t length = piece_length(operation, number);
  Piece& piece = piece_slot(operation, number);
  if (length > 0 && !gathering::has_dma_or_reads_again(scope, piece, number)) return;
  if (length > 0) {
    // Own copy: the user's buffer is the user's once we complete, and a late NACK may still come.
    transfer_start(scope,
                   {.step = mover::kRetain,
                    .piece = number,
                    .host = image_address(member, operation, number, rank),
                    .card = packet->payload,
                    .bytes = length,
                    .packet = packet},
                   DmaKind::kWrite);
    if (!operation.command.in_place || is_staged(operation)) {
      if (is_staged(operation)) {
        std::memcpy(staging_address(member, operation, rank), packet->payload, length);
      } else {
        transfer_write(scope, {.step = kLand,
                               .piece = number,
                               .host = user_address(operation, rank, number),
                               .card = packet->payload,
                               .bytes = length,
                               .packet = packet});
      }
    }
  } else {
    piece.retained = true;
  }
  piece.own = OwnBlock::kPlaced;
  set_bit(piece, rank);
  ++piece.arrived;
  hopping::describe(card, packet, number, rank, 0, length);
  hopping::forward(scope, packet);
}

bool start_own(const Scope& scope, Piece& piece, uint32_t number) {
  return gathering::read_own(scope, piece, number, kOwnRead, on_own_read);
}

// One write takes a gathered result from staging to the user, once all of it is there.
void deliver_when_gathered(const Scope& scope) {
  auto& [card, member, operation] = scope;
  Piece& piece = staged_piece(scope);
  if (!gathering::has_all(scope, piece, 0) || piece.delivery != Delivery::kGathering) return;
  if (!has_dma_or_starves(scope)) return;
  piece.delivery = Delivery::kDelivering;
  transfer_start(scope,
                 {.step = mover::kDeliver,
                  .piece = 0,
                  .host = user_address(operation, 0, 0),
                  .card = staged_image(member, operation),
                  .bytes = expected_blocks(member.membership) * operation.block_bytes},
                 DmaKind::kWrite);
}

// A block that had come before. If ranks below still ask for it, it goes on to them: hop by hop, so
// that ranks that cannot reach each other are served, and that every hop of the way repairs itself.
peal_counter on_repeated(const Scope& scope, Packet* packet) {
  Operation& operation = scope.operation;
  const Membership& self = scope.member.membership;
  const peal_wire_header& header = *packet->header;
  if (!piece_is_open(operation, header.piece)) return PEAL_COUNTER_DUPLICATE;
  Piece& piece = piece_slot(operation, header.piece);
  const uint32_t hops = hops_owed(self, piece, header.origin);
  if (hops == 0) return PEAL_COUNTER_DUPLICATE;
  const uint32_t own = hopping::place(self.rank, header.origin, self.ranks);
  for (uint32_t left = hops; left != 0; left &= left - 1) pay(piece, own + (left & -left));
  operation_progressed(scope);
  hopping::forward_over(scope, packet, hops);
  return PEAL_COUNTER_RECEIVED;
}

void open(const Scope& scope) {
  pieces_open(scope, piece_bytes_for(scope.member.membership.ranks), CONFIG_STAGING_BLOCK_BYTES);
  scope.operation.staging_answers = true;  // the channel has the own block alone
  own_state<Turn>(scope.operation).gathers = kNoBytes;
}

void post(const Scope& scope) {
  Operation& operation = scope.operation;
  if (is_staged(operation) || operation.block_bytes == 0) return;
  for (uint32_t number = 0; number < kPieceSlots && number < operation.piece_count; ++number) {
    if (!piece_is_open(operation, number) || piece_slot(operation, number).arrived == 0) continue;
    mover::start(operation, 0);
    return;
  }
}

// Not after the usual arrival: nothing is owed, the first piece that is not done stays incomplete,
// and the window is sent.
[[gnu::always_inline]] inline bool can_go_on(const Scope& scope, const Piece& first) {
  const Operation& operation = scope.operation;
  if (!is_posted(operation)) return false;
  return first.arrived >= expected_blocks(scope.member.membership) || operation.in_debt ||
         own_pieces_wait(operation) || operation.mover.active || early_waits(operation);
}

// Where a block is on its way: this rank's place in its origin's tree, and the hop that leads
// there.
struct Way {
  uint32_t place;
  uint32_t hop;
};

// What the header says of it: kPacketGood, or why not.
[[gnu::always_inline]] inline peal_counter check_way(const Membership& self,
                                                     const peal_wire_header& header, Way* way) {
  if (header.fragment != 0) return PEAL_COUNTER_DROP_FRAGMENT;
  if (!is_expected(self, header.origin)) return PEAL_COUNTER_DROP_ORIGIN;
  way->place = hopping::place(self.rank, header.origin, self.ranks);
  if (way->place == 0) return PEAL_COUNTER_DROP_ORIGIN;  // its own
  way->hop = hopping::arriving_hop(way->place);
  if (header.hop != way->hop) return PEAL_COUNTER_DROP_HOP;
  const Rank parent = self.peers[peer_behind(way->hop)].address.rank;
  return header.sender == parent ? kPacketGood : PEAL_COUNTER_DROP_SENDER;
}

// Of a result that does not gather in staging.
[[gnu::noinline]] peal_counter on_data_for_host(const Scope& scope, Packet* packet) {
  Operation& operation = scope.operation;
  const peal_wire_header& header = *packet->header;
  if (header.length != piece_length(operation, header.piece)) return PEAL_COUNTER_DROP_LENGTH;
  Way way;
  const peal_counter good = check_way(scope.member.membership, header, &way);
  if (good != kPacketGood) return good;
  Piece* piece = nullptr;
  const peal_counter found = find_piece_of_new(operation, header.piece, header.origin, &piece);
  if (found == PEAL_COUNTER_DUPLICATE) return on_repeated(scope, packet);
  if (found != kPacketGood) return found;
  if (!land(scope, packet, *piece)) return PEAL_COUNTER_DROP_NO_DMA;
  note_arrival(scope, *piece, header.origin);
  hopping::forward_from(scope, packet, way.place, way.hop + 1);
  const bool is_first = piece->number == operation.base + 1;
  const Piece& first = is_first ? *piece : piece_slot(operation, operation.base);
  return can_go_on(scope, first) ? PEAL_COUNTER_RECEIVED : kTakenIn;
}

// The one piece begins whose blocks gather in staging.
void begin_gathering(const Scope& scope) {
  Operation& operation = scope.operation;
  if (piece_is_open(operation, 0)) return;
  piece_begin(staged_piece(scope), 0);
  own_state<Turn>(operation).gathers = static_cast<uint16_t>(operation.block_bytes);
}

// In staging there is room for every block of the one piece: so it has been noted already, and
// nothing of it need be remembered while it is sent on and copied. All that can go on then is the
// result.
[[gnu::always_inline]] inline peal_counter gather(const Scope& scope, Packet* packet,
                                                  const Way& way) {
  hopping::forward_from(scope, packet, way.place, way.hop + 1);
  stage(scope, packet);
  operation_progressed(scope);
  if (!is_posted(scope.operation)) {
    count(scope.card, PEAL_COUNTER_EARLY_DATA);
    return kTakenIn;
  }
  if (own_pieces_wait(scope.operation)) return PEAL_COUNTER_RECEIVED;
  if (staged_piece(scope).arrived == expected_blocks(scope.member.membership)) {
    deliver_when_gathered(scope);
  }
  return kTakenIn;
}

peal_counter on_data(const Scope& scope, Packet* packet) {
  Operation& operation = scope.operation;
  const Membership& self = scope.member.membership;
  const peal_wire_header& header = *packet->header;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (!is_staged(operation)) return on_data_for_host(scope, packet);
  if (header.length != operation.block_bytes) return PEAL_COUNTER_DROP_LENGTH;
  Way way;
  const peal_counter good = check_way(self, header, &way);
  if (good != kPacketGood) return good;
  if (operation.base > 0) return on_repeated(scope, packet);  // delivered
  begin_gathering(scope);
  Piece& piece = staged_piece(scope);
  uint64_t& bits = bits_with(piece, header.origin);
  const uint64_t with_it = bits | bit_of(header.origin);
  if (with_it == bits && !mutated(Mutation::kDuplicateAccepted)) return on_repeated(scope, packet);
  bits = with_it;
  ++piece.arrived;
  return gather(scope, packet, way);
}

// A usual one that gathers in staging, its block's first, is known by what its header says: from
// here to what it is sent on as it is one function. Whatever else it may be goes the way of all.
peal_counter on_usual(Card& card, Member& member, Operation& operation, Packet* packet,
                      Peer& peer) {
  const Membership& self = member.membership;
  const peal_wire_header& header = *packet->header;
  if (header.length != own_state<Turn>(operation).gathers ||
      (header.piece | header.fragment) != 0 || !is_expected(self, header.origin)) {
    return on_usual_packet(card, member, operation, packet, peer);
  }
  const Way way = {hopping::place(self.rank, header.origin, self.ranks), header.hop};
  uint64_t& bits = bits_with(operation.pieces[0], header.origin);
  const uint64_t with_it = bits | bit_of(header.origin);
  // (The place's highest bit is the hop that leads there; it has none if it is this rank's own.)
  if (way.place >> way.hop != 1 || with_it == bits) {
    return on_usual_packet(card, member, operation, packet, peer);
  }
  hear_peer(peer);
  if (!edge_is_next(peer, header)) [[unlikely]] {
    return on_usual_behind_a_gap(card, member, operation, packet, peer);
  }
  bits = with_it;
  ++operation.pieces[0].arrived;
  const Scope scope = {card, member, operation};
  if (gather(scope, packet, way) != kTakenIn) operation_advance(scope);
  return PEAL_COUNTER_RECEIVED;
}

// A transfer of a piece that gathers in staging is done.
bool on_staged_dma(const Scope& scope, const TransferDone& done) {
  Operation& operation = scope.operation;
  if (!done.ok || is_refused(operation)) return true;
  Piece& piece = staged_piece(scope);
  switch (done.step) {
    case kOwnRead:
      on_own_read(scope, done.packet, 0);
      return own_pieces_wait(operation);
    case mover::kRetain:
      piece.retained = true;
      deliver_when_gathered(scope);
      return false;
    default:
      piece.delivery = Delivery::kDelivered;
      own_state<Turn>(operation).gathers = kNoBytes;
      staged_is_delivered(scope);
      return false;
  }
}

bool on_dma(const Scope& scope, const TransferDone& done) {
  if (is_staged(scope.operation)) return on_staged_dma(scope, done);
  if (done.step >= mover::kFirstStep) return mover::on_dma(scope, kFetch, done);
  if (done.step == kOwnRead && done.ok && !is_refused(scope.operation)) {
    on_own_read(scope, done.packet, done.piece);
  }
  return true;
}

[[gnu::noinline]] void advance_pieces(const Scope& scope) {
  Operation& operation = scope.operation;
  // Others wait for the own block, and only the host for what the mover brings.
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
  if (operation.base == operation.piece_count && operation.dma == 0) {
    operation_finish(scope);
  }
}

// The same of the one that gathers in staging.
void advance_staged(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  if (operation.own_next == 0) {
    begin_gathering(scope);
    if (!start_own(scope, staged_piece(scope), 0)) return operation_starved(scope);
    operation.own_next = 1;
  }
  deliver_when_gathered(scope);
}

void advance(const Scope& scope) {
  Operation& operation = scope.operation;
  if (is_staged(operation)) return advance_staged(scope);
  const bool done = operation.base == operation.piece_count;
  if (!done && !can_go_on(scope, piece_slot(operation, operation.base))) return;
  if (operation.in_debt) settle_landed(scope);
  advance_pieces(scope);
}

}  // namespace

constinit const AlgorithmFunctions kFunctions = {
    allgather::check, open, post, on_data, nullptr, on_nack, on_dma, advance, chase, on_usual};

}  // namespace peal::broadcast_all
