// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/early.h"

#include "firmware/base/assert.h"
#include "firmware/wire/transmit.h"

namespace peal {
namespace {

constexpr uint32_t kShareOfBuffers = 8;

void append(Card& card, Operation& operation, uint32_t index) {
  card.early[index - 1].next = 0;
  if (early_waits(operation)) {
    card.early[operation.early_last - 1].next = index;
  } else {
    operation.early_first = index;
  }
  operation.early_last = index;
  ++operation.early_count;
}

uint32_t take_first(Card& card, Operation& operation) {
  PEAL_ASSERT(early_waits(operation));
  const uint32_t index = operation.early_first;
  operation.early_first = card.early[index - 1].next;
  --operation.early_count;
  return index;
}

}  // namespace

void early_init(Card& card) {
  const uint32_t share = card.port->packet_buffers() / kShareOfBuffers;
  const uint32_t most = share < CONFIG_EARLY_PACKETS ? share : CONFIG_EARLY_PACKETS;
  for (uint32_t i = 0; i < most; ++i) card.early[i].next = i + 1 < most ? i + 2 : 0;
  card.early_free = most > 0 ? 1 : 0;
}

bool early_keep(const Scope& scope, Packet* packet, uint32_t number, Rank origin) {
  auto& [card, member, operation] = scope;
  const uint32_t index = card.early_free;
  if (index == 0) return false;
  EarlyPacket& kept = card.early[index - 1];
  card.early_free = kept.next;
  kept = {packet, number, 0, static_cast<uint16_t>(origin)};
  ++packet->holds;
  append(card, operation, index);
  return true;
}

const EarlyPacket& early_first(const Card& card, const Operation& operation) {
  PEAL_ASSERT(early_waits(operation));
  return card.early[operation.early_first - 1];
}

void early_pop(Card& card, Operation& operation) {
  const uint32_t index = take_first(card, operation);
  EarlyPacket& kept = card.early[index - 1];
  unhold_packet(card, kept.packet);
  kept = {nullptr, 0, card.early_free, 0};
  card.early_free = index;
}

void early_put_back(Card& card, Operation& operation) {
  append(card, operation, take_first(card, operation));
}

void early_drop(Card& card, Operation& operation) {
  while (early_waits(operation)) early_pop(card, operation);
}

}  // namespace peal
