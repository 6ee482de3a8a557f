// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/doubling.h"

#include <cstring>

#include "firmware/base/kept.h"
#include "firmware/collective/allgather/allgather.h"
#include "firmware/collective/allgather/schedule.h"
#include "firmware/collective/stepping_machine.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/transmit.h"

namespace peal::doubling {
namespace {

// Where a transfer goes on.
enum Goal : uint8_t {
  kOwnRead = stepping::kFirstOwn,  // own block into a packet
  kOwnStage,                       // own block into staging
  kOwnPlace,                       // own block into the image
};

Rank rank_at(const Membership& self, uint32_t position) {
  return schedule::rank_at(position, self.rank, self.ranks);
}

// The partner of a doubling is ahead of this rank or behind it, as the bit that differs says. In
// Bruck's order a rank sends to the one behind it.
uint32_t step_from(const Membership& self, uint32_t k) {
  return schedule::rotated(self.ranks) || (self.rank >> k & 1) == 0 ? peer_ahead(k)
                                                                    : peer_behind(k);
}

[[gnu::always_inline]] inline stepping::Exchange exchange_of(const Membership& self,
                                                             uint32_t length, uint32_t k) {
  const schedule::Step step = schedule::step(k, self.rank, self.ranks);
  const bool behind = schedule::rotated(self.ranks) || (self.rank >> k & 1) != 0;
  return {.to = behind ? peer_behind(k) : peer_ahead(k),
          .from = step.from,
          .sends = step.send_first,
          .receives = step.receive_first,
          .bytes = step.blocks * length,
          .packet_bytes = CONFIG_MTU_BYTES};
}

[[gnu::always_inline]] inline bool start_own(const Scope& scope, Piece& piece, uint32_t number) {
  auto& [card, member, operation] = scope;
  const uint32_t length = piece_length(operation, number);
  const uint32_t own = schedule::own_position(member.membership.rank, member.membership.ranks);
  const HostAddress from = own_address(operation, number);
  if (length == 0) {
    piece.own = OwnBlock::kPlaced;
    return true;
  }
  if (!dma_suffices(card, 2)) return false;
  if (is_staged(operation)) {
    transfer_start(scope,
                   {.step = kOwnStage,
                    .piece = number,
                    .host = from,
                    .card = staging_address(member, operation, own),
                    .bytes = length},
                   DmaKind::kRead);
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

void own_moved(const Scope& scope, Piece& piece, const TransferDone& done) {
  auto& [card, member, operation] = scope;
  if (done.step != kOwnRead) {
    piece.own = OwnBlock::kPlaced;
    return;
  }
  if (is_refused(operation)) return;
  const Membership& self = member.membership;
  const uint32_t own = schedule::own_position(self.rank, self.ranks);
  // The read has just given its record back, so there is one.
  transfer_write(scope, {.step = kOwnPlace,
                         .piece = done.piece,
                         .host = image_address(member, operation, done.piece, own),
                         .card = done.packet->payload,
                         .bytes = done.bytes,
                         .packet = done.packet});
}

[[gnu::always_inline]] inline void stage(const Scope& scope, Packet* packet,
                                         const stepping::Exchange& exchange) {
  const uint32_t offset = uint32_t{packet->header->fragment} * CONFIG_MTU_BYTES;
  std::memcpy(staging_address(scope.member, scope.operation, exchange.receives, offset),
              packet->payload, opaque(packet->header->length));
  count(scope.card, PEAL_COUNTER_STAGED);
}

bool land(const Scope& scope, Piece& piece, Packet* packet, const stepping::Exchange& exchange) {
  const peal_wire_header& header = *packet->header;
  if (header.length == 0) return true;
  if (!dma_available(scope.card, 1)) return false;
  stepping::write_landed(scope, piece, packet, packet->payload,
                         {header.piece, exchange.receives,
                          uint32_t{header.fragment} * CONFIG_MTU_BYTES, header.length});
  return true;
}

stepping::Stretch retained(const Membership& self) { return {0, self.ranks}; }

void open(const Scope& scope) {
  pieces_open(scope, piece_bytes_for(scope.member.membership.ranks), CONFIG_STAGING_BYTES);
}

constexpr stepping::Plan kPlan = {
    exchange_of, step_from, stage,    land,
    start_own,   own_moved, retained, stepping::deliver_image(rank_at)};

}  // namespace

constinit const AlgorithmFunctions kFunctions = stepping::functions<kPlan>(allgather::check, open);

}  // namespace peal::doubling
