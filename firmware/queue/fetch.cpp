// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/fetch.h"

#include <bit>
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
  const auto slot = static_cast<uint16_t>(name + 1);
  for (uint32_t i = 0; i < queue.tells_count; ++i) {
    if (queue.tells[i] == slot) return;
  }
  queue.tells[queue.tells_count++] = slot;
}

void on_sources(Card& card, Queue& queue, bool ok) {
  queue.sources_phase = Sources::kUnread;
  if (!ok) return fail_by_memory(card, queue);
  for (uint32_t counter = 0; counter < queue.shape.counters; ++counter) {
    const peal_program_reason reason = peal_check_source(&queue.shape, queue.sources[counter]);
    if (reason != PEAL_PROGRAM_REASON_NONE) return fail_by_program(card, queue, counter, reason);
  }
  queue.sources_phase = Sources::kKnown;
  queue.tellable = queue.shape.counters;
}

// Does it name what was found good last, or less of that?
bool names_the_same(const Named& named, const peal_descriptor& descriptor) {
  return descriptor.opcode == named.opcode && descriptor.rank == named.rank &&
         descriptor.key == named.key && descriptor.offset <= named.bytes &&
         descriptor.bytes <= named.bytes - descriptor.offset;
}

// A put that was found good, and what those that go on with it have in common: all but which bytes
// of the same memory go where.
struct Pattern {
  uint64_t words[3];
  uint64_t bytes;
  uint64_t last_words[2];
  uint64_t last_offset;         // of so many bytes in that memory
  uint64_t last_remote_offset;  // and in any other
};

uint64_t word_of(const peal_descriptor& descriptor, size_t at) {
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const uint8_t*>(&descriptor) + at, sizeof(word));
  return word;
}

Pattern pattern_of(const peal_descriptor& put, uint64_t bytes_of_memory) {
  static_assert(offsetof(peal_descriptor, offset) == 24 && offsetof(peal_descriptor, key) == 48);
  return {.words = {word_of(put, 0), word_of(put, 8), word_of(put, 16)},
          .bytes = put.bytes,
          .last_words = {word_of(put, 48), word_of(put, 56)},
          .last_offset = bytes_of_memory - put.bytes,
          .last_remote_offset = ~put.bytes};
}

// Is it the put before it over again, for as many bytes of the same memory? Then it is as good:
// none of what a put is looked at for depends on its place, but that it is none of the last two.
[[gnu::always_inline]] inline bool goes_on(const peal_descriptor& put, const Pattern& before) {
  return word_of(put, 0) == before.words[0] && word_of(put, 8) == before.words[1] &&
         word_of(put, 16) == before.words[2] && word_of(put, 48) == before.last_words[0] &&
         word_of(put, 56) == before.last_words[1] && put.bytes == before.bytes &&
         put.offset <= before.last_offset && put.remote_offset <= before.last_remote_offset;
}

// How many descriptors from this place of the cache on, of so many at most, go on with the good put
// in that other place.
[[gnu::noinline]] uint32_t go_on(Queue& queue, size_t before, size_t place, size_t most) {
  const peal_descriptor& put_before = queue.cache[before];
  const Named& named = queue.named[PEAL_PROGRAM_PUT];
  if (put_before.bytes == 0 || !names_the_same(named, put_before)) return 0;
  const Pattern pattern = pattern_of(put_before, named.bytes);
  uint64_t known;
  static_assert(sizeof(known) == sizeof(Known));
  std::memcpy(&known, &queue.known[before], sizeof(known));
  const size_t end = place + most;
  size_t each = place;
  for (; each < end && goes_on(queue.cache[each], pattern); ++each) {
    std::memcpy(&queue.known[each], &known, sizeof(known));
  }
  return static_cast<uint32_t>(each - place);
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
  const uint32_t end = first + entries;
  const uint32_t puts_end = gone ? first : least(end, shape.count - 2);
  uint32_t at = first;
  // (All of the cache: what came before is there no more.)
  const uint32_t before = (first - 1) % kDescriptors;
  const bool is_there = first != 0 && entries < kDescriptors;
  if (is_there && first < puts_end && is_good_put(queue.known[before].step)) {
    at += go_on(queue, before, first % kDescriptors, puts_end - first);
  }
  while (at < end) {
    const uint32_t place = at % kDescriptors;  // a run ends where the cache does
    const peal_descriptor& descriptor = kept(queue.cache[place]);
    const peal_program_reason reason = peal_check_descriptor(&shape, at, &descriptor);
    if (reason != PEAL_PROGRAM_REASON_NONE) {
      queue.fetched = at;
      return fail_by_program(card, queue, at, reason);
    }
    Known& known = queue.known[place];
    known.step.way = way_of(descriptor, shape.rank);
    if (is_task(known.step.way)) {
      const Named& named = kept(queue.named[descriptor.opcode]);
      known.step.good = !gone && names_the_same(named, descriptor);
      known.region = named.region;
    }
    note_told_program(queue, descriptor);
    ++at;
    if (at < puts_end && is_good_put(known.step)) {
      at += go_on(queue, place, place + 1, puts_end - at);
    }
  }
  set_fetched(queue, end);
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
  const uint32_t left = queue.shape.count - queue.fetched;
  if (left == 0 || queue.fetching || first_needed(queue) < room_from(queue)) return true;
  const uint32_t room = kDescriptors - (queue.fetched - first_needed(queue));
  if (!dma_suffices(scope.card, 1)) return false;
  const uint32_t place = queue.fetched % kDescriptors;
  const uint32_t run = least(least(room, left), kDescriptors - place);
  queue.fetching = true;
  queue.look_at = queue.fetched;
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
