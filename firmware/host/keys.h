// SPDX-License-Identifier: BSD-2-Clause
// Memory keys: which memory the card may touch for a context. A key is generation << 16 | index.
#pragma once

#include "abi/admin.h"
#include "firmware/card_types.h"

namespace peal {

// The key's entry if it is the context's, else null.
MemoryKey* find_key(Card& card, ContextId context, uint32_t key);
// May the card read there? Not of a key that is not the context's.
[[nodiscard]] inline bool may_read(Card& card, ContextId context, uint32_t key) {
  const MemoryKey* found = find_key(card, context, key);
  return found != nullptr && (found->access & PEAL_ACCESS_READ) != 0;
}

// OK and *address, or BAD_KEY, BAD_ACCESS or BAD_BOUNDS.
peal_status check_range(Card& card, ContextId context, uint32_t key, uint64_t offset,
                        uint64_t bytes, uint32_t access, HostAddress* address);

// Of a key that was found good: how long its memory is.
inline uint64_t bytes_of_key(const Card& card, uint32_t key) {
  return card.keys[key & 0xffff].bytes;
}

// A key that was found good is held for as long as the card may use its memory, and stays good. (0:
// none.) So does a member whose table of addresses it is.
inline void hold_key(Card& card, uint32_t key) {
  if (key != 0) ++card.keys[key & 0xffff].uses;
}
inline void let_go_of_key(Card& card, uint32_t key) {
  if (key != 0) --card.keys[key & 0xffff].uses;
}

// A command that was accepted holds the keys that it names, until it is complete.
inline void hold_keys(Card& card, const Command& command) {
  if ((command.send_key | command.receive_key | command.parts_key) == 0) return;
  hold_key(card, command.send_key);
  hold_key(card, command.receive_key);
  hold_key(card, command.parts_key);
}
inline void let_go_of_keys(Card& card, const Command& command) {
  if ((command.send_key | command.receive_key | command.parts_key) == 0) return;
  let_go_of_key(card, command.send_key);
  let_go_of_key(card, command.receive_key);
  let_go_of_key(card, command.parts_key);
}

peal_status register_key(Card& card, ContextId context, RegionId region, uint64_t bytes,
                         uint32_t access, uint32_t* key);
// BUSY while a command or a member holds it.
peal_status unregister_key(Card& card, ContextId context, uint32_t key, RegionId* region);
// All of a context that is over.
void forget_keys(Card& card, ContextId context);

}  // namespace peal
