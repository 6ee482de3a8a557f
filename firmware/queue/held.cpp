// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/held.h"

#include "firmware/base/kept.h"

namespace peal::queue {
namespace {

bool is_open(Queue& queue, const peal_descriptor& put) {
  return count_of(queue, put.gate) >= put.threshold;
}

}  // namespace

Issued issue_or_hold(const Scope& scope, uint32_t index, const peal_descriptor& put) {
  Queue& queue = scope.queue;
  if (is_open(queue, put)) return issue_put(scope, index, put);
  if (queue.held_count == kHeld) {
    await_counter(queue, put.gate, put.threshold);
    return Issued::kWaits;
  }
  queue.held[queue.held_count++] = static_cast<uint16_t>(index);
  return Issued::kYes;
}

Issued issue_held(const Scope& scope, uint32_t* quota) {
  Queue& queue = scope.queue;
  if (!queue.issuing) return Issued::kYes;
  uint32_t left = 0;
  Issued last = Issued::kYes;
  for (uint32_t i = 0; i < queue.held_count; ++i) {
    const uint16_t index = queue.held[i];
    const peal_descriptor& put = kept(queue.cache[index % kDescriptors]);
    if (last == Issued::kYes && *quota > 0 && is_open(queue, put)) {
      --*quota;
      last = issue_put(scope, index, put);
      if (last == Issued::kYes) continue;
    }
    queue.held[left++] = index;
  }
  queue.held_count = static_cast<uint16_t>(left);
  return last;
}

}  // namespace peal::queue
