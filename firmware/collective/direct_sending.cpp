// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_sending.h"

#include <cstring>

#include "firmware/group/remote.h"
#include "firmware/operation/frame.h"
#include "firmware/operation/operation.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal::direct {
namespace {

void launch_first(const Scope& scope, Packet* packet, Rank to, bool payload_summed = false) {
  Membership& self = scope.member.membership;
  const uint32_t entry = peer_entry(self.rank, to, self.ranks);
  if (entry != kNoPeer) edge_count(self.peers[entry], packet->header);
  count(scope.card, PEAL_COUNTER_SENT_DATA);
  launch_packet(scope.card, packet, payload_summed);
}

// In a packet of its own, while the other one's payload goes to the channel.
void send_copy(const Scope& scope, Packet* packet, Rank to) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  Packet* copy = share_packet(card, packet);
  if (copy == nullptr) {
    // Counted. A gap makes a peer ask for it; a rank that is none asks in silence.
    const uint32_t entry = peer_entry(self.rank, to, self.ranks);
    if (entry != kNoPeer) edge_skip(member.membership.peers[entry]);
    return;
  }
  std::memcpy(copy->header, packet->header, sizeof(*copy->header));
  launch_first(scope, copy, to);
}

// An own block of parts goes to the channel: first what it is. The packet's header is ready.
void keep_frame(const Scope& scope, uint32_t number, uint32_t way, Packet* packet) {
  const Membership& self = scope.member.membership;
  transfer_write(scope,
                 {.step = kOwnFramed,
                  .piece = number,
                  .host = kept_frame_address(scope, number, plus(self.rank, way, self.ranks)),
                  .card = frame_of(packet),
                  .bytes = kFrameBytes,
                  .packet = packet,
                  .detail = way});
}

void keep_block(const Scope& scope, const TransferDone& done, uint32_t bytes) {
  const Membership& self = scope.member.membership;
  const Rank to = plus(self.rank, done.detail, self.ranks);
  transfer_write(scope, {.step = kOwnKept,
                         .piece = done.piece,
                         .host = kept_address(scope, done.piece, to),
                         .card = done.packet->payload,
                         .bytes = bytes,
                         .packet = done.packet,
                         .detail = done.detail});
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
  const uint32_t length = length_for(scope, number, to);
  const bool framed = length == 0 && has_parts(operation) && is_kept(scope, number, to);
  Packet* packet = take_bounce(card, length > 0 || framed ? 1 : 0);
  if (packet == nullptr) return false;
  packet->payload_bytes = length;
  if (address != nullptr) prepare(scope, packet, *address, number);
  if (framed) {
    keep_frame(scope, number, way, packet);
    send_copy(scope, packet, to);
    return true;
  }
  if (length == 0) {
    launch_first(scope, packet, to);
    return true;
  }
  const bool passes = way != 0 && (is_for_all(operation) || !is_kept(scope, number, to));
  if (passes) count(card, PEAL_COUNTER_SENT_DATA);
  transfer_read(scope, {.role = passes ? TransferRole::kSendOwn : TransferRole::kPart,
                        .step = kOwnRead,
                        .piece = number,
                        .host = given_address(scope, number, to),
                        .card = packet->payload,
                        .bytes = length,
                        .packet = packet,
                        .detail = passes ? peer_entry(self.rank, to, self.ranks) : way});
  return true;
}

// The own block stays where it is: in place, and where there are no bytes.
bool is_there(const Scope& scope, uint32_t number, uint32_t way) {
  if (way != 0) return false;
  return scope.operation.command.in_place ||
         length_for(scope, number, scope.member.membership.rank) == 0;
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
  if (sending.reading || sending.next == self.ranks || piece.dma >= kPieceTransfers) return;
  if (sending.alone) {
    send_alone(scope, piece, number);
    return;
  }
  const Rank first = plus(self.rank, sending.next, self.ranks);
  if (first != self.rank && find_address(card, member, first) == nullptr) {
    operation_starved(scope);
    return;
  }
  Packet* packet = take_bounce_or_starve(scope);
  if (packet == nullptr) return;
  packet->payload_bytes = length_for(scope, number, self.rank);
  sending.reading = true;
  transfer_read(scope, {.step = kOwnForAll,
                        .piece = number,
                        .host = given_address(scope, number, self.rank),
                        .card = packet->payload,
                        .bytes = packet->payload_bytes,
                        .packet = packet});
}

