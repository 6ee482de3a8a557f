// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/watch.h"

#include "firmware/group/liveness.h"
#include "firmware/queue/fetch.h"
#include "firmware/queue/gates.h"

namespace peal::queue {
namespace {

// The counter that the next descriptor waits for, PEAL_NO_COUNTER if it waits for none.
uint16_t awaited_counter(Queue& queue) {
  if (queue.consumer == queue.fetched) return PEAL_NO_COUNTER;
  if (!is_scheduled(queue)) return 0;
  const peal_descriptor& next = cached(queue, queue.consumer);
  const bool waits =
      next.opcode == PEAL_PROGRAM_WAIT && count_of(queue, next.counter) < next.threshold;
  return waits ? next.counter : PEAL_NO_COUNTER;
}

void watch(Card& card, Queue& queue) {
  if (!queue.running || queue.failure.status != PEAL_STATUS_OK) return;
  if (queue.sources_phase != Sources::kKnown) return;
  const uint16_t counter = awaited_counter(queue);
  if (counter == PEAL_NO_COUNTER) return;
  const uint32_t source = queue.sources[counter];
  if (source == PEAL_ANY_RANK || source == queue.shape.rank) return;
  await_peer(card, card.members[queue.member & 0xffff], source);
}

}  // namespace

void expect_looks(Card& card) {
  card.timers.arm_no_later(card.queues.watch_timer,
                           card.now + card.timeouts.dead_ns / kLooksPerDeath);
}

void watch_awaited(Card& card) {
  bool more = false;
  for (Queue& queue : card.queues.queues) {
    if (!queue.in_use || queue.start_count == 0) continue;
    more = true;
    watch(card, queue);
  }
  if (more) expect_looks(card);
}

}  // namespace peal::queue
