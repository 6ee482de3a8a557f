// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/watch.h"

#include "firmware/group/liveness.h"
#include "firmware/queue/failed.h"
#include "firmware/queue/fetch.h"

namespace peal::queue {
namespace {

// Whoever is to tell this counter.
void watch_teller(Card& card, const Queue& queue, uint32_t counter) {
  const uint32_t source = queue.sources[counter];
  if (source == PEAL_ANY_RANK || source == queue.shape.rank) return;
  await_peer(card, card.members[queue.member & 0xffff], source);
}

void watch(Card& card, Queue& queue) {
  if (!queue.running) return;
  if (queue.failure.status != PEAL_STATUS_OK) {
    const Rank late = awaited_to_begin(card, queue);
    if (late != PEAL_NO_RANK) await_peer(card, card.members[queue.member & 0xffff], late);
    return;
  }
  for (uint32_t i = 0; i < queue.held_count; ++i) {
    watch_teller(card, queue, cached(queue, queue.held[i]).gate);
  }
  if (queue.awaits >= Awaits::kCounterOrGate) watch_teller(card, queue, queue.awaited);
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
