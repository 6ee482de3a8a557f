// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/gates.h"

#include <cstring>

#include "firmware/queue/list.h"
#include "firmware/queue/pool.h"

namespace peal::queue {
namespace {

// The most that a counter may come to: a scheduling pointer stays within the program.
uint32_t most(const Queue& queue, uint32_t counter) {
  if (is_session(queue) && counter == 0) return queue.shape.count - queue.scheduled;
  return 0xffffffffu;
}

bool may_tell(const Queue& queue, Rank from, const Notice& notice) {
  if (queue.sources_phase != Sources::kKnown || notice.counter >= queue.shape.counters) {
    return false;
  }
  const uint32_t source = queue.sources[notice.counter];
  return source == from || source == PEAL_ANY_RANK;
}

void fail_by(Card& card, Queue& queue, Rank from, const Notice& notice,
             peal_program_reason reason) {
  fail(
      card, queue,
      {.status = PEAL_STATUS_BAD_PROGRAM, .reason = reason, .index = notice.counter, .rank = from});
}

}  // namespace

void tell(Card& card, Member& member, Rank from, const Notice& notice) {
  Queue* queue = find_named(card, member, notice.queue);
  if (queue == nullptr || !may_tell(*queue, from, notice)) {
    count(card, PEAL_COUNTER_NOTICES_REFUSED);
    return;
  }
  if (notice.iteration < queue->iteration) {
    count(card, PEAL_COUNTER_NOTICES_STALE);
    return;
  }
  count(card, PEAL_COUNTER_NOTICES);
  if (notice.iteration - queue->iteration >= kStarts) {
    fail_by(card, *queue, from, notice, PEAL_PROGRAM_REASON_AHEAD);
    return;
  }
  uint32_t& told = queue->counts[notice.iteration % kStarts][notice.counter];
  if (notice.steps > most(*queue, notice.counter) - told) {
    fail_by(card, *queue, from, notice, PEAL_PROGRAM_REASON_OVERFLOW);
    return;
  }
  told += notice.steps;
  if (notice.iteration == queue->iteration) wake(card, *queue);
}

void pass_iterations(Queue& queue, uint32_t passes) {
  for (uint32_t pass = 0; pass < passes && pass < kStarts; ++pass) {
    std::memset(queue.counts[(queue.iteration + pass) % kStarts], 0,
                queue.shape.counters * sizeof(uint32_t));
  }
  queue.iteration += passes;
}

}  // namespace peal::queue
