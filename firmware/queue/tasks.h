// SPDX-License-Identifier: BSD-2-Clause
// Descriptors that are carried out by messages: put, send, receive and remote signal. So many of a
// queue are under way at once as it has records for.
#pragma once

#include "firmware/base/kept.h"
#include "firmware/queue/gates.h"
#include "firmware/queue/list.h"
#include "firmware/queue/network.h"

namespace peal::queue {

// By which other ranks know what is of it, and that of no program by zero.
inline uint16_t program_of(const Queue& queue) { return static_cast<uint16_t>(queue.name + 1); }

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

// A signal is a put of no bytes.
[[nodiscard]] inline Put put_of(const Queue& queue, uint32_t index,
                                const peal_descriptor& descriptor, RegionId region) {
  return {.what = descriptor,
          .region = region,
          .iteration = queue.iteration,
          .engine = queue.engine,
          .program = program_of(queue),
          .posted = queue.posted,
          .together = queue.together,
          .index = index};
}
[[nodiscard]] inline bool start_put(const Scope& scope, uint32_t index,
                                    const peal_descriptor& descriptor, RegionId region,
                                    const Ticket& ticket) {
  auto& [card, member, queue] = scope;
  return card.queues.network->put(card, member, put_of(queue, index, descriptor, region), ticket);
}
[[nodiscard]] inline bool start_signal(const Scope& scope, const peal_descriptor& descriptor) {
  auto& [card, member, queue] = scope;
  return card.queues.network->signal(
      card, member, {.what = descriptor, .iteration = queue.iteration, .engine = queue.engine});
}

// Could the descriptor with this index, which is in the cache, be issued? kYes, kWaits or kFailed.
[[nodiscard, gnu::always_inline]] inline Issued may_issue(const Scope& scope, uint32_t index,
                                                          const peal_descriptor& descriptor) {
  Queue& queue = scope.queue;
  if (queue.free_task == 0) {
    queue.awaits = Awaits::kTask;
    return Issued::kWaits;
  }
  const bool good =
      queue.checked[index % kDescriptors] || check_named(Scope(scope), index, descriptor);
  return good ? Issued::kYes : Issued::kFailed;
}
// What comes back when the task that is taken next is over.
[[nodiscard]] inline Ticket next_ticket(const Queue& queue) {
  return {.owner = p2p::Owner::kQueue,
          .queue = queue.index,
          .descriptor = queue.free_task - 1u,
          .iteration = queue.iteration};
}
inline void take_task(Queue& queue, uint32_t index, const peal_descriptor& descriptor) {
  Task& task = kept(queue.tasks[queue.free_task - 1u]);
  queue.free_task = task.next;
  task.in_use = true;
  task.done = descriptor.done;
  task.index = index;
  task.rank = descriptor.rank;
  ++queue.under_way;
}

// A put, or a remote signal.
[[nodiscard, gnu::always_inline]] inline Issued issue_put(const Scope& scope, uint32_t index,
                                                          Way way,
                                                          const peal_descriptor& descriptor) {
  auto& [card, member, queue] = scope;
  const Issued may = may_issue(scope, index, descriptor);
  if (may != Issued::kYes) return may;
  if (way == Way::kSignal && start_signal(Scope(scope), descriptor)) {
    if (descriptor.done != PEAL_NO_COUNTER) {
      ++count_of(queue, descriptor.done);
      if (queue.held_count != 0) wake(card, queue);
    }
    return Issued::kOver;
  }
  const RegionId region = queue.regions[index % kDescriptors];
  if (!start_put(scope, index, descriptor, region, next_ticket(queue))) return Issued::kAgain;
  take_task(queue, index, descriptor);
  return Issued::kYes;
}
[[nodiscard]] Issued issue_message(const Scope& scope, uint32_t index,
                                   const peal_descriptor& descriptor);

// A task is over; `rank` where the status names one, else PEAL_NO_RANK: then the start names the
// rank that the task was for.
void task_over(Card& card, const Ticket& ticket, peal_status status, uint32_t rank);

}  // namespace peal::queue
