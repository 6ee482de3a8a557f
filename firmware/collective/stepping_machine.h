// SPDX-License-Identifier: BSD-2-Clause
// What algorithms in steps have in common, made for each plan: so the plan's small functions are no
// calls.
#pragma once

#include <bit>

#include "firmware/base/assert.h"
#include "firmware/collective/stepping.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/staging.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/transmit.h"

namespace peal::stepping {

inline uint64_t all_of(uint32_t fragments) {
  return fragments == 64 ? ~uint64_t{0} : (uint64_t{1} << fragments) - 1;
}

// A packet of the step has come, or a write of its blocks is done: is it all in the image?
inline void note_landed(Steps& steps, uint32_t k) {
  if (steps.landing[k] == 0) steps.landed |= steps.whole & 1u << k;
}

// Fragments of this step that have been sent.
inline uint64_t sent_of(Operation& operation, const peal_wire_header& header) {
  if (!piece_is_open(operation, header.piece)) return 0;
  const auto& steps = own_state<Steps>(piece_slot(operation, header.piece));
  if (header.hop < steps.sent) return ~uint64_t{0};
  return header.hop == steps.sent ? all_of(steps.fragments_sent) : 0;
}

inline DataPlace place_of(const Scope& scope, uint32_t k, uint32_t fragment) {
  return {.origin = scope.member.membership.rank,
          .hop = static_cast<uint8_t>(k),
          .fragment = static_cast<uint8_t>(fragment)};
}

// All blocks have come and all steps are sent; nothing of the piece is under way.
inline bool is_together(const Membership& self, const Piece& piece) {
  const auto& steps = own_state<Steps>(piece);
  return piece.own == OwnBlock::kPlaced && steps.sent == self.rounds &&
         steps_received(steps) == self.rounds && piece.dma == 0;
}

// May the next step be sent? Its blocks are together.
inline bool has_step_to_send(const Membership& self, const Piece& piece) {
  const auto& steps = own_state<Steps>(piece);
  return piece.own == OwnBlock::kPlaced && steps.sent < self.rounds &&
         steps.sent <= steps_received(steps);
}

// One more packet of the step has been sent.
inline void note_sent(Steps& steps, const Exchange& exchange) {
  if (!is_single(exchange) && ++steps.fragments_sent < fragments_of(exchange)) return;
  ++steps.sent;
  steps.fragments_sent = 0;
}

// Sends a packet of the next step from staging. False: there is none. (What the scope names is
// asked for anew, and what its step is once it has been taken: so the port's calls find nothing in
// registers that had to be saved.)
template <const Plan& plan>
[[gnu::noinline]] bool send_step_staged(const Scope& scope) {
  Packet* packet = take_packet(scope.card);
  if (packet == nullptr) {
    operation_starved(scope);
    return false;
  }
  auto& steps = own_state<Steps>(staged_piece(scope));
  const uint32_t k = steps.sent;
  const uint32_t fragment = steps.fragments_sent;
  const Exchange exchange = plan.exchange(scope.member.membership, scope.operation.block_bytes, k);
  note_sent(steps, exchange);
  send_staged(scope, part_of(exchange, 0, fragment), place_of(scope, k, fragment), exchange.to,
              false, packet);
  return true;
}

// The same where it does not gather in staging.
template <const Plan& plan>
[[gnu::noinline]] void send_steps(const Scope& scope, Piece& piece, uint32_t number) {
  const Membership& self = scope.member.membership;
  auto& steps = own_state<Steps>(piece);
  do {
    const uint32_t k = steps.sent;
    const Exchange exchange = plan.exchange(self, piece_length(scope.operation, number), k);
    do {
      const uint32_t fragment = steps.fragments_sent;
      if (!send_from_image(scope, part_of(exchange, number, fragment), place_of(scope, k, fragment),
                           exchange.to, false)) {
        operation_starved(scope);
        return;
      }
      note_sent(steps, exchange);
    } while (steps.sent == k);
  } while (has_step_to_send(self, piece));
}

// Sends what goes on of what has come.
template <const Plan& plan>
[[gnu::always_inline]] inline void pass_on(const Scope& scope, Piece& piece, uint32_t number) {
  if (has_step_to_send(scope.member.membership, piece)) send_steps<plan>(scope, piece, number);
}

// A staged result: to the user in one write (two where the order of ranks begins within it), and
// to the channel in one, for late NACKs, unless it can stay where it is.
template <const Plan& plan>
[[gnu::noinline]] void deliver_staged(const Scope& scope) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const uint32_t length = operation.block_bytes;
  if (!has_dma_or_starves(scope, 3)) return;
  staged_piece(scope).delivery = Delivery::kDelivering;
  const Rank first_rank = plan.deliver.rank_at(self, 0);
  const uint32_t first = self.ranks - first_rank;  // blocks from that rank's to that of rank N - 1
  transfer_start(scope,
                 {.step = mover::kDeliver,
                  .piece = 0,
                  .host = user_address(operation, first_rank, 0),
                  .card = staging_address(member, operation, 0),
                  .bytes = first * length},
                 DmaKind::kWrite);
  if (first < self.ranks) {
    transfer_write(scope, {.step = mover::kDeliver,
                           .piece = 0,
                           .host = user_address(operation, 0, 0),
                           .card = staging_address(member, operation, first),
                           .bytes = (self.ranks - first) * length});
  }
  const Stretch retained = plan.retained(self);
  if (retained.blocks == 0 || hold_staging(card, member, operation)) return;
  transfer_write(scope, {.step = mover::kRetain,
                         .piece = 0,
                         .host = image_address(member, operation, 0, retained.first),
                         .card = staging_address(member, operation, retained.first),
                         .bytes = retained.blocks * length});
}

