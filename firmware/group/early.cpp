// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/early.h"

#include "firmware/base/assert.h"
#include "firmware/base/free_list.h"
#include "firmware/wire/transmit.h"

namespace peal {
namespace {

constexpr uint32_t kShareOfBuffers = 8;
static_assert(CONFIG_EARLY_PACKETS < 1u << 16, "an index plus one must fit 16 bits");

void append(Card& card, Piece& piece, uint16_t index) {
  card.early[index - 1].next = 0;
  if (piece.waiting != 0) {
    card.early[piece.early_last - 1].next = index;
  } else {
    piece.early_first = index;
  }
  piece.early_last = index;
  ++piece.waiting;
}

uint16_t take_first(Card& card, Piece& piece) {
  PEAL_ASSERT(piece.waiting > 0);
  const uint16_t index = piece.early_first;
  piece.early_first = card.early[index - 1].next;
  --piece.waiting;
  return index;
}

}  // namespace

void early_init(Card& card) {
  const uint32_t share = card.port->packet_buffers() / kShareOfBuffers;
  card.early_most = static_cast<uint16_t>(least(share, CONFIG_EARLY_PACKETS));
}

bool early_keep(const Scope& scope, Packet* packet, Piece& piece, Rank origin) {
  auto& [card, member, operation] = scope;
  if (card.early_free >= card.early_most) return false;
  const uint16_t index = take_free(card.early, card.early_free);
  card.early[index - 1] = {packet, 0, static_cast<uint16_t>(origin)};
  ++packet->holds;
  append(card, piece, index);
  ++operation.early_count;
  return true;
}

const EarlyPacket& early_first(const Card& card, const Piece& piece) {
  PEAL_ASSERT(piece.waiting > 0);
  return card.early[piece.early_first - 1];
}

Packet* early_find(const Card& card, const Piece& piece, Rank origin) {
  uint16_t index = piece.early_first;
  for (uint32_t left = piece.waiting; left > 0; --left) {
    const EarlyPacket& early = card.early[index - 1];
    if (early.origin == origin) return early.packet;
    index = early.next;
  }
  return nullptr;
}

void early_pop(Card& card, Operation& operation, Piece& piece) {
  const uint16_t index = take_first(card, piece);
  EarlyPacket& kept = card.early[index - 1];
  unhold_packet(card, kept.packet);
  kept = {};
  give_free(card.early, card.early_free, index);
  --operation.early_count;
}

void early_put_back(Card& card, Piece& piece) { append(card, piece, take_first(card, piece)); }

void early_drop(Card& card, Operation& operation) {
  if (!early_waits(operation)) return;
  for (Piece& piece : operation.pieces) {
    while (piece.waiting > 0) early_pop(card, operation, piece);
  }
}

}  // namespace peal
