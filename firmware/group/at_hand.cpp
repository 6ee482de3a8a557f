// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/at_hand.h"

#include "firmware/base/assert.h"
#include "firmware/base/free_list.h"
#include "firmware/wire/transmit.h"

namespace peal {
namespace {

static_assert(kAtHandRecords < 1u << 16, "an index plus one must fit 16 bits");

uint32_t owner_of(const Scope& scope) {
  return scope.member.index * kChannels + scope.operation.timer.slot;
}

// Pieces of an operation that follow each other are in lists of their own.
uint16_t* first_of_list(Card& card, uint32_t owner, uint32_t number) {
  constexpr uint32_t kOdd = 0x9e3779b1;  // 2^32 by the golden ratio
  return &card.at_hand_lists[((owner * kOdd >> 16) + number) % kAtHandLists];
}

// Where the list says which one it is: index plus one, or 0.
uint16_t* place_of(const Scope& scope, uint32_t number) {
  Card& card = scope.card;
  const uint32_t owner = owner_of(scope);
  uint16_t* place = first_of_list(card, owner, number);
  for (; *place != 0; place = &card.at_hand[*place - 1].next) {
    const AtHand& block = card.at_hand[*place - 1];
    if (block.number == number && block.owner == owner) break;
  }
  return place;
}

void let_go(Card& card, Operation& operation, uint16_t* place) {
  const uint16_t index = *place;
  AtHand& block = card.at_hand[index - 1];
  *place = block.next;
  unhold_packet(card, block.packet);
  block.packet = nullptr;
  give_free(card.at_hand, card.at_hand_free, index);
  --operation.at_hand_count;
}

}  // namespace

void at_hand_init(Card& card) {
  const uint32_t share = card.port->packet_buffers() / kAtHandShare;
  card.at_hand_most = static_cast<uint16_t>(least(share, kAtHandRecords));
}

const AtHand* at_hand_find(const Scope& scope, uint32_t number) {
  if (scope.operation.at_hand_count == 0) return nullptr;
  const uint16_t index = *place_of(scope, number);
  return index != 0 ? &scope.card.at_hand[index - 1] : nullptr;
}

void at_hand_keep(const Scope& scope, Packet* packet, uint32_t number, uint32_t payload_crc,
                  uint32_t lacking) {
  auto& [card, member, operation] = scope;
  PEAL_ASSERT(lacking > 0 && at_hand_find(scope, number) == nullptr);
  if (card.at_hand_free >= card.at_hand_most) return;
  const uint16_t index = take_free(card.at_hand, card.at_hand_free);
  uint16_t* first = first_of_list(card, owner_of(scope), number);
  card.at_hand[index - 1] = {.packet = packet,
                             .owner = owner_of(scope),
                             .number = number,
                             .payload_crc = payload_crc,
                             .lacking = static_cast<uint16_t>(lacking),
                             .next = *first};
  *first = index;
  ++packet->holds;
  ++operation.at_hand_count;
}

void at_hand_given(const Scope& scope, uint32_t number) {
  uint16_t* place = place_of(scope, number);
  PEAL_ASSERT(*place != 0 && scope.card.at_hand[*place - 1].lacking > 0);
  if (--scope.card.at_hand[*place - 1].lacking == 0) let_go(scope.card, scope.operation, place);
}

void at_hand_drop(const Scope& scope) {
  auto& [card, member, operation] = scope;
  for (uint32_t list = 0; operation.at_hand_count > 0; ++list) {
    PEAL_ASSERT(list < kAtHandLists);
    uint16_t* place = &card.at_hand_lists[list];
    while (*place != 0) {
      AtHand& block = card.at_hand[*place - 1];
      if (block.owner == owner_of(scope)) {
        let_go(card, operation, place);
      } else {
        place = &block.next;
      }
    }
  }
}

}  // namespace peal