template <const Plan& plan>
bool piece_is_done(const Scope& scope, Piece& piece, uint32_t number) {
  Operation& operation = scope.operation;
  if (!is_together(scope.member.membership, piece)) return false;
  if (piece_length(operation, number) == 0) return true;
  if (piece.delivery == Delivery::kGathering) {
    piece.delivery = Delivery::kDelivering;
    mover::start(operation, number);
    mover::advance(scope, plan.deliver);
  }
  return piece.delivery == Delivery::kDelivered;
}

// Asks for the first step of a piece that has gaps: later ones wait for it anyway. Not where its
// partner was asked for an earlier piece (`partners`, a bit per step). But where it is known who
// sent what is lost, for what that one sent.
template <const Plan& plan>
void ask_for_piece(const Scope& scope, uint32_t number, uint32_t& partners) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const Piece* piece = piece_open(operation, number);
  PEAL_ASSERT(piece != nullptr);
  const uint32_t length = piece_length(operation, number);
  const bool suspects = asks_suspects(operation.inquiry);
  for (uint32_t k = 0; k < self.rounds; ++k) {
    uint64_t missing = all_of(fragments_of(plan.exchange(self, length, k))) & ~piece->bits[k];
    // Of a step that has begun to come, what is behind its last packet is on its way.
    if (follows_perhaps(operation.inquiry) && piece->bits[k] != 0) {
      missing &= std::bit_floor(piece->bits[k]) - 1;
    }
    if (missing == 0) continue;
    if ((partners >> k & 1) != 0 && !suspects) return;
    partners |= 1u << k;
    const peal_peer_address& to = self.peers[plan.from(self, k)].address;
    if (!operation_may_ask(scope, to.rank)) {
      if (suspects) continue;
      return;
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
    return;
  }
}

// Something of this piece has come into the image, and its operation is posted: sends what goes on
// of it. (Nothing else can go on, where nothing waits for packets or records.) True: its operation
// may go on.
template <const Plan& plan>
[[gnu::always_inline]] inline bool piece_goes_on(const Scope& scope, Piece& piece,
                                                 uint32_t number) {
  if (scope.operation.starved) return true;
  if (plan.read_own != nullptr) plan.read_own(scope, piece, number);
  pass_on<plan>(scope, piece, number);
  return steps_received(own_state<Steps>(piece)) == scope.member.membership.rounds;
}

// The same of what gathers in staging: it may go on only with its result.
template <const Plan& plan>
[[gnu::always_inline]] inline void go_on_staged(const Scope& scope) {
  if (plan.read_own != nullptr) plan.read_own(scope, staged_piece(scope), 0);
  if (staged_piece(scope).own != OwnBlock::kPlaced) return;
  const uint32_t rounds = scope.member.membership.rounds;
  while (own_state<Steps>(staged_piece(scope)).sent < rounds) {
    const auto& steps = own_state<Steps>(staged_piece(scope));
    if (steps_received(steps) < steps.sent || !send_step_staged<plan>(scope)) return;
  }
  const Piece& piece = staged_piece(scope);
  if (steps_received(own_state<Steps>(piece)) == rounds && piece.dma == 0 &&
      piece.delivery == Delivery::kGathering) {
    deliver_staged<plan>(scope);
  }
}

// Whose block it says it is, or who sent it, is wrong.
[[gnu::cold]] inline peal_counter wrong_origin(const Membership& self,
                                               const peal_wire_header& header) {
  const bool other = is_expected(self, header.origin) && header.origin != self.rank;
  return other ? PEAL_COUNTER_DROP_SENDER : PEAL_COUNTER_DROP_ORIGIN;
}

