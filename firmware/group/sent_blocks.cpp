// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/sent_blocks.h"

#include "firmware/base/assert.h"
#include "firmware/base/free_list.h"
#include "firmware/wire/transmit.h"

namespace peal {

static_assert(CONFIG_SENT_BLOCKS < 1u << 16, "an index plus one must fit 16 bits");

namespace {

// The one with this index goes; returns the one behind it.
inline uint16_t let_go(Card& card, Member& member, uint16_t index) {
  SentBlock& block = card.sent_blocks[index - 1];
  const uint16_t next = block.next;
  // Nobody has touched it since it was sent: the next one comes while this one goes.
  if (next != 0) __builtin_prefetch(card.sent_blocks[next - 1].packet, 1);
  ++card.packets_held;
  --card.sent_blocks_held;
  --member.sent_blocks;
  unhold_packet(card, block.packet);
  block.packet = nullptr;
  give_free(card.sent_blocks, card.sent_blocks_free, index);
  return next;
}

}  // namespace

void sent_blocks_init(Card& card) {
  const uint32_t most = least(card.port->sent_packets(), CONFIG_SENT_BLOCKS);
  card.sent_blocks_most = static_cast<uint16_t>(most);
}

void sent_block_keep(const Scope& scope, Packet* packet, uint32_t part, uint32_t number) {
  auto& [card, member, operation] = scope;
  PEAL_ASSERT(has_room_for_sent(card, member));
  const uint16_t index = take_free(card.sent_blocks, card.sent_blocks_free);
  card.sent_blocks[index - 1] = {.packet = packet,
                                 .number = number,
                                 .part = static_cast<uint16_t>(part),
                                 .next = operation.sent_first};
  operation.sent_first = index;
  ++packet->holds;
  --card.packets_held;
  ++card.sent_blocks_held;
  ++member.sent_blocks;
}

Packet* sent_block_find(const Scope& scope, uint32_t part, uint32_t number) {
  for (uint16_t index = scope.operation.sent_first; index != 0;) {
    const SentBlock& block = scope.card.sent_blocks[index - 1];
    if (block.part == part && block.number == number) return block.packet;
    index = block.next;
  }
  return nullptr;
}

void sent_block_let_go(const Scope& scope, uint32_t part, uint32_t number) {
  Card& card = scope.card;
  uint16_t* place = &scope.operation.sent_first;
  while (card.sent_blocks[*place - 1].part != part ||
         card.sent_blocks[*place - 1].number != number) {
    place = &card.sent_blocks[*place - 1].next;
    PEAL_ASSERT(*place != 0);
  }
  *place = let_go(card, scope.member, *place);
}

void sent_blocks_drop(Card& card, Member& member, Operation& operation) {
  while (operation.sent_first != 0) {
    operation.sent_first = let_go(card, member, operation.sent_first);
  }
}

}  // namespace peal
