// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/repair.h"

#include <cstring>

#include "firmware/base/mutation.h"
#include "firmware/collective/allgather/hopping.h"
#include "firmware/dma/dma.h"
#include "firmware/operation/pieces.h"
#include "firmware/wire/transmit.h"

namespace peal {
namespace {

// Fills a packet from the image and sends it: at once from staging, after a DMA read from the
// channel.
bool send_from_image(const Scope& scope, Packet* packet, uint32_t number, uint32_t offset,
                     uint32_t bytes, bool repair) {
  auto& [card, member, operation] = scope;
  packet->payload_bytes = bytes;
  if (is_staged(operation) || bytes == 0) {
    if (bytes > 0) std::memcpy(packet->payload, staging_address(member, operation, offset), bytes);
    launch_packet(card, packet, false);
    return true;
  }
  HostAddress from = image_address(member, operation, number, offset);
  if (mutated(Mutation::kNoRetention) && repair && operation.command.opcode != 0) {
    const HostAddress& send = operation.command.send;
    from = {send.region, send.offset + uint64_t{number} * operation.piece_bytes};
  }
  dma_read(scope, {.kind = DmaKind::kSend,
                   .piece = number,
                   .host = from,
                   .card = packet->payload,
                   .bytes = bytes,
                   .packet = packet,
                   .aux = repair ? kRepairRead : 0});
  return true;
}

}  // namespace

bool may_repair(Card& card) {
  if (pace_repair(card.repairs, card.timeouts, card.now)) return true;
  count(card, PEAL_COUNTER_HELD_BACK_REPAIR);
  return false;
}

bool repair_block(const Scope& scope, uint32_t number, Rank origin,
                  const peal_peer_address& child) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  if (!piece_is_open(operation, number)) return false;
  const Piece& piece = piece_slot(operation, number);
  const bool own = origin == self.rank;
  if (!is_staged(operation) && !(own && piece.retained)) return false;
  if (!has_bit(piece, origin) || !may_repair(card)) return false;
  if (!dma_available(card, 1)) {
    count(card, PEAL_COUNTER_NO_DMA_RECORD);
    return false;
  }
  Packet* packet = take_packet(card);
  if (packet == nullptr) return false;
  const uint32_t place = hopping::place(child.rank, origin, self.ranks);
  const uint32_t length = piece_length(operation, number);
  address_packet(card, self, child, packet_kind(operation, PEAL_PACKET_DATA), packet->header);
  packet->header->flags = PEAL_PACKET_REPAIR;
  packet->header->piece = number;
  packet->header->origin = static_cast<uint16_t>(origin);
  packet->header->hop = static_cast<uint8_t>(hopping::arriving_hop(place));
  packet->header->length = static_cast<uint16_t>(length);
  count(card, PEAL_COUNTER_SENT_REPAIR);
  return send_from_image(scope, packet, number, origin * length, length, true);
}

bool send_fragment(const Scope& scope, const StepFragment& what, const peal_peer_address& to,
                   bool repair) {
  auto& [card, member, operation] = scope;
  if (!dma_available(card, 1)) {
    count(card, PEAL_COUNTER_NO_DMA_RECORD);
    return false;
  }
  Packet* packet = take_packet(card);
  if (packet == nullptr) return false;
  address_packet(card, member.membership, to, packet_kind(operation, PEAL_PACKET_DATA),
                 packet->header);
  if (repair) packet->header->flags = PEAL_PACKET_REPAIR;
  packet->header->piece = what.piece;
  packet->header->origin = member.membership.rank;
  packet->header->hop = static_cast<uint8_t>(what.step);
  packet->header->fragment = static_cast<uint16_t>(what.fragment);
  packet->header->length = static_cast<uint16_t>(what.bytes);
  count(card, repair ? PEAL_COUNTER_SENT_REPAIR : PEAL_COUNTER_SENT_DATA);
  return send_from_image(scope, packet, what.piece, what.image_offset, what.bytes, repair);
}

void send_not_yet(const Scope& scope, const peal_peer_address& to, const peal_wire_header& header,
                  const peal_nack& nack) {
  const peal_not_yet body = {nack.asked_us, 0};
  const SmallPacket what = {.piece = header.piece,
                            .origin = header.origin,
                            .hop = header.hop,
                            .payload = &body,
                            .length = sizeof(body)};
  if (send_small(scope.card, scope.member.membership, to,
                 packet_kind(scope.operation, PEAL_PACKET_NOT_YET), what)) {
    count(scope.card, PEAL_COUNTER_SENT_NOT_YET);
  }
}

void on_send_read(const Scope& scope, DmaRecord& record) {
  Packet* packet = record.packet;
  PEAL_ASSERT(packet->holds == 1);
  packet->holds = 0;
  launch_packet(scope.card, packet, false);
}

}  // namespace peal