// What its header says of where it belongs in an exchange with it: kPacketGood, or why not.
[[gnu::always_inline]] inline peal_counter check_exchange(const Membership& self,
                                                          const Exchange& exchange,
                                                          const peal_wire_header& header) {
  if (header.sender != exchange.from || header.origin != exchange.from) {
    return wrong_origin(self, header);
  }
  const bool single = is_single(exchange);
  if (header.fragment >= (single ? 1 : fragments_of(exchange))) return PEAL_COUNTER_DROP_FRAGMENT;
  const uint32_t bytes = single ? exchange.bytes : bytes_of(exchange, header.fragment);
  return header.length == bytes ? kPacketGood : PEAL_COUNTER_DROP_LENGTH;
}

// The step's packets that have come, with this one.
inline uint64_t with_fragment(const Piece& piece, uint32_t k, uint32_t fragment) {
  return piece.bits[k] | uint64_t{1} << fragment;
}
inline bool is_whole(const Exchange& exchange, uint64_t come) {
  return is_single(exchange) || come == all_of(fragments_of(exchange));
}
// Does anything go on, once it has landed? Not before the host's post.
[[gnu::always_inline]] inline bool note_progress(const Scope& scope) {
  operation_progressed(scope);
  if (is_posted(scope.operation)) return true;
  count(scope.card, PEAL_COUNTER_EARLY_DATA);
  return false;
}

template <const Plan& plan>
[[gnu::noinline]] peal_counter on_data_for_channel(const Scope& scope, Packet* packet) {
  auto& [card, member, operation] = scope;
  const peal_wire_header& header = *packet->header;
  const uint32_t k = header.hop;
  const uint32_t number = header.piece;
  const Exchange exchange = plan.exchange(member.membership, piece_length(operation, number), k);
  const peal_counter good = check_exchange(member.membership, exchange, header);
  if (good != kPacketGood) return good;
  if (!is_under_way(operation, number)) return PEAL_COUNTER_DUPLICATE;
  Piece* piece = piece_open(operation, number);
  if (piece == nullptr) return PEAL_COUNTER_DROP_PIECE;
  const uint64_t come = with_fragment(*piece, k, header.fragment);
  if (come == piece->bits[k]) return PEAL_COUNTER_DUPLICATE;
  if (!plan.land(scope, *piece, packet, exchange)) return PEAL_COUNTER_DROP_NO_DMA;
  piece->bits[k] = come;
  if (is_whole(exchange, come)) {
    auto& steps = own_state<Steps>(*piece);
    steps.whole |= 1u << k;
    note_landed(steps, k);
  }
  if (!note_progress(scope)) return kTakenIn;
  return piece_goes_on<plan>(scope, *piece, number) ? PEAL_COUNTER_RECEIVED : kTakenIn;
}

// Staging has room for every packet: so it is noted first, and nothing of it need be remembered
// while it is copied, nor (once an operation) while the piece's record is made.
template <const Plan& plan>
peal_counter on_data(const Scope& scope, Packet* packet) {
  const Operation& operation = scope.operation;
  const Membership& self = scope.member.membership;
  const peal_wire_header& header = *packet->header;
  const uint32_t k = header.hop;
  if (k >= self.rounds) return PEAL_COUNTER_DROP_HOP;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (!is_staged(operation)) return on_data_for_channel<plan>(scope, packet);
  const Exchange exchange = plan.exchange(self, operation.block_bytes, k);
  const peal_counter good = check_exchange(self, exchange, header);
  if (good != kPacketGood) return good;
  if (operation.base > 0) return PEAL_COUNTER_DUPLICATE;  // delivered
  Piece& piece = staged_piece(scope);
  if (!piece_is_open(operation, 0)) {
    piece_begin(piece, 0);
    return on_data<plan>(scope, packet);
  }
  const uint64_t come = with_fragment(piece, k, header.fragment);
  if (come == piece.bits[k]) return PEAL_COUNTER_DUPLICATE;
  piece.bits[k] = come;
  if (is_whole(exchange, come)) own_state<Steps>(piece).landed |= 1u << k;
  plan.stage(scope, packet, exchange);
  if (!note_progress(scope)) return kTakenIn;
  if (scope.operation.starved) return PEAL_COUNTER_RECEIVED;
  go_on_staged<plan>(scope);
  return kTakenIn;
}

