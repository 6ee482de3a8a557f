// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/alltoall/bruck.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "firmware/base/assert.h"
#include "firmware/collective/alltoall/alltoall.h"
#include "firmware/collective/alltoall/bruck_order.h"
#include "firmware/group/inquiry.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/mover.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/repair.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/transmit.h"

namespace peal::bruck {
namespace {

using namespace bruck_order;

// Where a transfer goes on.
enum Goal : uint8_t {
  kOwnRead,   // own blocks into a packet
  kOwnPlace,  // one of them into the image
  kLand,      // a run of a packet's blocks into the image
};

// How far the steps of a piece are. Its bits are fragments that have come, a word per step; what
// has arrived of it is own blocks that are in the image.
struct Steps {
  uint8_t sent;
  uint8_t fragments_sent;        // of the step that is being sent
  uint16_t own_read;             // own blocks that were asked of the host
  uint16_t landing[kRoundsMax];  // runs of a step on their way into the image
};

constexpr bool fragments_fit_a_word() {
  for (uint32_t ranks = 1; ranks <= CONFIG_GROUP_RANKS_MAX; ++ranks) {
    const uint32_t bytes = piece_bytes_for(image_blocks(ranks));
    for (uint32_t k = 0; k < ceil_log2(ranks); ++k) {
      if (fragment_count(k, ranks, bytes) > 64) return false;
    }
  }
  return true;
}
static_assert(kImageBytes >= image_blocks(CONFIG_GROUP_RANKS_MAX), "a piece would be empty");
static_assert(fragments_fit_a_word());
static_assert(CONFIG_DMA_RECORDS >= kRunsMax);

// What a fragment carries.
struct Fragment {
  uint32_t first;  // index of its first block in the step
  uint32_t blocks;
  uint32_t bytes;
};

Fragment fragment_of(const Scope& scope, uint32_t number, uint32_t k, uint32_t fragment) {
  const uint32_t length = piece_length(scope.operation, number);
  if (length == 0) return {0, 0, 0};
  const uint32_t most = fragment_blocks(k, length);
  const uint32_t first = fragment * most;
  const uint32_t left = step_blocks(k, scope.member.membership.ranks) - first;
  const uint32_t blocks = left < most ? left : most;
  return {first, blocks, blocks * length};
}

uint32_t fragments_of(const Scope& scope, uint32_t number, uint32_t k) {
  return fragment_count(k, scope.member.membership.ranks, piece_length(scope.operation, number));
}

uint64_t all_of(uint32_t fragments) {
  return fragments == 64 ? ~uint64_t{0} : (uint64_t{1} << fragments) - 1;
}

Rank step_to(const Membership& self, uint32_t k) { return minus(self.rank, 1u << k, self.ranks); }
Rank step_from(const Membership& self, uint32_t k) { return plus(self.rank, 1u << k, self.ranks); }

const peal_peer_address& address_of(const Membership& self, Rank peer) {
  return self.peers[peer_entry(self.rank, peer, self.ranks)].address;
}

// The mover takes what has arrived for good to the user, and back into the order of ranks.
bool is_wanted(const Scope& /*scope*/, uint32_t /*piece*/, uint32_t /*position*/) { return true; }

Rank rank_at(const Membership& self, uint32_t position) {
  return plus(self.rank, position, self.ranks);
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

// Where the own block for a rank belongs.
uint32_t own_position(const Membership& self, Rank to) {
  return position_of(minus(self.rank, to, self.ranks), 0, self.ranks);
}

bool start_own(const Scope& scope, Piece& piece, uint32_t number) {
  const bool empty = piece_length(scope.operation, number) == 0;
  piece.own = empty ? OwnBlock::kPlaced : OwnBlock::kReading;
  return true;
}

// Own blocks that the next packet takes. Each is read for itself where it is to be written to the
// channel, so that its read leaves a record for that.
uint32_t own_batch(const Scope& scope, uint32_t first, uint32_t length) {
  const uint32_t left = scope.member.membership.ranks - first;
  const uint32_t room = CONFIG_MTU_BYTES / length;
  const uint32_t blocks = left < room ? left : room;
  return is_staged(scope.operation) || blocks < kRunsMax ? blocks : kRunsMax;
}

// May more own blocks be read? Those for the channel take a DMA record each, twice.
bool may_read_own(const Scope& scope, const Piece& piece) {
  const uint32_t read = own_state<Steps>(piece).own_read;
  if (read == scope.member.membership.ranks) return false;
  return is_staged(scope.operation) || read - piece.arrived <= kRunsMax;
}

// Reads own blocks of a piece, as many as may be under way at once.
void read_own(const Scope& scope, Piece& piece, uint32_t number) {
  auto& [card, member, operation] = scope;
  if (piece.own != OwnBlock::kReading) return;
  const uint32_t length = piece_length(operation, number);
  const bool staged = is_staged(operation);
  auto& steps = own_state<Steps>(piece);
  while (may_read_own(scope, piece)) {
    const uint32_t blocks = own_batch(scope, steps.own_read, length);
    const uint32_t reads = staged ? 1 : blocks;
    if (!dma_available(card, reads)) {
      count(card, PEAL_COUNTER_NO_DMA_RECORD);
      operation_starved(scope);
      return;
    }
    Packet* packet = take_packet(card);
    if (packet == nullptr) {
      operation_starved(scope);
      return;
    }
    for (uint32_t slot = 0; slot < reads; ++slot) {
      const Rank to = steps.own_read + slot;
      transfer_read(scope, {.step = kOwnRead,
                            .piece = number,
                            .host = own_address_for(operation, to, number),
                            .card = packet->payload + slot * length,
                            .bytes = staged ? blocks * length : length,
                            .packet = packet,
                            .detail = slot << 16 | to});
    }
    steps.own_read = static_cast<uint16_t>(steps.own_read + blocks);
  }
}

void own_placed(const Scope& scope, Piece& piece, uint32_t blocks) {
  piece.arrived = static_cast<uint16_t>(piece.arrived + blocks);
  if (piece.arrived == scope.member.membership.ranks) piece.own = OwnBlock::kPlaced;
}

// Own blocks have been read: one after the other to where they belong.
void place_own(const Scope& scope, Piece& piece, const TransferDone& done) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const Rank first = done.detail & 0xffff;
  const uint32_t length = piece_length(operation, done.piece);
  if (is_staged(operation)) {
    const uint32_t blocks = done.bytes / length;
    for (uint32_t i = 0; i < blocks; ++i) {
      std::memcpy(staging_address(member, operation, own_position(self, first + i)),
                  done.packet->payload + i * length, length);
    }
    own_placed(scope, piece, blocks);
    return;
  }
  if (is_refused(operation)) return;
  // The read has just given its record back, so there is one.
  transfer_write(scope,
                 {.step = kOwnPlace,
                  .piece = done.piece,
                  .host = image_address(member, operation, done.piece, own_position(self, first)),
                  .card = done.packet->payload + (done.detail >> 16) * length,
                  .bytes = length,
                  .packet = done.packet});
}

bool send_fragment(const Scope& scope, uint32_t number, uint32_t k, uint32_t fragment,
                   const peal_peer_address& to, bool repair) {
  const Membership& self = scope.member.membership;
  const Fragment what = fragment_of(scope, number, k, fragment);
  const ImagePart part = {number, area_of(k, self.ranks) + what.first, 0, what.bytes};
  return send_from_image(scope, part,
                         {.origin = self.rank,
                          .hop = static_cast<uint8_t>(k),
                          .fragment = static_cast<uint8_t>(fragment)},
                         to, repair);
}

// Steps whose blocks are all in the image, from the first.
uint32_t steps_received(const Scope& scope, const Piece& piece, uint32_t number) {
  const auto& steps = own_state<Steps>(piece);
  uint32_t k = 0;
  while (k < scope.member.membership.rounds && steps.landing[k] == 0 &&
         piece.bits[k] == all_of(fragments_of(scope, number, k))) {
    ++k;
  }
  return k;
}

// Sends every step whose blocks are together.
void send_steps(const Scope& scope, Piece& piece, uint32_t number) {
  const Membership& self = scope.member.membership;
  if (piece.own != OwnBlock::kPlaced) return;
  auto& steps = own_state<Steps>(piece);
  const uint32_t received = steps_received(scope, piece, number);
  while (steps.sent < self.rounds && steps.sent <= received) {
    const peal_peer_address& to = address_of(self, step_to(self, steps.sent));
    const uint32_t fragments = fragments_of(scope, number, steps.sent);
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

// A staged result: to the user in at most two writes, back into the order of ranks; and what was
// sent to the channel in one, for late NACKs.
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
  const uint32_t ahead = self.ranks - self.rank;  // blocks from the own one to that of rank N - 1
  transfer_write(scope, {.step = mover::kDeliver,
                         .piece = number,
                         .host = user_address(operation, self.rank, number),
                         .card = staging_address(member, operation, 0),
                         .bytes = ahead * length});
  if (self.rank > 0) {
    transfer_write(scope, {.step = mover::kDeliver,
                           .piece = number,
                           .host = user_address(operation, 0, number),
                           .card = staging_address(member, operation, ahead),
                           .bytes = self.rank * length});
  }
  if (self.rounds > 0) {
    transfer_write(scope, {.step = mover::kRetain,
                           .piece = number,
                           .host = image_address(member, operation, number, self.ranks),
                           .card = staging_address(member, operation, self.ranks),
                           .bytes = (image_blocks(self.ranks) - self.ranks) * length});
  }
}

bool piece_is_done(const Scope& scope, Piece& piece, uint32_t number) {
  Operation& operation = scope.operation;
  const uint32_t rounds = scope.member.membership.rounds;
  if (piece.own != OwnBlock::kPlaced || own_state<Steps>(piece).sent < rounds ||
      steps_received(scope, piece, number) < rounds || piece.dma > 0) {
    return false;
  }
  if (piece_length(operation, number) == 0) return true;
  if (piece.delivery == Delivery::kGathering) {
    if (is_staged(operation)) {
      deliver_staged(scope, piece, number);
    } else {
      piece.delivery = Delivery::kDelivering;
      mover::start(operation, number);
      mover::advance(scope, kDeliverImage);
    }
  }
  return piece.delivery == Delivery::kDelivered;
}

void open(const Scope& scope) {
  const uint32_t blocks = image_blocks(scope.member.membership.ranks);
  pieces_open(scope, piece_bytes_for(blocks), CONFIG_STAGING_BYTES, blocks);
}

void post(const Scope& /*scope*/) {}

// The packet's blocks to where their way goes on. False when there are not as many DMA records.
bool land(const Scope& scope, Piece& piece, Packet* packet) {
  auto& [card, member, operation] = scope;
  const peal_wire_header& header = *packet->header;
  const Membership& self = member.membership;
  const uint32_t k = header.hop;
  const uint32_t length = piece_length(operation, header.piece);
  const bool staged = is_staged(operation);
  const Fragment what = fragment_of(scope, header.piece, k, header.fragment);
  if (!staged && what.blocks > 0 && !dma_available(card, kRunsMax)) return false;
  for (uint32_t done = 0; done < what.blocks;) {
    const uint32_t index = what.first + done;
    const uint32_t run = std::min(run_blocks(k, index), what.blocks - done);
    const uint32_t position = position_of(way_of(k, index), k + 1, self.ranks);
    uint8_t* from = packet->payload + done * length;
    if (staged) {
      std::memcpy(staging_address(member, operation, position), from, run * length);
    } else {
      ++own_state<Steps>(piece).landing[k];
      transfer_write(scope, {.step = kLand,
                             .piece = header.piece,
                             .host = image_address(member, operation, header.piece, position),
                             .card = from,
                             .bytes = run * length,
                             .packet = packet,
                             .detail = k});
    }
    done += run;
  }
  if (staged) count(card, PEAL_COUNTER_STAGED);
  return true;
}

peal_counter on_data(const Scope& scope, Packet* packet) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const peal_wire_header& header = *packet->header;
  if (header.hop >= self.rounds) return PEAL_COUNTER_DROP_HOP;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (header.origin >= self.ranks || header.origin == self.rank) return PEAL_COUNTER_DROP_ORIGIN;
  if (header.sender != step_from(self, header.hop) || header.origin != header.sender) {
    return PEAL_COUNTER_DROP_SENDER;
  }
  if (header.fragment >= fragments_of(scope, header.piece, header.hop)) {
    return PEAL_COUNTER_DROP_FRAGMENT;
  }
  if (header.length != fragment_of(scope, header.piece, header.hop, header.fragment).bytes) {
    return PEAL_COUNTER_DROP_LENGTH;
  }
  if (operation.phase == OperationPhase::kFinished || header.piece < operation.base) {
    return PEAL_COUNTER_DUPLICATE;
  }
  Piece* piece = piece_open(operation, header.piece);
  if (piece == nullptr) return PEAL_COUNTER_DROP_PIECE;
  const uint64_t bit = uint64_t{1} << header.fragment;
  if ((piece->bits[header.hop] & bit) != 0) return PEAL_COUNTER_DUPLICATE;
  if (!land(scope, *piece, packet)) return PEAL_COUNTER_DROP_NO_DMA;
  piece->bits[header.hop] |= bit;
  if (!is_posted(operation)) count(card, PEAL_COUNTER_EARLY_DATA);
  operation_progressed(scope);
  return PEAL_COUNTER_RECEIVED;
}

bool on_dma(const Scope& scope, const TransferDone& done) {
  if (done.step >= mover::kFirstStep) return mover::on_dma(scope, kDeliverImage, done);
  if (!done.ok) return true;
  Piece& piece = piece_slot(scope.operation, done.piece);
  switch (done.step) {
    case kOwnRead:
      place_own(scope, piece, done);
      break;
    case kOwnPlace:
      own_placed(scope, piece, 1);
      break;
    case kLand:
      --own_state<Steps>(piece).landing[done.detail];
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
    if (!piece_is_open(operation, number)) continue;
    read_own(scope, piece_slot(operation, number), number);
    send_steps(scope, piece_slot(operation, number), number);
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

// Asks for the first step of a piece that has gaps: later ones wait for it anyway. But where it is
// known who sent what is lost, for what that one sent.
void ask_for_piece(const Scope& scope, uint32_t number) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const Piece* piece = piece_open(operation, number);
  PEAL_ASSERT(piece != nullptr);
  const bool suspects = asks_suspects(operation.inquiry);
  for (uint32_t k = 0; k < self.rounds; ++k) {
    uint64_t missing = all_of(fragments_of(scope, number, k)) & ~piece->bits[k];
    // Of a step that has begun to come, what is behind its last packet is on its way.
    if (suspects && piece->bits[k] != 0) missing &= std::bit_floor(piece->bits[k]) - 1;
    if (missing == 0) continue;
    const peal_peer_address& to = address_of(self, step_from(self, k));
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

void chase(const Scope& scope) {
  const Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  const uint32_t last = operation.base + kPieceWindow;
  for (uint32_t number = operation.base; number < last && number < operation.piece_count;
       ++number) {
    ask_for_piece(scope, number);
  }
}

// Fragments of this step that have been sent.
uint64_t sent_of(const Operation& operation, const peal_wire_header& header) {
  if (!piece_is_open(operation, header.piece)) return 0;
  const Piece& piece = operation.pieces[header.piece % kPieceSlots];
  const auto& steps = own_state<Steps>(piece);
  if (header.hop < steps.sent) return ~uint64_t{0};
  return header.hop == steps.sent ? all_of(steps.fragments_sent) : 0;
}

peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  if (header.hop >= self.rounds) return PEAL_COUNTER_DROP_HOP;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (header.sender != step_to(self, header.hop)) return PEAL_COUNTER_DROP_SENDER;
  const uint32_t fragments = fragments_of(scope, header.piece, header.hop);
  if ((nack.fragments & ~all_of(fragments)) != 0) return PEAL_COUNTER_DROP_FRAGMENT;
  const peal_peer_address& to = address_of(self, header.sender);
  const uint64_t resend = nack.fragments & sent_of(operation, header);
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

constinit const AlgorithmFunctions kFunctions = {alltoall::check, open,   post,    on_data, nullptr,
                                                 on_nack,         on_dma, advance, chase};

}  // namespace peal::bruck
