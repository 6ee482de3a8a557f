// SPDX-License-Identifier: BSD-2-Clause
// Queues: which programs the card knows. A handle is generation << 16 | index.
#pragma once

#include "abi/admin.h"
#include "firmware/card_types.h"

namespace peal::queue {

// Takes a queue for the program and holds its memory. Nothing of it is read before a start.
peal_status commit(Card& card, Member& member, const peal_commit_program& request,
                   uint32_t* handle);
// BUSY while a start is not over.
peal_status free_program(Card& card, ContextId context, uint32_t handle);

// The queue if it is the member's, else null.
Queue* find_queue(Card& card, const Member& member, uint32_t handle);
inline Queue*& bucket_of(QueuePool& pool, uint32_t member, uint16_t name) {
  return pool.named[(member + name) % CONFIG_QUEUES];
}
// By the name that other ranks know; null: there is none.
inline Queue* find_named(Card& card, const Member& member, uint16_t name) {
  const uint32_t handle = member.membership.handle;
  Queue* each = bucket_of(card.queues, handle, name);
  while (each != nullptr && (each->name != name || each->member != handle)) {
    each = each->next_named;
  }
  return each;
}

// Is the counter that rank's to tell?
inline bool may_tell(const Queue& queue, Rank from, uint32_t counter) {
  if (counter >= queue.tellable) return false;
  const uint32_t source = queue.sources[counter];
  return source == from || source == PEAL_ANY_RANK;
}

// Does anything that is under way refer to the queue?
[[nodiscard]] inline bool is_quiet(const Queue& queue) {
  return queue.under_way == 0 && !queue.fetching && queue.sources_phase != Sources::kReading;
}
// It is free again. The caller has made sure that it is quiet.
void release(Card& card, Queue& queue);

}  // namespace peal::queue
