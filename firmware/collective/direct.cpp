// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct.h"

#include <bit>
#include <cstring>

#include "firmware/base/assert.h"
#include "firmware/base/mutation.h"
#include "firmware/group/early.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/liveness.h"
#include "firmware/group/remote.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/repair.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal::direct {
namespace {

// Transfers of a piece that may be under way when it begins another one.
constexpr uint32_t kTransfersAtOnce = 8;
// Ranks that are asked, or watched, at a time.
constexpr uint32_t kAskedAtOnce = 8;

// Where a transfer goes on.
enum Goal : uint8_t {
  kOwnRead,    // own block into a packet: to be kept and sent, or for the rank itself
  kOwnForAll,  // the same, for all that it was not sent to yet
  kOwnKept,    // it lies in the channel
  kLand,       // a block to the user
  kLandEarly,  // into the channel: the user's memory is not known, or not free yet
  kEarlyRead,  // from there into a bounce packet
};

// A piece's own blocks are counted by their way: that with index i is for rank + i, the first for
// the rank itself. One for all is kept once (Piece::retained), and can be repaired before that.
struct Sending {
  uint16_t next;               // first one that was not begun
  uint16_t kept;               // all below are sent and lie in the channel, where they must
  uint16_t ahead;              // the same of those behind, a bit each
  uint16_t early_count;        // bits in early
  uint16_t waiting;            // blocks that wait in their packets (group/early.h)
  bool reading;                // the one for all
  bool copied;                 // it has gone, or goes, to the channel and to the user
  bool alone;                  // there was no packet beside it: the next rank gets one to itself
  uint64_t early[kRankWords];  // blocks that lie in the channel, by origin
};
static_assert(kTransfersAtOnce < 16, "own blocks that are being kept must fit the bits of ahead");

// Of the operation.
struct Exchange {
  uint32_t way;  // with whom the next questions begin, so that all get their turn
  Own own;
};

bool is_for_all(Operation& operation) {
  return own_state<Exchange>(operation).own == Own::kOneForAll;
}

uint32_t way_of(const Membership& self, Rank to) { return minus(to, self.rank, self.ranks); }

// Own blocks of this piece go to the channel as well: it may be asked for when the user's memory is
// the user's again, or holds what others sent.
bool is_kept(Operation& operation, uint32_t number) {
  const bool overwritten = operation.command.in_place && !is_for_all(operation);
  return overwritten || number + kPieceWindow >= operation.piece_count;
}

bool is_kept_now(const Piece& piece, uint32_t way) {
  const auto& sending = own_state<Sending>(piece);
  if (way < sending.kept) return true;
  return way - sending.kept < 16 && (sending.ahead >> (way - sending.kept) & 1) != 0;
}

void note_kept(Piece& piece, uint32_t way) {
  auto& sending = own_state<Sending>(piece);
  sending.ahead = static_cast<uint16_t>(sending.ahead | 1u << (way - sending.kept));
  while ((sending.ahead & 1) != 0) {
    sending.ahead = static_cast<uint16_t>(sending.ahead >> 1);
    ++sending.kept;
  }
}

// A place for each rank in the channel. All pieces have places of the same size, whatever the last
// one's length is.
HostAddress place_address(const Scope& scope, uint32_t number, Rank rank) {
  auto& [card, member, operation] = scope;
  return image_address(member, operation, number, 0, rank * operation.piece_bytes);
}

// Where the own block for a rank is kept. One for all has the own rank's place, where no block ever
// waits.
HostAddress kept_address(const Scope& scope, uint32_t number, Rank to) {
  const bool all = is_for_all(scope.operation);
  return place_address(scope, number, all ? Rank{scope.member.membership.rank} : to);
}

// Where a block waits for the user's memory: in the place of what was kept for its origin of the
// piece W before, which it has, or it would not have sent this.
HostAddress early_address(const Scope& scope, uint32_t number, Rank origin) {
  return place_address(scope, number + kPieceWindow, origin);
}

// The user's block for a rank.
HostAddress given_address(Operation& operation, Rank to, uint32_t number) {
  return is_for_all(operation) ? own_address(operation, number)
                               : own_address_for(operation, to, number);
}

bool start_own(const Scope& /*scope*/, Piece& piece, uint32_t /*number*/) {
  piece.own = OwnBlock::kReading;
  return true;
}

void prepare(const Scope& scope, Packet* packet, const peal_peer_address& to, uint32_t number) {
  auto& [card, member, operation] = scope;
  address_packet(to, packet_kind(operation, PEAL_PACKET_DATA), packet->header);
  packet->header->piece = number;
  packet->header->origin = member.membership.rank;
  packet->header->length = static_cast<uint16_t>(piece_length(operation, number));
  packet->payload_bytes = packet->header->length;
}

void launch_first(const Scope& scope, Packet* packet, Rank to, bool payload_summed = false) {
  Membership& self = scope.member.membership;
  const uint32_t entry = peer_entry(self.rank, to, self.ranks);
  if (entry != kNoPeer) edge_count(self.peers[entry], packet->header);
  count(scope.card, PEAL_COUNTER_SENT_DATA);
  launch_packet(scope.card, packet, payload_summed);
}

// Begins with the next own block of the piece. False when it cannot now.
bool begin_own(const Scope& scope, uint32_t number, uint32_t way) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const Rank to = plus(self.rank, way, self.ranks);
  const peal_peer_address* address = nullptr;
  if (way != 0) {
    address = find_address(card, member, to);
    if (address == nullptr) return false;
  }
  const uint32_t length = piece_length(operation, number);
  if (length > 0 && !dma_available(card, 1)) {
    count(card, PEAL_COUNTER_NO_DMA_RECORD);
    return false;
  }
  Packet* packet = take_packet(card);
  if (packet == nullptr) return false;
  packet->payload_bytes = length;
  if (address != nullptr) prepare(scope, packet, *address, number);
  if (length == 0) {
    launch_first(scope, packet, to);
    return true;
  }
  const bool passes = way != 0 && (is_for_all(operation) || !is_kept(operation, number));
  if (passes) count(card, PEAL_COUNTER_SENT_DATA);
  transfer_read(scope, {.role = passes ? TransferRole::kSendOwn : TransferRole::kPart,
                        .step = kOwnRead,
                        .piece = number,
                        .host = given_address(operation, to, number),
                        .card = packet->payload,
                        .bytes = length,
                        .packet = packet,
                        .detail = passes ? peer_entry(self.rank, to, self.ranks) : way});
  return true;
}

