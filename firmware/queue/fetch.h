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

// From the first that is still needed on there is no place to be had.
inline uint32_t room_in_cache(const Queue& queue) {
  const uint32_t first = queue.held_count != 0 ? queue.held[0] : queue.consumer;
  return kDescriptors - (queue.fetched - first);
}

// Is there room for a run of descriptors, and none on its way? Half a cache at a time, but for the
// end: a DMA for each would cost more than it.
inline bool has_room_for_run(const Queue& queue) {
  const uint32_t left = queue.shape.count - queue.fetched;
  if (left == 0 || queue.fetching) return false;
  const uint32_t room = room_in_cache(queue);
  return room != 0 && (room >= kDescriptors / 2 || room >= left);
}

}  // namespace peal::queue