// Is the block for this rank, which was begun with, done as far as repairs go? Else it is when it
// lies in the channel.
bool is_done_with(const Scope& scope, uint32_t number, uint32_t way) {
  if (way == 0) return is_there(scope, number, way);
  const Membership& self = scope.member.membership;
  const Rank to = plus(self.rank, way, self.ranks);
  if (!has_parts(scope.operation) && length_for(scope, number, to) == 0) return true;
  return !is_kept(scope, number, to);
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
                         .host = result_address(scope, done.piece, member.membership.rank),
                         .card = done.packet->payload,
                         .bytes = done.bytes,
                         .packet = done.packet});
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

}  // namespace

bool start_own(const Scope& scope, Piece& piece, uint32_t number) {
  piece.own = OwnBlock::kReading;
  own_state<Sending>(piece).expected = static_cast<uint16_t>(count_exchanges(scope, number));
  return true;
}

// But for what is in it.
void prepare_header(const Scope& scope, Packet* packet, const peal_peer_address& to,
                    uint32_t number) {
  auto& [card, member, operation] = scope;
  address_packet(to, packet_kind(operation, PEAL_PACKET_DATA), packet->header);
  packet->header->piece = number;
  packet->header->origin = member.membership.rank;
}

void prepare(const Scope& scope, Packet* packet, const peal_peer_address& to, uint32_t number) {
  prepare_header(scope, packet, to, number);
  packet->header->length = static_cast<uint16_t>(length_for(scope, number, to.rank));
  packet->payload_bytes = packet->header->length;
  if (has_parts(scope.operation)) {
    packet->header->block_bytes = static_cast<uint32_t>(part_for(scope, to.rank).bytes);
  }
}

void send_own(const Scope& scope, Piece& piece, uint32_t number) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  auto& sending = own_state<Sending>(piece);
  if (is_for_all(operation) && length_for(scope, number, self.rank) > 0) {
    read_for_all(scope, piece, number);
    return;
  }
  while (sending.next < self.ranks && piece.dma < kPieceTransfers &&
         sending.next - sending.kept < 16) {
    const uint32_t way = sending.next;
    const bool none =
        !exchanges(scope, number, plus(self.rank, way, self.ranks)) || is_there(scope, number, way);
    if (!none && !begin_own(scope, number, way)) {
      operation_starved(scope);
      return;
    }
    ++sending.next;
    if (none || is_done_with(scope, number, way)) note_kept(piece, way);
  }
}

// An own block has been read: to the user, or to the channel and away.
void on_own_read(const Scope& scope, Piece& piece, const TransferDone& done) {
  const Membership& self = scope.member.membership;
  const Rank to = plus(self.rank, done.detail, self.ranks);
  // The read has just given its record back, so there is one.
  if (done.detail == 0) {
    transfer_write(scope, {.step = kLand,
                           .piece = done.piece,
                           .host = result_address(scope, done.piece, to),
                           .card = done.packet->payload,
                           .bytes = done.bytes,
                           .packet = done.packet});
    note_kept(piece, 0);
    return;
  }
  if (has_parts(scope.operation)) {
    keep_frame(scope, done.piece, done.detail, done.packet);
  } else {
    keep_block(scope, done, done.bytes);
  }
  send_copy(scope, done.packet, to);
}

// The one block for all has been read: to the channel, then to the user, each with the record of
// the transfer before, and away. (In this order: to ask for an address takes a record.)
void on_read_for_all(const Scope& scope, Piece& piece, const TransferDone& done) {
  auto& sending = own_state<Sending>(piece);
  sending.reading = false;
  if (!sending.copied) {
    sending.copied = true;
    if (is_kept(scope, done.piece, scope.member.membership.rank)) {
      keep_own(scope, done);
    } else {
      land_own(scope, done);
    }
  }
  if (!send_to_all(scope, piece, done)) operation_starved(scope);
  sending.kept = sending.next;
}

// What an own block is lies in the channel. False: the block follows.
bool on_own_framed(const Scope& scope, Piece& piece, const TransferDone& done) {
  const uint32_t length = done.packet->header->length;
  if (length == 0) {
    note_kept(piece, done.detail);
    return true;
  }
  if (is_refused(scope.operation)) return true;
  keep_block(scope, done, length);
  return false;
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

}  // namespace peal::direct
