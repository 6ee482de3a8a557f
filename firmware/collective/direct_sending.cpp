// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_sending.h"

#include <cstring>

#include "firmware/collective/direct_blocks.h"
#include "firmware/collective/direct_landing.h"
#include "firmware/collective/direct_progress.h"
#include "firmware/group/at_hand.h"
#include "firmware/group/remote.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/operation/frame.h"
#include "firmware/operation/lead.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal::direct {
namespace {

// To the rank with this entry in the table of peers, or kNoPeer.
void launch_first(const Scope& scope, Packet* packet, uint32_t entry, bool payload_summed = false) {
  if (entry != kNoPeer) edge_count(scope.member.membership.peers[entry], packet->header);
  count(scope.card, PEAL_COUNTER_SENT_DATA);
  launch_packet(scope.card, packet, payload_summed);
}

// In a packet of its own, while the other one stays or its payload goes to the channel.
void send_copy(const Scope& scope, Packet* packet, uint32_t entry) {
  Packet* copy = share_packet(scope.card, packet);
  if (copy == nullptr) {
    // Counted. A gap makes a peer ask for it; a rank that is none asks in silence.
    if (entry != kNoPeer) edge_skip(scope.member.membership.peers[entry]);
    return;
  }
  std::memcpy(copy->header, packet->header, sizeof(*copy->header));
  launch_first(scope, copy, entry);
}

// An own block of parts goes to the channel: first what it is. The packet's header is ready.
void keep_frame(const Scope& scope, uint32_t number, uint32_t way, Packet* packet) {
  const Membership& self = scope.member.membership;
  transfer_write(scope, {.step = kOwnFramed,
                         .piece = number,
                         .host = kept_frame_address(scope, number, rank_at(self, way)),
                         .card = frame_of(packet),
                         .bytes = kFrameBytes,
                         .packet = packet,
                         .detail = way});
}

void keep_block(const Scope& scope, const TransferDone& done, uint32_t bytes) {
  const Membership& self = scope.member.membership;
  const Rank to = rank_at(self, done.detail);
  const TransferRequest request = {.step = kOwnKept,
                                   .piece = done.piece,
                                   .host = kept_address(scope, done.piece, to),
                                   .card = done.packet->payload,
                                   .bytes = bytes,
                                   .packet = done.packet,
                                   .detail = done.detail};
  transfer_start(scope, request, DmaKind::kWrite);
}

// What is exchanged in place is kept of all pieces, whose images others take in turn.
bool stays(const Scope& scope) {
  return has_room_for_sent(scope.card, scope.member) && !scope.operation.command.in_place;
}

// Begins with the next own block of the piece. False when it cannot now.
bool begin_own(const Scope& scope, const Pair& pair, uint32_t way, uint32_t number) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const Rank to = rank_at(self, way);
  const uint32_t entry = entry_of_ahead(way, self.ranks);
  const peal_peer_address* address = nullptr;
  if (way != 0) {
    address = find_address(card, member, to, entry);
    if (address == nullptr) return false;
  }
  const uint32_t length = length_for(scope, number, to);
  const bool framed = length == 0 && has_parts(operation) && is_kept(scope, pair, number);
  Packet* packet = take_for_own(card, length > 0 || framed ? 1 : 0);
  if (packet == nullptr) return false;
  packet->payload_bytes = length;
  if (address != nullptr) prepare(scope, packet, *address, number);
  if (framed) {
    keep_frame(scope, number, way, packet);
    send_copy(scope, packet, entry);
    return true;
  }
  if (length == 0) {
    launch_first(scope, packet, entry);
    return true;
  }
  const bool passes = way != 0 && (is_for_all(operation) || !is_kept(scope, pair, number));
  if (passes) count(card, PEAL_COUNTER_SENT_DATA);
  const TransferRequest request = {.role = passes ? TransferRole::kSendOwn : TransferRole::kPart,
                                   .step = kOwnRead,
                                   .piece = number,
                                   .host = given_address(scope, number, to),
                                   .card = packet->payload,
                                   .bytes = length,
                                   .packet = packet,
                                   .detail = passes ? entry : way};
  // In place others' blocks take its place before the operation is over.
  const bool lent = !operation.command.in_place;
  transfer_start(scope, request, lent ? DmaKind::kReadLent : DmaKind::kRead);
  return true;
}

// The own block stays where it is: in place, and where there are no bytes.
bool is_there(const Scope& scope, uint32_t number, uint32_t way) {
  if (way != 0) return false;
  return scope.operation.command.in_place ||
         length_for(scope, number, scope.member.membership.rank) == 0;
}

