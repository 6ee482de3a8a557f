// SPDX-License-Identifier: BSD-2-Clause
// Queues that have something to do, in the order in which they are served. A handler only lists
// them: turn.h does the rest at the end of the card's entry point.
#pragma once

#include "firmware/card_types.h"

namespace peal::queue {

inline void wake(Card& card, Queue& queue) {
  if (queue.listed) return;
  QueuePool& pool = card.queues;
  queue.listed = true;
  card.due.queues = true;
  queue.next = nullptr;
  if (pool.first == nullptr) {
    pool.first = &queue;
  } else {
    pool.last->next = &queue;
  }
  pool.last = &queue;
  ++pool.listed;
}

// A counter of the iteration that runs has been told. (Perhaps it is the gate of a held put.)
inline void wake_by_counter(Card& card, Queue& queue, uint32_t counter, uint32_t count) {
  if (queue.awaits == Awaits::kCounter) {
    if (queue.awaited == counter && count >= queue.awaited_count) wake(card, queue);
  } else if (queue.awaits == Awaits::kAnything || queue.awaits == Awaits::kCounterOrGate) {
    wake(card, queue);
  }
}

// A task is over.
inline void wake_by_task(Card& card, Queue& queue) {
  if (queue.awaits >= Awaits::kCounterOrGate) return;
  if (queue.awaits != Awaits::kAllTasks || queue.under_way == 0) wake(card, queue);
}

// The first of all that are listed; none is any more, but for what each says itself, which is for
// whoever goes from one to the next. Null: there was none.
inline Queue* take_listed(QueuePool& pool) {
  Queue* const first = pool.first;
  pool.first = nullptr;
  pool.listed = 0;
  return first;
}

// The first reason is the one that the host learns.
inline void fail(Card& card, Queue& queue, const Failure& failure) {
  if (queue.failure.status == PEAL_STATUS_OK) queue.failure = failure;
  queue.issuing = false;
  wake(card, queue);
}

// The descriptor with this index is bad.
inline void fail_by_program(Card& card, Queue& queue, uint32_t index, peal_program_reason reason) {
  fail(card, queue,
       {.status = PEAL_STATUS_BAD_PROGRAM, .reason = reason, .index = index, .rank = PEAL_NO_RANK});
}

}  // namespace peal::queue