// The own block stays where it is: in place, and where there are no bytes.
bool is_there(const Operation& operation, uint32_t number, uint32_t way) {
  return way == 0 && (operation.command.in_place || piece_length(operation, number) == 0);
}

// The block for all, to one rank, in the packet that it is read into.
void send_alone(const Scope& scope, Piece& piece, uint32_t number) {
  auto& sending = own_state<Sending>(piece);
  if (!begin_own(scope, number, sending.next)) {
    operation_starved(scope);
    return;
  }
  sending.alone = false;
  sending.kept = ++sending.next;
}

// Reads the one block for all, for those that it was not sent to yet.
void read_for_all(const Scope& scope, Piece& piece, uint32_t number) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  auto& sending = own_state<Sending>(piece);
  if (sending.reading || sending.next == self.ranks || piece.dma >= kTransfersAtOnce) return;
  if (sending.alone) {
    send_alone(scope, piece, number);
    return;
  }
  const Rank first = plus(self.rank, sending.next, self.ranks);
  if (first != self.rank && find_address(card, member, first) == nullptr) {
    operation_starved(scope);
    return;
  }
  if (!dma_available(card, 1)) {
    count(card, PEAL_COUNTER_NO_DMA_RECORD);
    operation_starved(scope);
    return;
  }
  Packet* packet = take_packet(card);
  if (packet == nullptr) {
    operation_starved(scope);
    return;
  }
  packet->payload_bytes = piece_length(operation, number);
  sending.reading = true;
  transfer_read(scope, {.step = kOwnForAll,
                        .piece = number,
                        .host = own_address(operation, number),
                        .card = packet->payload,
                        .bytes = packet->payload_bytes,
                        .packet = packet});
}

void send_own(const Scope& scope, Piece& piece, uint32_t number) {
  auto& [card, member, operation] = scope;
  auto& sending = own_state<Sending>(piece);
  if (is_for_all(operation) && piece_length(operation, number) > 0) {
    read_for_all(scope, piece, number);
    return;
  }
  const bool empty = piece_length(operation, number) == 0;
  while (sending.next < member.membership.ranks && piece.dma < kTransfersAtOnce &&
         sending.next - sending.kept < 16) {
    const uint32_t way = sending.next;
    const bool there = is_there(operation, number, way);
    if (!there && !begin_own(scope, number, way)) {
      operation_starved(scope);
      return;
    }
    ++sending.next;
    if (there || empty || (way != 0 && !is_kept(operation, number))) note_kept(piece, way);
  }
}

