// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/fetch.h"

#include <cstddef>
#include <cstring>

#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/dma/dma.h"
#include "firmware/queue/list.h"

namespace peal::queue {
namespace {

enum class Role : uint8_t { kSources, kDescriptors };

void read(const Scope& scope, Role role, uint64_t offset, void* to, uint32_t bytes,
          uint32_t entries) {
  auto& [card, member, queue] = scope;
  ++member.dma;
  dma_read(card, {.host = {queue.program.region, queue.program.offset + offset},
                  .card = static_cast<uint8_t*>(to),
                  .bytes = bytes,
                  .packet = nullptr,
                  .tag = {.member = member.index,
                          .owner = DmaOwner::kQueue,
                          .slot = 0,
                          .role = static_cast<uint8_t>(role),
                          .step = 0,
                          .piece = queue.index,
                          .detail = entries,
                          .sequence = 0}});
}

void fail_by_memory(Card& card, Queue& queue) {
  fail(card, queue,
       {.status = PEAL_STATUS_DMA_FAULT,
        .reason = PEAL_PROGRAM_REASON_NONE,
        .index = queue.fetched,
        .rank = PEAL_NO_RANK});
}

// Which programs wait for this one, beside itself: as many as there are places.
void note_told_program(Queue& queue, const peal_descriptor& descriptor) {
  const bool tells =
      descriptor.opcode == PEAL_PROGRAM_PUT || descriptor.opcode == PEAL_PROGRAM_SIGNAL;
  const uint16_t name = descriptor.queue;
  if (!tells || name == queue.name || name == PEAL_NO_QUEUE) return;
  if (queue.tells_count == kToldPrograms) return;
  for (uint32_t i = 0; i < queue.tells_count; ++i) {
    if (queue.tells[i] == name) return;
  }
  queue.tells[queue.tells_count++] = name;
}

void on_sources(Card& card, Queue& queue, bool ok) {
  queue.sources_phase = Sources::kUnread;
  if (!ok) return fail_by_memory(card, queue);
  for (uint32_t counter = 0; counter < queue.shape.counters; ++counter) {
    const peal_program_reason reason = peal_check_source(&queue.shape, queue.sources[counter]);
    if (reason != PEAL_PROGRAM_REASON_NONE) return fail_by_program(card, queue, counter, reason);
  }
  queue.sources_phase = Sources::kKnown;
}

// Does it name what was found good last, or less of that?
bool names_the_same(const Named& named, const peal_descriptor& descriptor) {
  return descriptor.opcode == named.opcode && descriptor.rank == named.rank &&
         descriptor.key == named.key && descriptor.offset <= named.bytes &&
         descriptor.bytes <= named.bytes - descriptor.offset;
}

uint64_t differ(const peal_descriptor& one, const peal_descriptor& other, size_t word) {
  uint64_t of_one;
  uint64_t of_other;
  const auto at = word * sizeof(uint64_t);
  std::memcpy(&of_one, reinterpret_cast<const uint8_t*>(&one) + at, sizeof(of_one));
  std::memcpy(&of_other, reinterpret_cast<const uint8_t*>(&other) + at, sizeof(of_other));
  return of_one ^ of_other;
}

// In all fields but those that say which bytes go where.
bool are_alike(const peal_descriptor& one, const peal_descriptor& other) {
  static_assert(offsetof(peal_descriptor, offset) == 24 && offsetof(peal_descriptor, key) == 48);
  return (differ(one, other, 0) | differ(one, other, 1) | differ(one, other, 2) |
          differ(one, other, 6) | differ(one, other, 7)) == 0;
}

// Is it the put before it over again, for other bytes of the same memory? Then it is as good: none
// of what a put is looked at for depends on its place, but that it is none of the last two.
bool goes_on(const peal_descriptor& put, const peal_descriptor& before, uint64_t bytes_of_memory) {
  return are_alike(put, before) && put.bytes - 1 < 0xffffffff && put.offset <= bytes_of_memory &&
         put.bytes <= bytes_of_memory - put.offset;
}

Way way_of(const peal_descriptor& descriptor, Rank self) {
  switch (descriptor.opcode) {
    case PEAL_PROGRAM_PUT:
      return descriptor.threshold == 0 ? Way::kPut : Way::kGated;
    case PEAL_PROGRAM_SIGNAL:
      return descriptor.rank == self ? Way::kTell : Way::kSignal;
    case PEAL_PROGRAM_WAIT:
      return Way::kWait;
    case PEAL_PROGRAM_SEND:
    case PEAL_PROGRAM_RECEIVE:
      return Way::kMessage;
    default:
      return Way::kComplete;
  }
}

// Is it issued, so that whom and what it names is looked at?
bool is_task(Way way) {
  return way == Way::kPut || way == Way::kSignal || way == Way::kMessage || way == Way::kGated;
}

void on_descriptors(Card& card, Queue& queue, uint32_t entries, bool ok) {
  queue.fetching = false;
  if (!ok) return fail_by_memory(card, queue);
  const peal_program_shape shape = queue.shape;
  const bool gone = card.queues.gone;  // what was found good may be no more
  const uint32_t first = queue.fetched;
  const uint32_t place = first % kDescriptors;  // a run ends where the cache does
  const Named put = queue.named[PEAL_PROGRAM_PUT];
  const peal_descriptor* good = nullptr;  // the one before, if it is a put
  for (uint32_t i = 0; i < entries; ++i) {
    const peal_descriptor& descriptor = kept(queue.cache[place + i]);
    if (good != nullptr && first + i + 2 < shape.count && goes_on(descriptor, *good, put.bytes)) {
      queue.ways[place + i] = Way::kPut;
      queue.checked[place + i] = true;
      queue.regions[place + i] = put.region;
      good = &descriptor;
      continue;
    }
    const peal_program_reason reason = peal_check_descriptor(&shape, first + i, &descriptor);
    if (reason != PEAL_PROGRAM_REASON_NONE) {
      queue.fetched = first + i;
      return fail_by_program(card, queue, first + i, reason);
    }
    const Way way = way_of(descriptor, shape.rank);
    queue.ways[place + i] = way;
    if (is_task(way)) {
      const Named& named = kept(queue.named[descriptor.opcode]);
      queue.checked[place + i] = !gone && names_the_same(named, descriptor);
      queue.regions[place + i] = named.region;
    }
    note_told_program(queue, descriptor);
    const bool puts = way == Way::kPut && descriptor.bytes != 0;
    good = puts && queue.checked[place + i] ? &descriptor : nullptr;
  }
  queue.fetched = first + entries;
}

}  // namespace

bool fetch_sources(const Scope& scope) {
  Queue& queue = scope.queue;
  if (queue.sources_phase != Sources::kUnread) return true;
  if (queue.shape.counters == 0) {
    queue.sources_phase = Sources::kKnown;
    return true;
  }
  if (!dma_suffices(scope.card, 1)) return false;
  queue.sources_phase = Sources::kReading;
  const auto bytes = static_cast<uint32_t>(queue.shape.counters * sizeof(uint32_t));
  read(scope, Role::kSources, 0, queue.sources, bytes, queue.shape.counters);
  return true;
}

bool fetch(const Scope& scope) {
  Queue& queue = scope.queue;
  if (!has_room_for_run(queue)) return true;
  const uint32_t left = queue.shape.count - queue.fetched;
  const uint32_t room = room_in_cache(queue);
  if (!dma_suffices(scope.card, 1)) return false;
  const uint32_t place = queue.fetched % kDescriptors;
  const uint32_t run = least(least(room, left), kDescriptors - place);
  queue.fetching = true;
  count(scope.card, PEAL_COUNTER_DESCRIPTORS_FETCHED, run);
  const uint64_t offset = peal_program_sources_bytes(queue.shape.counters) +
                          uint64_t{queue.fetched} * sizeof(peal_descriptor);
  read(scope, Role::kDescriptors, offset, &queue.cache[place],
       static_cast<uint32_t>(run * sizeof(peal_descriptor)), run);
  return true;
}

void on_fetched(const Scope& scope, const DmaTag& tag, bool ok) {
  auto& [card, member, queue] = scope;
  --member.dma;
  if (static_cast<Role>(tag.role) == Role::kSources) {
    on_sources(card, queue, ok);
  } else {
    on_descriptors(card, queue, tag.detail, ok);
  }
  wake(card, queue);
}

}  // namespace peal::queue
