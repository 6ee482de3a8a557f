// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/tasks.h"

#include "abi/admin.h"
#include "firmware/base/assert.h"
#include "firmware/host/keys.h"
#include "firmware/queue/gates.h"
#include "firmware/queue/list.h"

namespace peal::queue {
namespace {

// The descriptor that is to be issued next is bad.
void fail_here(const Scope& scope, peal_program_reason reason) {
  fail(scope.card, scope.queue,
       {.status = PEAL_STATUS_BAD_PROGRAM,
        .reason = reason,
        .index = scope.queue.consumer,
        .rank = PEAL_NO_RANK});
}

peal_program_reason reason_of(peal_status status) {
  if (status == PEAL_STATUS_BAD_BOUNDS) return PEAL_PROGRAM_REASON_BOUNDS;
  if (status == PEAL_STATUS_BAD_ACCESS) return PEAL_PROGRAM_REASON_ACCESS;
  return PEAL_PROGRAM_REASON_KEY;
}

Task* free_task(Queue& queue) {
  if (queue.under_way == kTasks) return nullptr;
  for (Task& task : queue.tasks) {
    if (!task.in_use) return &task;
  }
  return nullptr;
}

bool start(const Scope& scope, const peal_descriptor& descriptor, const HostAddress& memory,
           const Ticket& ticket) {
  auto& [card, member, queue] = scope;
  Network& network = *card.queues.network;
  switch (descriptor.opcode) {
    case PEAL_PROGRAM_SEND:
      return network.send(card, member,
                          {.to = descriptor.rank,
                           .from = memory,
                           .bytes = descriptor.bytes,
                           .tag = descriptor.tag,
                           .key = descriptor.key,
                           .engine = queue.engine},
                          ticket);
    case PEAL_PROGRAM_RECEIVE:
      return network.receive(card, member,
                             {.from = descriptor.rank,
                              .to = memory,
                              .bytes = descriptor.bytes,
                              .tag = descriptor.tag,
                              .any_tag = false,
                              .key = descriptor.key},
                             ticket);
    default:  // a signal is a put of no bytes
      return network.put(card, member,
                         {.to = descriptor.rank,
                          .from = memory,
                          .bytes = descriptor.bytes,
                          .remote_key = descriptor.remote_key,
                          .remote_offset = descriptor.remote_offset,
                          .notice = {.queue = descriptor.queue,
                                     .counter = descriptor.counter,
                                     .steps = descriptor.steps,
                                     .iteration = queue.iteration},
                          .key = descriptor.key,
                          .engine = queue.engine},
                         ticket);
  }
}

}  // namespace

bool reaches(const Scope& scope, const peal_descriptor& descriptor) {
  auto& [card, member, queue] = scope;
  const Network* network = card.queues.network;
  if (network != nullptr && network->reaches(member, descriptor.rank)) return true;
  fail_here(scope, PEAL_PROGRAM_REASON_RANK);
  return false;
}

bool check_memory(const Scope& scope, const peal_descriptor& descriptor, HostAddress* address) {
  auto& [card, member, queue] = scope;
  *address = {};
  if (descriptor.bytes == 0) return true;
  const uint32_t access =
      descriptor.opcode == PEAL_PROGRAM_RECEIVE ? PEAL_ACCESS_WRITE : PEAL_ACCESS_READ;
  const peal_status status = check_range(card, member.context, descriptor.key, descriptor.offset,
                                         descriptor.bytes, access, address);
  if (status == PEAL_STATUS_OK) return true;
  fail_here(scope, reason_of(status));
  return false;
}

Issued issue_task(const Scope& scope, const peal_descriptor& descriptor) {
  auto& [card, member, queue] = scope;
  Task* task = free_task(queue);
  if (task == nullptr) return Issued::kWaits;
  if (!reaches(scope, descriptor)) return Issued::kFailed;
  HostAddress memory;
  if (!check_memory(scope, descriptor, &memory)) return Issued::kFailed;
  const Ticket ticket = {.owner = p2p::Owner::kQueue,
                         .queue = queue.index,
                         .descriptor = static_cast<uint32_t>(task - queue.tasks),
                         .iteration = queue.iteration};
  if (!start(scope, descriptor, memory, ticket)) return Issued::kAgain;
  *task = {
      .in_use = true, .done = descriptor.done, .index = queue.consumer, .rank = descriptor.rank};
  ++queue.under_way;
  return Issued::kYes;
}

void task_over(Card& card, const Ticket& ticket, peal_status status, uint32_t rank) {
  PEAL_ASSERT(ticket.queue < CONFIG_QUEUES && ticket.descriptor < kTasks);
  Queue& queue = card.queues.queues[ticket.queue];
  Task& task = queue.tasks[ticket.descriptor];
  PEAL_ASSERT(queue.in_use && task.in_use);
  task.in_use = false;
  --queue.under_way;
  if (status != PEAL_STATUS_OK) {
    fail(card, queue,
         {.status = status,
          .reason = PEAL_PROGRAM_REASON_NONE,
          .index = task.index,
          .rank = rank != PEAL_NO_RANK ? rank : task.rank});
  } else if (task.done != PEAL_NO_COUNTER) {
    ++count_of(queue, task.done);
  }
  wake(card, queue);
}

}  // namespace peal::queue