// An own block has been read: to the user, or to the channel and away.
void on_own_read(const Scope& scope, Piece& piece, const TransferDone& done) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const Rank to = plus(self.rank, done.detail, self.ranks);
  const bool own = done.detail == 0;
  // The read has just given its record back, so there is one.
  transfer_write(scope, {.step = own ? kLand : kOwnKept,
                         .piece = done.piece,
                         .host = own ? user_address(operation, to, done.piece)
                                     : kept_address(scope, done.piece, to),
                         .card = done.packet->payload,
                         .bytes = done.bytes,
                         .packet = done.packet,
                         .detail = done.detail});
  if (own) {
    note_kept(piece, 0);
    return;
  }
  Packet* copy = share_packet(card, done.packet);
  if (copy == nullptr) {
    // Counted. A gap makes a peer ask for it; a rank that is none asks in silence.
    const uint32_t entry = peer_entry(self.rank, to, self.ranks);
    if (entry != kNoPeer) edge_skip(member.membership.peers[entry]);
    return;
  }
  std::memcpy(copy->header, done.packet->header, sizeof(*copy->header));
  launch_first(scope, copy, to);
}

// To as many as there are packets for and whose addresses are known; the others get it by another
// read. False: some are left.
bool send_to_all(const Scope& scope, Piece& piece, const TransferDone& done) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  auto& sending = own_state<Sending>(piece);
  const uint32_t payload_crc = payload_sum(card, done.packet->payload, done.bytes);
  if (sending.next == 0) sending.next = 1;
  for (const uint32_t first = sending.next; sending.next < self.ranks; ++sending.next) {
    const Rank to = plus(self.rank, sending.next, self.ranks);
    const peal_peer_address* address = find_address(card, member, to);
    if (address == nullptr) return false;
    Packet* copy = share_packet(card, done.packet);
    if (copy == nullptr) {
      sending.alone = sending.next == first;
      return false;
    }
    prepare(scope, copy, *address, done.piece);
    copy->header->payload_crc = payload_crc;
    launch_first(scope, copy, to, true);
  }
  return true;
}

// The own block stays where it is in place; else it goes to the user.
void land_own(const Scope& scope, const TransferDone& done) {
  auto& [card, member, operation] = scope;
  if (operation.command.in_place) return;
  transfer_write(scope, {.step = kLand,
                         .piece = done.piece,
                         .host = user_address(operation, member.membership.rank, done.piece),
                         .card = done.packet->payload,
                         .bytes = done.bytes,
                         .packet = done.packet});
}

void keep_own(const Scope& scope, const TransferDone& done) {
  transfer_write(scope, {.step = kOwnKept,
                         .piece = done.piece,
                         .host = kept_address(scope, done.piece, 0),
                         .card = done.packet->payload,
                         .bytes = done.bytes,
                         .packet = done.packet});
}

// The one block for all has been read: to the channel, then to the user, each with the record of
// the transfer before, and away. (In this order: to ask for an address takes a record.)
void on_read_for_all(const Scope& scope, Piece& piece, const TransferDone& done) {
  auto& sending = own_state<Sending>(piece);
  sending.reading = false;
  if (!sending.copied) {
    sending.copied = true;
    if (is_kept(scope.operation, done.piece)) {
      keep_own(scope, done);
    } else {
      land_own(scope, done);
    }
  }
  if (!send_to_all(scope, piece, done)) operation_starved(scope);
  sending.kept = sending.next;
}

// An own block lies in the channel.
void on_own_kept(const Scope& scope, Piece& piece, const TransferDone& done) {
  if (!is_for_all(scope.operation)) {
    note_kept(piece, done.detail);
    return;
  }
  piece.retained = true;
  if (!is_refused(scope.operation)) land_own(scope, done);
}

bool has_early(const Piece& piece, Rank origin) {
  return (own_state<Sending>(piece).early[origin / 64] >> (origin % 64) & 1) != 0;
}

void note_early(Piece& piece, Rank origin) {
  auto& sending = own_state<Sending>(piece);
  sending.early[origin / 64] |= uint64_t{1} << (origin % 64);
  ++sending.early_count;
}

// In place the block of a rank lies where that for it lay: not before that one is kept. Where one
// block is for all it overwrites nothing.
bool is_free(const Scope& scope, const Piece& piece, Rank origin) {
  if (!is_posted(scope.operation)) return false;
  if (!scope.operation.command.in_place || is_for_all(scope.operation)) return true;
  return is_kept_now(piece, way_of(scope.member.membership, origin));
}