template <const Plan& plan>
peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  if (header.hop >= self.rounds) return PEAL_COUNTER_DROP_HOP;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  const uint32_t length = piece_length(operation, header.piece);
  const Exchange exchange = plan.exchange(self, length, header.hop);
  const peal_peer_address& asker = self.peers[exchange.to].address;
  if (header.sender != asker.rank) return PEAL_COUNTER_DROP_SENDER;
  const uint32_t fragments = fragments_of(exchange);
  if ((nack.fragments & ~all_of(fragments)) != 0) return PEAL_COUNTER_DROP_FRAGMENT;
  if (piece_is_passed(operation, header.piece)) return PEAL_COUNTER_DROP_STALE;
  const uint64_t resend = nack.fragments & sent_of(operation, header);
  bool all = true;
  for (uint32_t fragment = 0; all && fragment < fragments; ++fragment) {
    if ((resend >> fragment & 1) == 0) continue;
    const ImagePart part = part_of(exchange, header.piece, fragment);
    const DataPlace place = place_of(scope, header.hop, fragment);
    all = may_repair(card) && send_from_image(scope, part, place, exchange.to, true);
  }
  // Silence would cost the asker's patience, whatever the reason.
  if (!all) send_not_yet(scope, asker, header, nack, Owed::kAgain);
  if (resend == 0) {
    send_not_yet(scope, asker, header, nack, Owed::kByHost);
    pieces_asked_for(scope);
  }
  return PEAL_COUNTER_RECEIVED;
}

template <const Plan& plan>
bool on_dma(const Scope& scope, const TransferDone& done) {
  if (done.step == mover::kDeliver || done.step == mover::kRetain) {
    return staged_has_left(scope, done);
  }
  if (done.step >= mover::kFirstStep) return mover::on_dma(scope, plan.deliver, done);
  if (!done.ok) return true;
  Piece& piece = piece_slot(scope.operation, done.piece);
  if (done.step == kLand) {
    auto& steps = own_state<Steps>(piece);
    --steps.landing[done.detail];
    note_landed(steps, done.detail);
  } else {
    plan.own_moved(scope, piece, done);
  }
  if (is_refused(scope.operation)) return true;
  if (!is_posted(scope.operation)) return false;
  if (!is_staged(scope.operation)) return piece_goes_on<plan>(scope, piece, done.piece);
  if (scope.operation.starved) return true;
  go_on_staged<plan>(scope);
  return false;
}

// All pieces, of what does not gather in staging.
template <const Plan& plan>
[[gnu::noinline]] void advance_pieces(const Scope& scope) {
  Operation& operation = scope.operation;
  if (own_pieces_wait(operation)) {
    start_own_pieces(scope, [](const Scope& own, Piece& piece, uint32_t number) {
      return plan.start_own(own, piece, number);
    });
  }
  for (uint32_t number = operation.base;
       number < operation.piece_count && number < operation.base + kPieceSlots; ++number) {
    if (!piece_is_open(operation, number)) continue;
    Piece& piece = piece_slot(operation, number);
    if (plan.read_own != nullptr) plan.read_own(scope, piece, number);
    pass_on<plan>(scope, piece, number);
  }
  if (operation.mover.active) mover::advance(scope, plan.deliver);
  const uint32_t base = operation.base;
  while (operation.base < operation.piece_count && piece_is_open(operation, operation.base) &&
         piece_is_done<plan>(scope, piece_slot(operation, operation.base), operation.base)) {
    ++operation.base;
  }
  if (operation.base == operation.piece_count && operation.dma == 0) {
    operation_finish(scope);
  } else if (operation.base != base) {
    advance_pieces<plan>(scope);  // the window moved: at most 2W deep
  }
}

template <const Plan& plan>
void advance(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  if (!is_staged(operation)) return advance_pieces<plan>(scope);
  if (operation.own_next == 0) {
    Piece& piece = *piece_open(operation, 0);
    if (!plan.start_own(scope, piece, 0)) return operation_starved(scope);
    operation.own_next = 1;
  }
  go_on_staged<plan>(scope);
}

template <const Plan& plan>
void chase(const Scope& scope) {
  const Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  const uint32_t last = operation.base + kPieceWindow;
  uint32_t partners = 0;
  for (uint32_t number = operation.base; number < last && number < operation.piece_count;
       ++number) {
    ask_for_piece<plan>(scope, number, partners);
  }
}

// The seam's functions, where the algorithm has only a plan.
template <const Plan& plan>
constexpr AlgorithmFunctions functions(decltype(AlgorithmFunctions::check) check,
                                       decltype(AlgorithmFunctions::open) open) {
  return {.check = check,
          .open = open,
          .post = [](const Scope& /*scope*/) {},
          .on_data = on_data<plan>,
          .on_signal = nullptr,
          .on_nack = on_nack<plan>,
          .on_dma = on_dma<plan>,
          .advance = advance<plan>,
          .chase = chase<plan>};
}

}  // namespace peal::stepping
