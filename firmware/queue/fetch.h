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

// Room for a run of descriptors there is from this first one that is needed on: half a cache at a
// time, but for the end, as a DMA for each would cost more than it.
inline uint32_t room_from(const Queue& queue) {
  const uint32_t left = queue.shape.count - queue.fetched;
  const uint32_t end = queue.fetched + (left < kDescriptors / 2 ? left : kDescriptors / 2);
  return end < kDescriptors ? 0 : end - kDescriptors;
}

// So many of the program's are, or were, in the cache, and none is on its way.
inline void set_fetched(Queue& queue, uint32_t fetched) {
  queue.fetched = fetched;
  queue.look_at = fetched == queue.shape.count ? fetched : room_from(queue);
}

}  // namespace peal::queue