// Blocks that waited in the channel, to the user.
void move_early(const Scope& scope, Piece& piece, uint32_t number) {
  auto& [card, member, operation] = scope;
  auto& sending = own_state<Sending>(piece);
  for (Rank origin = 0; sending.early_count > 0 && origin < member.membership.ranks; ++origin) {
    if (!has_early(piece, origin) || !is_free(scope, piece, origin)) continue;
    if (piece.dma >= kTransfersAtOnce) return;
    if (!dma_available(card, 1)) {
      count(card, PEAL_COUNTER_NO_DMA_RECORD);
      operation_starved(scope);
      return;
    }
    Packet* bounce = take_packet(card);
    if (bounce == nullptr) {
      operation_starved(scope);
      return;
    }
    transfer_read(scope, {.step = kEarlyRead,
                          .piece = number,
                          .host = early_address(scope, number, origin),
                          .card = bounce->payload,
                          .bytes = piece_length(operation, number),
                          .packet = bounce,
                          .detail = origin});
    sending.early[origin / 64] &= ~(uint64_t{1} << (origin % 64));
    --sending.early_count;
  }
}

// Blocks that waited in their packets, to the user.
void land_early(const Scope& scope) {
  auto& [card, member, operation] = scope;
  for (uint32_t left = operation.early_count; left > 0; --left) {
    const EarlyPacket& early = early_first(card, operation);
    Piece& piece = piece_slot(operation, early.piece);
    if (!is_free(scope, piece, early.origin) || piece.dma >= kTransfersAtOnce) {
      early_put_back(card, operation);
      continue;
    }
    if (!dma_available(card, 1)) {
      count(card, PEAL_COUNTER_NO_DMA_RECORD);
      operation_starved(scope);
      return;
    }
    transfer_write(scope, {.step = kLand,
                           .piece = early.piece,
                           .host = user_address(operation, early.origin, early.piece),
                           .card = early.packet->payload,
                           .bytes = piece_length(operation, early.piece),
                           .packet = early.packet,
                           .detail = early.origin});
    --own_state<Sending>(piece).waiting;
    early_pop(card, operation);
  }
}

bool piece_is_done(const Scope& scope, const Piece& piece) {
  const uint32_t ranks = scope.member.membership.ranks;
  const auto& sending = own_state<Sending>(piece);
  return piece.arrived + 1u == ranks && sending.kept == ranks && sending.early_count == 0 &&
         sending.waiting == 0 && piece.dma == 0;
}

// Where the block for a rank can be read again.
HostAddress repair_source(const Scope& scope, uint32_t number, Rank to, bool kept) {
  if (kept && !mutated(Mutation::kNoRetention)) return kept_address(scope, number, to);
  return given_address(scope.operation, to, number);
}

// Puts a block where it belongs: the user's memory or, when that is not possible yet, the channel,
// unless it can wait where it is.
// False: not now.
bool land(const Scope& scope, Piece& piece, Packet* packet) {
  auto& [card, member, operation] = scope;
  const uint32_t number = packet->header->piece;
  const Rank origin = packet->header->origin;
  const uint32_t length = packet->header->length;
  if (length == 0) return true;
  const bool free = is_free(scope, piece, origin);
  if (!free && early_keep(scope, packet, number, origin)) {
    ++own_state<Sending>(piece).waiting;
    return true;
  }
  if (!dma_available(card, 1)) return false;
  // What was kept for it of the piece W before may still be on its way to that place.
  if (!free && number >= kPieceWindow && piece_is_open(operation, number - kPieceWindow) &&
      !is_kept_now(piece_slot(operation, number - kPieceWindow),
                   way_of(member.membership, origin))) {
    return false;
  }
  transfer_write(scope, {.step = free ? kLand : kLandEarly,
                         .piece = number,
                         .host = free ? user_address(operation, origin, number)
                                      : early_address(scope, number, origin),
                         .card = packet->payload,
                         .bytes = length,
                         .packet = packet,
                         .detail = origin});
  return true;
}

