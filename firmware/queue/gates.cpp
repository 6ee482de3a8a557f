// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/gates.h"

#include <cstring>

#include "firmware/queue/failed.h"
#include "firmware/queue/list.h"
#include "firmware/queue/pool.h"

namespace peal::queue {
namespace {

Failure failure_by(Rank from, uint32_t counter, peal_program_reason reason) {
  return {.status = PEAL_STATUS_BAD_PROGRAM, .reason = reason, .index = counter, .rank = from};
}

// Who is farther ahead is not put right: its program was never right.
constexpr uint64_t kAheadMost = 8 * uint64_t{kStarts};

// More than the counter can be told: that iteration fails, which need not be the one that runs.
[[gnu::cold]] [[gnu::noinline]] void tell_too_much(Card& card, Queue& queue, Rank from,
                                                   const Notice& notice) {
  const Failure why = failure_by(from, notice.counter, PEAL_PROGRAM_REASON_OVERFLOW);
  const bool runs = queue.running && queue.starts[queue.first_start].passes > 0;
  if (runs && notice.iteration == queue.origin.iteration) return fail(card, queue, why);
  fail_iteration(card, queue, notice.iteration, why);
}

// Of an iteration that is over, or too far ahead.
[[gnu::cold]] [[gnu::noinline]] void tell_other_time(Card& card, Queue& queue, Rank from,
                                                     const Notice& notice) {
  if (notice.iteration < queue.origin.iteration) {
    count(card, PEAL_COUNTER_NOTICES_STALE);
    return;
  }
  count(card, PEAL_COUNTER_NOTICES);
  fail(card, queue, failure_by(from, notice.counter, PEAL_PROGRAM_REASON_AHEAD));
  // Nor can the iteration be carried out that it was told for: it will not be told again.
  if (notice.iteration - queue.origin.iteration < kAheadMost) {
    fail_iteration(card, queue, notice.iteration, queue.failure);
  }
}

}  // namespace

// (What is seldom is left to functions that need nothing of this one any more.)
void tell(Card& card, Member& member, Rank from, const Notice& notice) {
  Queue* const queue = find_named(card, member, notice.queue);
  const uint32_t counter = notice.counter;
  if (queue == nullptr || !may_tell(*queue, from, counter)) {
    count(card, PEAL_COUNTER_NOTICES_REFUSED);
    return;
  }
  const uint64_t ahead = notice.iteration - queue->origin.iteration;
  if (ahead >= kStarts) return tell_other_time(card, *queue, from, notice);
  count(card, PEAL_COUNTER_NOTICES);
  uint32_t& told = kept(queue->counts[notice.iteration % kStarts][counter]);
  // A scheduling pointer stays within its program.
  const uint32_t most = counter == 0 ? queue->most_of_first : ~uint32_t{0};
  if (notice.steps > most - told) {
    return tell_too_much(card, *queue, from, notice);
  }
  told += notice.steps;
  if (ahead == 0) wake_by_counter(card, *queue, counter, told);
}

void pass_iterations(Queue& queue, uint32_t passes) {
  for (uint32_t pass = 0; pass < passes && pass < kStarts; ++pass) {
    std::memset(queue.counts[(queue.origin.iteration + pass) % kStarts], 0,
                queue.shape.counters * sizeof(uint32_t));
  }
  queue.origin.iteration += passes;
}

}  // namespace peal::queue
