// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/tasks.h"

#include "abi/admin.h"
#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/host/keys.h"
#include "firmware/queue/gates.h"

namespace peal::queue {
namespace {

peal_program_reason reason_of(peal_status status) {
  if (status == PEAL_STATUS_BAD_BOUNDS) return PEAL_PROGRAM_REASON_BOUNDS;
  if (status == PEAL_STATUS_BAD_ACCESS) return PEAL_PROGRAM_REASON_ACCESS;
  return PEAL_PROGRAM_REASON_KEY;
}

[[gnu::cold]] [[gnu::noinline]] void fail_of(Card& card, Queue& queue, const Task& task,
                                             peal_status status, uint32_t rank) {
  fail(card, queue,
       {.status = status,
        .reason = PEAL_PROGRAM_REASON_NONE,
        .index = task.index,
        .rank = rank != PEAL_NO_RANK ? rank : task.rank});
}

// False: the network has no record for it.
bool start_message(const Scope& scope, const peal_descriptor& descriptor, const HostAddress& memory,
                   Ticket ticket) {
  auto& [card, member, queue] = scope;
  const Network& network = *card.queues.network;
  if (descriptor.opcode == PEAL_PROGRAM_SEND) {
    return network.send(card, member,
                        {.to = descriptor.rank,
                         .from = memory,
                         .bytes = descriptor.bytes,
                         .tag = descriptor.tag,
                         .key = descriptor.key,
                         .engine = queue.origin.engine,
                         .program = queue.origin.slot,
                         .iteration = queue.origin.iteration},
                        ticket);
  }
  return network.receive(card, member,
                         {.from = descriptor.rank,
                          .to = memory,
                          .bytes = descriptor.bytes,
                          .tag = descriptor.tag,
                          .any_tag = false,
                          .key = descriptor.key},
                         ticket);
}

}  // namespace

bool check_memory(const Scope& scope, uint32_t index, const peal_descriptor& descriptor,
                  HostAddress* address) {
  *address = {};
  if (descriptor.bytes == 0) return true;
  const uint32_t access =
      descriptor.opcode == PEAL_PROGRAM_RECEIVE ? PEAL_ACCESS_WRITE : PEAL_ACCESS_READ;
  const peal_status status = check_range(scope.card, scope.member.context, descriptor.key,
                                         descriptor.offset, descriptor.bytes, access, address);
  if (status == PEAL_STATUS_OK) return true;
  fail_by_program(scope.card, scope.queue, index, reason_of(status));
  return false;
}

bool check_named(const Scope& scope, uint32_t index, const peal_descriptor& descriptor) {
  auto& [card, member, queue] = scope;
  const Network* network = card.queues.network;
  if (network == nullptr || !network->reaches(member, descriptor.rank)) {
    fail_by_program(card, queue, index, PEAL_PROGRAM_REASON_RANK);
    return false;
  }
  HostAddress memory;
  if (!check_memory(scope, index, descriptor, &memory)) return false;
  const uint32_t place = index % kDescriptors;
  queue.known[place].step.good = true;
  queue.known[place].region = memory.region;
  queue.named[descriptor.opcode] = {
      .opcode = descriptor.opcode,
      .rank = descriptor.rank,
      .key = descriptor.key,
      .region = memory.region,
      .bytes = descriptor.bytes == 0 ? 0 : bytes_of_key(card, descriptor.key)};
  return true;
}

Issued issue_put(const Scope& scope, uint32_t index, const peal_descriptor& descriptor) {
  const Issued may = may_issue(scope, index, descriptor);
  if (may != Issued::kYes) return may;
  const RegionId region = scope.queue.known[index % kDescriptors].region;
  return start_put(scope, index, descriptor, region) ? Issued::kYes : Issued::kAgain;
}

Issued issue_signal(const Scope& scope, uint32_t index, const peal_descriptor& descriptor) {
  auto& [card, member, queue] = scope;
  const Issued may = may_issue(scope, index, descriptor);
  if (may != Issued::kYes) return may;
  if (!card.queues.network->signal(card, member, {.what = descriptor, .origin = queue.origin})) {
    return start_put(scope, index, descriptor, {}) ? Issued::kYes : Issued::kAgain;
  }
  if (descriptor.done != PEAL_NO_COUNTER) {
    ++count_of(queue, descriptor.done);
    if (queue.held_count != 0) wake(card, queue);
  }
  return Issued::kOver;
}

Issued issue_message(const Scope& scope, uint32_t index, const peal_descriptor& descriptor) {
  Queue& queue = scope.queue;
  const Issued may = may_issue(scope, index, descriptor);
  if (may != Issued::kYes) return may;
  const HostAddress memory = {queue.known[index % kDescriptors].region, descriptor.offset};
  Task& task = next_task(queue);
  if (!start_message(scope, descriptor, memory, queue.ticket)) return Issued::kAgain;
  take_task(queue, task, index, descriptor);
  return Issued::kYes;
}

void task_over(Card& card, Ticket ticket, peal_status status, uint32_t rank) {
  PEAL_ASSERT(ticket.queue < CONFIG_QUEUES && ticket.task < kTasks);
  Queue& queue = kept(card.queues.queues[ticket.queue]);
  Task& task = kept(queue.tasks[ticket.task]);
  PEAL_ASSERT(task.next == kTaken);
  task.next = static_cast<uint16_t>(queue.ticket.task);
  queue.ticket.task = ticket.task;
  --queue.under_way;
  if (status != PEAL_STATUS_OK) return fail_of(card, queue, task, status, rank);
  if (task.done != PEAL_NO_COUNTER) {
    wake_by_counter(card, queue, task.done, ++count_of(queue, task.done));
  }
  wake_by_task(card, queue);
}

}  // namespace peal::queue