// Which pieces of the window have not come from this rank, a bit each. Where a loss is known for
// certain, those that should have come before what shows it.
uint64_t missing_from(const Scope& scope, Rank origin) {
  Operation& operation = scope.operation;
  uint64_t missing = 0;
  uint64_t come = 0;
  for (uint32_t i = 0; i < kPieceSlots && operation.base + i < operation.piece_count; ++i) {
    const uint32_t number = operation.base + i;
    const bool here =
        piece_is_open(operation, number) && has_bit(piece_slot(operation, number), origin);
    if (here) come |= uint64_t{1} << i;
    if (!here && i < kPieceWindow) missing |= uint64_t{1} << i;
  }
  const bool before = come != 0 && asks_suspects(operation.inquiry) && !operation.inquiry.all_sent;
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

enum class Answer : uint8_t { kRepaired, kNotYet, kStale };

// Sends an own block again: what is not kept is still the card's in the user's memory.
bool repair(const Scope& scope, uint32_t number, const peal_peer_address& to) {
  auto& [card, member, operation] = scope;
  const uint32_t length = piece_length(operation, number);
  if (!may_repair(card)) return false;
  if (length > 0 && !dma_available(card, 1)) {
    count(card, PEAL_COUNTER_NO_DMA_RECORD);
    return false;
  }
  Packet* packet = take_packet(card);
  if (packet == nullptr) return false;
  prepare(scope, packet, to, number);
  packet->header->flags = PEAL_PACKET_REPAIR;
  count(card, PEAL_COUNTER_SENT_REPAIR);
  if (length == 0) {
    launch_packet(card, packet, false);
    return true;
  }
  const bool kept = is_kept(operation, number) &&
                    (!is_for_all(operation) || piece_slot(operation, number).retained);
  transfer_read(scope, {.role = kept ? TransferRole::kRepair : TransferRole::kRepairOwn,
                        .step = kOwnRead,
                        .piece = number,
                        .host = repair_source(scope, number, to.rank, kept),
                        .card = packet->payload,
                        .bytes = length,
                        .packet = packet,
                        .detail = kNoPeer});
  return true;
}

Answer answer(const Scope& scope, uint32_t number, const peal_peer_address& to) {
  Operation& operation = scope.operation;
  if (!piece_is_open(operation, number)) {
    const bool passed = operation.phase == OperationPhase::kFinished || number < operation.base;
    return passed ? Answer::kStale : Answer::kNotYet;
  }
  // Everybody has the pieces of an operation that is over here, but for those that are kept.
  if (operation.phase == OperationPhase::kFinished && !is_kept(operation, number)) {
    return Answer::kStale;
  }
  const Piece& piece = piece_slot(operation, number);
  const uint32_t way = way_of(scope.member.membership, to.rank);
  const bool sent = piece.own == OwnBlock::kReading && is_kept_now(piece, way);
  return sent && repair(scope, number, to) ? Answer::kRepaired : Answer::kNotYet;
}

}  // namespace

void open(const Scope& scope, Own own) {
  own_state<Exchange>(scope.operation).own = own;
  pieces_open(scope, piece_bytes_for(scope.member.membership.ranks), 0);
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
  if (header.length != piece_length(operation, header.piece)) return PEAL_COUNTER_DROP_LENGTH;
  if (operation.phase == OperationPhase::kFinished || header.piece < operation.base) {
    return PEAL_COUNTER_DUPLICATE;
  }
  Piece* piece = piece_open(operation, header.piece);
  if (piece == nullptr) return PEAL_COUNTER_DROP_PIECE;
  if (has_bit(*piece, header.origin) && !mutated(Mutation::kDuplicateAccepted)) {
    return PEAL_COUNTER_DUPLICATE;
  }
  if (!land(scope, *piece, packet)) return PEAL_COUNTER_DROP_NO_DMA;
  if (!is_posted(operation)) count(card, PEAL_COUNTER_EARLY_DATA);
  set_bit(*piece, header.origin);
  ++piece->arrived;
  operation_progressed(scope);
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
    case kOwnKept:
      on_own_kept(scope, piece, done);
      break;
    case kLandEarly:
      note_early(piece, done.detail);
      break;
    case kEarlyRead:
      if (is_refused(scope.operation)) break;
      transfer_write(scope, {.step = kLand,
                             .piece = done.piece,
                             .host = user_address(scope.operation, done.detail, done.piece),
                             .card = done.packet->payload,
                             .bytes = done.bytes,
                             .packet = done.packet});
      return false;
    default:
      break;
  }
  return true;
}

void advance(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  uint32_t base;
  do {
    base = operation.base;
    start_own_pieces(scope, start_own);
    for (uint32_t number = base; number < base + kPieceSlots && number < operation.piece_count;
         ++number) {
      if (!piece_is_open(operation, number)) continue;
      Piece& piece = piece_slot(operation, number);
      if (own_state<Sending>(piece).early_count > 0) move_early(scope, piece, number);
      if (piece.own == OwnBlock::kReading) send_own(scope, piece, number);
    }
    // Others wait for the own blocks, and only the host for these.
    if (early_waits(operation)) land_early(scope);
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
  if (!is_posted(operation)) return;
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
