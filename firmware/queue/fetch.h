// SPDX-License-Identifier: BSD-2-Clause
// From a program in host memory to its queue's cache: in runs, each descriptor looked at when it
// has come. One that fits the cache whole stays there from its first start on.
#pragma once

#include "firmware/queue/network.h"

namespace peal::queue {

inline bool is_resident(const Queue& queue) { return queue.shape.count <= kDescriptors; }

// Asks for what counters count, if that is unknown. False while there is no DMA record for it.
[[nodiscard]] bool fetch_sources(const Scope& scope);
// Asks for more descriptors where there is room for a run of them. False while there is no DMA
// record for it.
[[nodiscard]] bool fetch(const Scope& scope);
// What was asked for has come, or cannot be had.
void on_fetched(const Scope& scope, const DmaTag& tag, bool ok);

inline const peal_descriptor& cached(const Queue& queue, uint32_t index) {
  return queue.cache[index % kDescriptors];
}

// From this one on there is no place to be had.
inline uint32_t first_needed(const Queue& queue) {
  return queue.held_count != 0 ? queue.held[0] : queue.consumer;
}

// There is room for a run of descriptors: half a cache at a time, but for the end, as a DMA for each
// would cost more than it.
inline bool has_room_for_run(const Queue& queue) { return first_needed(queue) >= queue.room_from; }

inline constexpr uint32_t kNoRoom = ~uint32_t{0};  // all are there, or on their way
inline void set_fetched(Queue& queue, uint32_t fetched) {
  const uint32_t left = queue.shape.count - fetched;
  const uint32_t end = fetched + (left < kDescriptors / 2 ? left : kDescriptors / 2);
  queue.fetched = fetched;
  queue.room_from = left == 0 ? kNoRoom : end < kDescriptors ? 0 : end - kDescriptors;
}

}  // namespace peal::queue
