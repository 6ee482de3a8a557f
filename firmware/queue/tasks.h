// SPDX-License-Identifier: BSD-2-Clause
// Descriptors that are carried out by messages: put, send, receive and remote signal. So many of a
// queue are under way at once as it has records for.
#pragma once

#include "firmware/base/kept.h"
#include "firmware/queue/gates.h"
#include "firmware/queue/list.h"
#include "firmware/queue/network.h"

namespace peal::queue {

// How issuing a descriptor went.
enum class Issued : uint8_t {
  kYes,
  kOver,    // so that it needs no record
  kWaits,   // until something of the queue's is over
  kAgain,   // there is no record for it now, and nothing of this queue's says when
  kFailed,  // noted as the start's failure
};

// Own memory that the descriptor with this index names, as the keys are now. False: noted as the
// start's failure.
[[nodiscard]] bool check_memory(const Scope& scope, uint32_t index,
                                const peal_descriptor& descriptor, HostAddress* address);
// The rank that it names can be talked to, and its memory is there; false: noted as above. Looked
// at once for each time that it comes to the card, and whenever a key has gone since.
[[nodiscard]] bool check_named(const Scope& scope, uint32_t index,
                               const peal_descriptor& descriptor);

// Is there room for one more task? Else the queue waits for one to be over.
[[nodiscard, gnu::always_inline]] inline bool has_task(Queue& queue) {
  if (queue.ticket.task != kNoTask) return true;
  queue.awaits = Awaits::kTask;
  return false;
}
// Could the descriptor with this index, which is in the cache, be issued? kYes, kWaits or kFailed.
[[nodiscard]] inline Issued may_issue(const Scope& scope, uint32_t index,
                                      const peal_descriptor& descriptor) {
  Queue& queue = scope.queue;
  if (!has_task(queue)) return Issued::kWaits;
  const bool good =
      queue.known[index % kDescriptors].step.good || check_named(scope, index, descriptor);
  return good ? Issued::kYes : Issued::kFailed;
}
[[nodiscard]] inline Task& next_task(Queue& queue) { return kept(queue.tasks[queue.ticket.task]); }
inline void take_task(Queue& queue, Task& task, uint32_t index, const peal_descriptor& descriptor) {
  queue.ticket.task = task.next;
  task.next = kTaken;
  task.done = descriptor.done;
  task.index = index;
  task.rank = descriptor.rank;
  ++queue.under_way;
}

// A put, or a signal, which is one of no bytes; it may be issued. False: there is no record for it.
[[nodiscard, gnu::always_inline]] inline bool start_put(const Scope& scope, uint32_t index,
                                                        const peal_descriptor& descriptor,
                                                        RegionId region) {
  auto& [card, member, queue] = scope;
  const Put put = {.what = descriptor, .origin = queue.origin, .region = region, .index = index};
  Task& task = next_task(queue);
  if (!card.queues.network->put(card, member, put, queue.ticket)) return false;
  take_task(queue, task, index, descriptor);
  return true;
}
[[nodiscard]] Issued issue_put(const Scope& scope, uint32_t index,
                               const peal_descriptor& descriptor);
// To another rank.
[[nodiscard]] Issued issue_signal(const Scope& scope, uint32_t index,
                                  const peal_descriptor& descriptor);
[[nodiscard]] Issued issue_message(const Scope& scope, uint32_t index,
                                   const peal_descriptor& descriptor);

// A task is over; `rank` where the status names one, else PEAL_NO_RANK: then the start names the
// rank that the task was for.
void task_over(Card& card, Ticket ticket, peal_status status, uint32_t rank);

}  // namespace peal::queue