// The block for all, to one rank, in the packet that it is read into. False: not now.
bool send_alone(const Scope& scope, uint32_t way, uint32_t number) {
  if (!begin_own(scope, pair_at(scope, way), way, number)) return false;
  own_state<Exchange>(scope.operation).alone = false;
  note_begun(scope, way, number);
  note_sent(scope, way, number);
  return true;
}

// What was read in a packet of its own, to one rank.
void send_shared(const Scope& scope, Packet* copy, const peal_peer_address& to, uint32_t entry,
                 uint32_t number, uint32_t payload_crc) {
  prepare(scope, copy, to, number);
  copy->header->payload_crc = payload_crc;
  launch_first(scope, copy, entry, true);
}

// To a rank that was not there when it was read. False: not now.
bool send_at_hand(const Scope& scope, uint32_t way, const AtHand& block) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const uint32_t entry = entry_of_ahead(way, self.ranks);
  const peal_peer_address* to = find_address(card, member, rank_at(self, way), entry);
  Packet* copy = to != nullptr ? share_packet(card, block.packet) : nullptr;
  if (copy == nullptr) return false;
  const uint32_t number = block.number;
  send_shared(scope, copy, *to, entry, number, block.payload_crc);
  at_hand_given(scope, number);
  note_begun(scope, way, number);
  note_sent(scope, way, number);
  return true;
}

// Has the one block for all been read before, for the rank itself among others?
bool is_copied(const Scope& scope, uint32_t number) { return is_sent(pair_at(scope, 0), number); }

// Reads the one block for all, for the rank at this way and those that ask for it before it has
// come. False: not now.
bool read_for_all(const Scope& scope, uint32_t way, uint32_t number) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const AtHand* block = at_hand_find(scope, number);
  if (block != nullptr) return send_at_hand(scope, way, *block);
  Piece& piece = piece_slot(operation, number);
  if (piece.own == OwnBlock::kReading) {
    if (piece.number == number + 1) note_begun(scope, way, number);
    return piece.number == number + 1;
  }
  if (own_state<Exchange>(operation).alone && is_copied(scope, number)) {
    return send_alone(scope, way, number);
  }
  if (way != 0 && find_address(card, member, rank_at(self, way)) == nullptr) return false;
  Packet* packet = take_for_own(card, 1);
  if (packet == nullptr) return false;
  packet->payload_bytes = length_for(scope, number, self.rank);
  piece.own = OwnBlock::kReading;
  piece.number = number + 1;
  note_begun(scope, way, number);
  transfer_read(scope, {.step = kOwnForAll,
                        .piece = number,
                        .host = given_address(scope, number, self.rank),
                        .card = packet->payload,
                        .bytes = packet->payload_bytes,
                        .packet = packet});
  return true;
}

// Is the block for this rank, which was begun with, done as far as repairs go? Else it is when it
// is kept.
bool is_done_with(const Scope& scope, const Pair& pair, uint32_t way, uint32_t number) {
  if (way == 0) return is_there(scope, number, way);
  const Rank to = rank_at(scope.member.membership, way);
  if (!has_parts(scope.operation) && length_for(scope, number, to) == 0) return true;
  return !is_kept(scope, pair, number);
}

// Was the own block begun for this pair, and not sent?
bool is_awaited(const Pair& pair, uint32_t number) {
  if (number - pair.base >= kPieceSlots) return false;
  return (pair.begun & ~pair.kept & bit_in(pair, number)) != 0;
}

// To as many as there are packets for and whose addresses are known; for the others, and who has
// not come that far, it stays at hand, or is read again. False: some are left.
bool send_to_all(const Scope& scope, const TransferDone& done) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const uint32_t payload_crc = payload_sum(card, done.packet->payload, done.bytes);
  uint32_t sent = 0;
  uint32_t lacking = 0;
  bool all = true;
  bool no_packets = false;
  for (uint32_t way = 1; way < self.ranks; ++way) {
    const Pair& pair = pair_at(scope, way);
    if (!is_awaited(pair, done.piece)) {
      lacking += is_sent(pair, done.piece) ? 0 : 1;
      continue;
    }
    const uint32_t entry = entry_of_ahead(way, self.ranks);
    const peal_peer_address* to = find_address(card, member, rank_at(self, way), entry);
    Packet* copy = to != nullptr && !no_packets ? share_packet(card, done.packet) : nullptr;
    no_packets = no_packets || (to != nullptr && copy == nullptr);
    if (copy != nullptr) {
      send_shared(scope, copy, *to, entry, done.piece, payload_crc);
      note_sent(scope, way, done.piece);
      ++sent;
    } else {
      all = false;
      ++lacking;
      note_put_off(scope, way, done.piece);
    }
  }
  own_state<Exchange>(operation).alone = no_packets && sent == 0;
  // The first W go to all, whoever has come: who lacks one of these is held up by this card, whose
  // packets or lead it is, and not late.
  if (lacking > 0 && done.piece >= kPieceWindow) {
    at_hand_keep(scope, done.packet, done.piece, payload_crc, lacking);
  }
  return all;
}

