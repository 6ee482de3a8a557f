// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/broadcast/binomial_data.h"

#include <algorithm>
#include <bit>

#include "firmware/base/assert.h"
#include "firmware/collective/broadcast/binomial_repair.h"
#include "firmware/group/early.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/operation/landing.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/transfer.h"

namespace peal::binomial {
namespace {

// Of one operation: reads of the root, and reads of early data.
constexpr uint32_t kReadsInFlight =
    std::clamp(std::min(uint32_t{CONFIG_DMA_RECORDS}, uint32_t{CONFIG_PACKET_BUFFERS}) / 8, 1u, 8u);

// Where a transfer goes on. Its detail is the fragment.
enum Step : uint8_t {
  kOwnRead,     // the root's data into a packet
  kKeep,        // a packet's payload into the channel
  kLand,        // a packet's payload into the user's buffer
  kFetchRead,   // early data from the channel into a bounce packet
  kFetchWrite,  // bounce packet into the user's buffer
};

// Is the piece kept, for those below who may ask for it? All of it where the user's memory may not
// be read.
bool is_kept(const Scope& scope, uint32_t number) {
  return (is_last(scope.operation, number) || !tree_of(scope).readable) && children_of(scope) != 0;
}

void write_fragment(const Scope& scope, Packet* packet, uint32_t number, uint32_t fragment,
                    Step step) {
  auto& [card, member, operation] = scope;
  const HostAddress piece = step == kKeep ? image_address(member, operation, number, 0)
                                          : user_address(operation, 0, number);
  transfer_write(scope, {.step = step,
                         .piece = number,
                         .host = behind(piece, fragment),
                         .card = packet->payload,
                         .bytes = fragment_length(operation, number, fragment),
                         .packet = packet,
                         .detail = fragment});
}

// What lies in the user's memory now. Where somebody below may ask for it when that is the user's
// again, its packet stays, or it goes to the channel, too, with the DMA record that the transfer
// before has given back.
void keep(const Scope& scope, Packet* packet, uint32_t number, uint32_t fragment) {
  auto& [card, member, operation] = scope;
  if (!is_kept(scope, number)) {
    on_there(scope, number, fragment, &Kept::in_user);
  } else if (is_last(operation, number) && has_room_for_sent(card, member)) {
    sent_block_keep(scope, packet, fragment, number);
    on_there(scope, number, fragment, &Kept::in_card);
  } else {
    write_fragment(scope, packet, number, fragment, kKeep);
  }
}

// The root's own data lies in the packet.
void on_own_read(const Scope& scope, Packet* packet, uint32_t number, uint32_t fragment) {
  Piece& piece = piece_slot(scope.operation, number);
  hopping::describe(scope.card, packet, number, scope.operation.root, fragment,
                    fragment_length(scope.operation, number, fragment));
  hopping::forward(scope, packet);
  if (packet->payload_bytes == 0) {
    own_state<Kept>(piece).in_card |= 1u << fragment;
  } else {
    keep(scope, packet, number, fragment);
  }
  set_bit(piece, fragment);
  ++piece.arrived;
}

// False: a pool was empty.
bool start_read(const Scope& scope, uint32_t number, uint32_t fragment) {
  auto& [card, member, operation] = scope;
  Packet* packet = take_bounce(card, 1);
  if (packet == nullptr) return false;
  const uint32_t length = fragment_length(operation, number, fragment);
  packet->payload_bytes = length;
  if (length == 0) {
    ++packet->holds;
    on_own_read(scope, packet, number, fragment);
    unhold_packet(card, packet);
    return true;
  }
  ++tree_of(scope).reading;
  // It is the host's until all is sent, and for all who are below.
  transfer_start(scope,
                 {.step = kOwnRead,
                  .piece = number,
                  .host = behind(own_address(operation, number), fragment),
                  .card = packet->payload,
                  .bytes = length,
                  .packet = packet,
                  .detail = fragment},
                 DmaKind::kReadLentToSeveral);
  return true;
}

bool start_fetch(const Scope& scope, uint32_t number, uint32_t fragment) {
  auto& [card, member, operation] = scope;
  Packet* bounce = take_bounce(card, 1);
  if (bounce == nullptr) return false;
  transfer_read(scope, {.step = kFetchRead,
                        .piece = number,
                        .host = behind(image_address(member, operation, number, 0), fragment),
                        .card = bounce->payload,
                        .bytes = fragment_length(operation, number, fragment),
                        .packet = bounce,
                        .detail = fragment});
  return true;
}

// What waited in its packet is on its way to the user, and can be repaired when it is there.
void on_leaving_packet(const Scope& scope, uint32_t number, Rank fragment, uint32_t /*bytes*/) {
  own_state<Kept>(piece_slot(scope.operation, number)).in_card &= ~(1u << fragment);
}

HostAddress user_fragment(const Scope& scope, uint32_t number, Rank fragment) {
  return behind(user_address(scope.operation, 0, number), fragment);
}

constexpr Landing kLanding = {
    .step = kLand, .is_free = nullptr, .place_of = user_fragment, .landed = on_leaving_packet};

}  // namespace

bool land(const Scope& scope, Packet* packet, uint32_t number, uint32_t fragment) {
  auto& [card, member, operation] = scope;
  Piece& piece = piece_slot(operation, number);
  auto& kept = own_state<Kept>(piece);
  const uint32_t bit = 1u << fragment;
  if (packet->payload_bytes == 0) {
    kept.in_card |= bit;
    return true;
  }
  const bool to_user = is_posted(operation);
  if (!to_user && early_keep(scope, packet, piece, fragment)) {
    kept.in_card |= bit;
    return true;
  }
  if (!dma_available(card, 1)) return false;
  if (to_user) {
    write_fragment(scope, packet, number, fragment, kLand);
    return true;
  }
  write_fragment(scope, packet, number, fragment, kKeep);
  kept.early |= bit;
  ++tree_of(scope).early;
  return true;
}

void read_own(const Scope& scope) {
  Operation& operation = scope.operation;
  Tree& tree = tree_of(scope);
  const uint32_t end = window_end(scope);
  while (tree.reading < kReadsInFlight && tree.next / kFragments < end) {
    const uint32_t number = tree.next / kFragments;
    const uint32_t fragment = tree.next % kFragments;
    const Piece* piece = piece_open(operation, number);
    PEAL_ASSERT(piece != nullptr);
    if (!start_read(scope, number, fragment)) {
      operation_starved(scope);
      return;
    }
    const bool last = fragment + 1 == fragments_in(operation, number);
    tree.next = last ? (number + 1) * kFragments : tree.next + 1;
  }
}

void fetch_early(const Scope& scope) {
  Operation& operation = scope.operation;
  if (early_waits(operation)) land_early(scope, kLanding);
  Tree& tree = tree_of(scope);
  for (uint32_t number = operation.base; tree.early > 0 && number < window_end(scope); ++number) {
    if (!piece_is_open(operation, number)) continue;
    auto& kept = own_state<Kept>(piece_slot(operation, number));
    for (uint32_t left = kept.early & kept.in_card; left != 0; left &= left - 1) {
      if (tree.fetching == kReadsInFlight) return;
      const auto fragment = static_cast<uint32_t>(std::countr_zero(left));
      if (!start_fetch(scope, number, fragment)) {
        operation_starved(scope);
        return;
      }
      kept.early &= ~(1u << fragment);
      --tree.early;
      ++tree.fetching;
    }
  }
}

bool on_dma(const Scope& scope, const TransferDone& done) {
  Operation& operation = scope.operation;
  Tree& tree = tree_of(scope);
  if (done.step == kOwnRead) --tree.reading;
  if (done.step == kFetchWrite) --tree.fetching;
  if (!done.ok || is_refused(operation)) return true;
  switch (done.step) {
    case kOwnRead:
      on_own_read(scope, done.packet, done.piece, done.detail);
      return true;
    case kKeep:
      on_there(scope, done.piece, done.detail, &Kept::in_card);
      return true;
    case kLand:
      keep(scope, done.packet, done.piece, done.packet->header->fragment);
      return true;
    case kFetchRead:
      write_fragment(scope, done.packet, done.piece, done.detail, kFetchWrite);
      return false;
    default:
      return true;
  }
}

}  // namespace peal::binomial
