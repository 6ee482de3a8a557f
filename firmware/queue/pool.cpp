// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/pool.h"

#include <cstddef>
#include <cstring>

#include "firmware/base/assert.h"
#include "firmware/group/member.h"
#include "firmware/host/keys.h"
#include "firmware/queue/list.h"

namespace peal::queue {
namespace {

uint8_t mode_of(const peal_commit_program& request) {
  return request.mode & static_cast<uint8_t>(~(PEAL_PROGRAM_TOGETHER | PEAL_PROGRAM_POSTED));
}

peal_status check_shape(const peal_commit_program& request) {
  if (request.name == PEAL_NO_QUEUE) return PEAL_STATUS_BAD_GROUP;
  const uint8_t mode = mode_of(request);
  if (mode == 0 || mode >= PEAL_PROGRAM_MODE_COUNT || request.engine >= p2p::kEngines) {
    return PEAL_STATUS_BAD_FLAGS;
  }
  // At least COMPLETE and JUMP.
  if (request.count < 2 || request.count > PEAL_PROGRAM_DESCRIPTORS_MAX) {
    return PEAL_STATUS_BAD_LENGTH;
  }
  if (request.counters > CONFIG_QUEUE_COUNTERS) return PEAL_STATUS_NO_RESOURCES;
  if (mode != PEAL_PROGRAM_MODE_SESSION) {
    return request.scheduled == 0 ? PEAL_STATUS_OK : PEAL_STATUS_BAD_FLAGS;
  }
  const bool fits = request.counters > 0 && request.scheduled <= request.count;
  return fits ? PEAL_STATUS_OK : PEAL_STATUS_BAD_BOUNDS;
}

Queue* free_queue(Card& card) {
  for (Queue& queue : card.queues.queues) {
    if (!queue.in_use && !queue.listed) return &queue;
  }
  return nullptr;
}

// The name is another program's from now on.
void forget_failures(QueuePool& pool, uint32_t member, uint16_t name) {
  for (uint32_t i = 0; i < pool.failed_top; ++i) {
    FailedIterations& each = pool.failed[i];
    if (each.member == member && each.name == name) each.in_use = false;
  }
}

}  // namespace

peal_status commit(Card& card, Member& member, const peal_commit_program& request,
                   uint32_t* handle) {
  const peal_status shape = check_shape(request);
  if (shape != PEAL_STATUS_OK) return shape;
  HostAddress program = {};
  const uint64_t bytes = uint64_t{peal_program_sources_bytes(request.counters)} +
                         uint64_t{request.count} * sizeof(peal_descriptor);
  const peal_status range = check_range(card, member.context, request.key, request.offset, bytes,
                                        PEAL_ACCESS_READ, &program);
  if (range != PEAL_STATUS_OK) return range;
  if (find_named(card, member, request.name) != nullptr) return PEAL_STATUS_BUSY;
  Queue* queue = free_queue(card);
  if (queue == nullptr) {
    count(card, PEAL_COUNTER_NO_QUEUE);
    return PEAL_STATUS_NO_RESOURCES;
  }
  const auto generation =
      static_cast<uint16_t>(queue->generation == 0xffff ? 1 : queue->generation + 1);
  std::memset(static_cast<void*>(queue), 0, offsetof(Queue, sources));
  std::memset(queue->counts, 0, sizeof(queue->counts));
  queue->in_use = true;
  queue->origin.engine = request.engine;
  queue->generation = generation;
  queue->index = static_cast<uint16_t>(queue - card.queues.queues);
  queue->name = request.name;
  queue->origin.slot = static_cast<uint16_t>(request.name + 1);
  queue->member = member.membership.handle;
  queue->context = member.context;
  queue->key = request.key;
  queue->program = program;
  queue->shape = {.rank = member.membership.rank,
                  .ranks = member.membership.ranks,
                  .count = request.count,
                  .counters = request.counters,
                  .mode = mode_of(request),
                  .sources = queue->sources};
  queue->origin.together = (request.mode & PEAL_PROGRAM_TOGETHER) != 0;
  queue->origin.posted = (request.mode & PEAL_PROGRAM_POSTED) != 0;
  queue->scheduled = request.scheduled;
  const bool session = mode_of(request) == PEAL_PROGRAM_MODE_SESSION;
  queue->most_of_first = session ? request.count - request.scheduled : ~uint32_t{0};
  Queue*& bucket = bucket_of(card.queues, queue->member, queue->name);
  queue->next_named = bucket;
  bucket = queue;
  queue->ticket = {.owner = p2p::Owner::kQueue, .queue = queue->index, .task = 0, .cookie = 0};
  for (uint32_t task = 0; task < kTasks; ++task) {
    queue->tasks[task].next = task + 1 < kTasks ? static_cast<uint16_t>(task + 1) : kNoTask;
  }
  forget_failures(card.queues, queue->member, queue->name);
  // What is started in a dead group ends: whoever told the others of it did not know this one.
  if (member.membership.poisoned) card.queues.gone = card.due.queues = true;
  hold_key(card, request.key);
  ++card.queues.in_use;
  *handle = uint32_t{generation} << 16 | queue->index;
  return PEAL_STATUS_OK;
}

Queue* find_queue(Card& card, const Member& member, uint32_t handle) {
  const uint32_t index = handle & 0xffff;
  if (index >= CONFIG_QUEUES) return nullptr;
  Queue& queue = card.queues.queues[index];
  const bool good =
      queue.in_use && queue.generation == handle >> 16 && queue.member == member.membership.handle;
  return good ? &queue : nullptr;
}

peal_status free_program(Card& card, ContextId context, uint32_t handle) {
  const uint32_t index = handle & 0xffff;
  if (index >= CONFIG_QUEUES) return PEAL_STATUS_BAD_KEY;
  Queue& queue = card.queues.queues[index];
  if (!queue.in_use || queue.generation != handle >> 16 || queue.context != context) {
    return PEAL_STATUS_BAD_KEY;
  }
  if (queue.start_count > 0 || !is_quiet(queue)) return PEAL_STATUS_BUSY;
  release(card, queue);
  return PEAL_STATUS_OK;
}

void release(Card& card, Queue& queue) {
  PEAL_ASSERT(is_quiet(queue));
  let_go_of_key(card, queue.key);
  Queue** link = &bucket_of(card.queues, queue.member, queue.name);
  while (*link != &queue) link = &(*link)->next_named;
  *link = queue.next_named;
  queue.in_use = false;
  --card.queues.in_use;
}

}  // namespace peal::queue
