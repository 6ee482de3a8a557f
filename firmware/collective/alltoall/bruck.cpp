// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/alltoall/bruck.h"

#include <algorithm>
#include <cstring>

#include "firmware/collective/alltoall/alltoall.h"
#include "firmware/collective/alltoall/bruck_order.h"
#include "firmware/collective/stepping_machine.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/transmit.h"

namespace peal::bruck {
namespace {

using namespace bruck_order;

// Where a transfer goes on.
enum Goal : uint8_t {
  kOwnRead = stepping::kFirstOwn,  // own blocks into a packet
  kOwnPlace,                       // one of them into the image
};

// What is kept of a piece. What has arrived of it is own blocks that are in the image.
struct Kept {
  stepping::Steps steps;
  uint16_t own_read;  // own blocks that were asked of the host
};

constexpr bool fragments_fit_a_word() {
  for (uint32_t ranks = 1; ranks <= kVectorRanks; ++ranks) {
    const uint32_t bytes = piece_bytes_for(image_blocks(ranks));
    for (uint32_t k = 0; k < ceil_log2(ranks); ++k) {
      if (fragment_count(k, ranks, bytes) > 64) return false;
    }
  }
  return true;
}
static_assert(kImageBytes >= image_blocks(kVectorRanks), "a piece would be empty");
static_assert(fragments_fit_a_word());
static_assert(CONFIG_DMA_RECORDS >= kRunsMax);

uint32_t step_from(const Membership& /*self*/, uint32_t k) { return peer_ahead(k); }

// (What is received does not lie side by side.)
[[gnu::always_inline]] inline stepping::Exchange exchange_of(const Membership& self,
                                                             uint32_t length, uint32_t k) {
  return {.to = peer_behind(k),
          .from = plus(self.rank, 1u << k, self.ranks),
          .sends = area_of(k, self.ranks),
          .receives = 0,
          .bytes = step_blocks(k, self.ranks) * length,
          .packet_bytes = length == 0 ? 0 : fragment_blocks(k, length) * length};
}

Rank rank_at(const Membership& self, uint32_t position) {
  return plus(self.rank, position, self.ranks);
}

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
  const uint32_t read = own_state<Kept>(piece).own_read;
  if (read == scope.member.membership.ranks) return false;
  return is_staged(scope.operation) || read - piece.arrived <= kRunsMax;
}

// Reads own blocks of a piece, as many as may be under way at once.
void read_own(const Scope& scope, Piece& piece, uint32_t number) {
  auto& [card, member, operation] = scope;
  if (piece.own != OwnBlock::kReading) return;
  const uint32_t length = piece_length(operation, number);
  const bool staged = is_staged(operation);
  auto& kept = own_state<Kept>(piece);
  while (may_read_own(scope, piece)) {
    const uint32_t blocks = own_batch(scope, kept.own_read, length);
    const uint32_t reads = staged ? 1 : blocks;
    Packet* packet = take_bounce_or_starve(scope, reads);
    if (packet == nullptr) return;
    for (uint32_t slot = 0; slot < reads; ++slot) {
      const Rank to = kept.own_read + slot;
      transfer_read(scope, {.step = kOwnRead,
                            .piece = number,
                            .host = own_address_for(operation, to, number),
                            .card = packet->payload + slot * length,
                            .bytes = staged ? blocks * length : length,
                            .packet = packet,
                            .detail = slot << 16 | to});
    }
    kept.own_read = static_cast<uint16_t>(kept.own_read + blocks);
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

void own_moved(const Scope& scope, Piece& piece, const TransferDone& done) {
  if (done.step == kOwnRead) {
    place_own(scope, piece, done);
  } else {
    own_placed(scope, piece, 1);
  }
}

// What was sent.
stepping::Stretch retained(const Membership& self) {
  return {self.ranks, image_blocks(self.ranks) - self.ranks};
}

void open(const Scope& scope) {
  const uint32_t blocks = image_blocks(scope.member.membership.ranks);
  pieces_open(scope, piece_bytes_for(blocks), CONFIG_STAGING_BYTES, blocks);
}

// Blocks of a packet that lie side by side where their way goes on.
struct Run {
  uint32_t position;
  uint32_t offset;  // bytes, in the packet
  uint32_t bytes;
};

// Puts each of them there.
template <typename Put>
void put_runs(const Scope& scope, const Packet* packet, const stepping::Exchange& exchange,
              Put put) {
  const peal_wire_header& header = *packet->header;
  const uint32_t k = header.hop;
  const uint32_t length = piece_length(scope.operation, header.piece);
  if (length == 0) return;
  const uint32_t blocks = header.length / length;
  const uint32_t first = header.fragment * (exchange.packet_bytes / length);
  for (uint32_t done = 0; done < blocks;) {
    const uint32_t index = first + done;
    const uint32_t run = std::min(run_blocks(k, index), blocks - done);
    put(Run{position_of(way_of(k, index), k + 1, scope.member.membership.ranks), done * length,
            run * length});
    done += run;
  }
}

void stage(const Scope& scope, Packet* packet, const stepping::Exchange& exchange) {
  put_runs(scope, packet, exchange, [&](const Run& run) {
    std::memcpy(staging_address(scope.member, scope.operation, run.position),
                packet->payload + run.offset, run.bytes);
  });
  count(scope.card, PEAL_COUNTER_STAGED);
}

bool land(const Scope& scope, Piece& piece, Packet* packet, const stepping::Exchange& exchange) {
  const peal_wire_header& header = *packet->header;
  if (header.length > 0 && !dma_available(scope.card, kRunsMax)) return false;
  put_runs(scope, packet, exchange, [&](const Run& run) {
    stepping::write_landed(scope, piece, packet, packet->payload + run.offset,
                           {header.piece, run.position, 0, run.bytes});
  });
  return true;
}

constexpr stepping::Plan kPlan = {
    exchange_of, step_from, stage,    land,
    start_own,   own_moved, retained, stepping::deliver_image(rank_at),
    read_own};

}  // namespace

constinit const AlgorithmFunctions kFunctions = stepping::functions<kPlan>(alltoall::check, open);

}  // namespace peal::bruck