// The own block stays where it is in place; else it goes to the user.
void land_own(const Scope& scope, const TransferDone& done) {
  auto& [card, member, operation] = scope;
  if (operation.command.in_place) return;
  to_user(scope, done.piece, member.membership.rank, done.packet, done.packet->payload, done.bytes);
}

void keep_own(const Scope& scope, const TransferDone& done) {
  if (!has_parts(scope.operation)) {
    keep_block(scope, done, done.bytes);
    return;
  }
  peal_peer_address nowhere = {};
  nowhere.rank = scope.member.membership.rank;
  prepare(scope, done.packet, nowhere, done.piece);
  keep_frame(scope, done.piece, 0, done.packet);
}

// The next own block of a pair. False: not now.
bool send_next(const Scope& scope, const Pair& pair, uint32_t way) {
  const uint32_t number = next_of(pair);
  if (is_for_all(scope.operation) && length_for(scope, number, scope.member.membership.rank) > 0) {
    return read_for_all(scope, way, number);
  }
  const bool there = is_there(scope, number, way);
  if (!there && !begin_own(scope, pair, way, number)) return false;
  note_begun(scope, way, number);
  if (there || is_done_with(scope, pair, way, number)) note_sent(scope, way, number);
  return true;
}

}  // namespace

void send_own(const Scope& scope) {
  Operation& operation = scope.operation;
  auto& exchange = own_state<Exchange>(operation);
  Lead& lead = scope.card.lead;
  uint32_t way = exchange.turn;
  uint32_t begun = 0;
  while (find_ready(scope, &way)) {
    if (operation.dma - exchange.landing >= scope.card.transfers_most) break;
    if (lead.packets >= kLeadMost && (!operation.in_turn || begun >= kLeadOfTurn)) {
      operation_waits_for_turn(scope);
      break;
    }
    if (!send_next(scope, pair_at(scope, way), way)) {
      operation_starved(scope);
      break;
    }
    if (way != 0) lead_begun(lead);
    ++begun;
    ++way;
  }
  exchange.turn = static_cast<uint16_t>(way);
}

// An own block has been read: to the user, or away, where it stays in its packet or goes to the
// channel besides.
void on_own_read(const Scope& scope, const TransferDone& done) {
  const Membership& self = scope.member.membership;
  // The read has just given its record back, so there is one.
  if (done.detail == 0) {
    to_user(scope, done.piece, self.rank, done.packet, done.packet->payload, done.bytes);
    note_sent(scope, 0, done.piece);
    return;
  }
  if (stays(scope)) {
    sent_block_keep(scope, done.packet, done.detail, done.piece);
    note_sent(scope, done.detail, done.piece);
  } else if (has_parts(scope.operation)) {
    keep_frame(scope, done.piece, done.detail, done.packet);
  } else {
    keep_block(scope, done, done.bytes);
  }
  send_copy(scope, done.packet, entry_of_ahead(done.detail, self.ranks));
}

// The one block for all has been read: to the channel, then to the user, each with the record of
// the transfer before, and away. (In this order: to ask for an address takes a record.)
void on_read_for_all(const Scope& scope, const TransferDone& done) {
  piece_slot(scope.operation, done.piece).own = OwnBlock::kUnread;
  if (!is_copied(scope, done.piece)) {
    if (is_kept(scope, pair_at(scope, 0), done.piece)) {
      keep_own(scope, done);
    } else {
      land_own(scope, done);
    }
    note_sent(scope, 0, done.piece);
  }
  if (!send_to_all(scope, done)) operation_starved(scope);
}

// What an own block is lies in the channel. False: the block follows.
bool on_own_framed(const Scope& scope, const TransferDone& done) {
  const uint32_t length = done.packet->header->length;
  if (length == 0) {
    note_sent(scope, done.detail, done.piece);
    return true;
  }
  if (is_refused(scope.operation)) return true;
  keep_block(scope, done, length);
  return false;
}

// An own block lies in the channel.
void on_own_kept(const Scope& scope, const TransferDone& done) {
  if (!is_for_all(scope.operation)) {
    note_sent(scope, done.detail, done.piece);
    return;
  }
  note_retained(scope.operation, done.piece);
  if (!is_refused(scope.operation)) land_own(scope, done);
}

}  // namespace peal::direct
