// SPDX-License-Identifier: BSD-2-Clause
// A 4-ary heap of 24-byte events, for those few that the agenda (event_queue.h) has no list for.
// Events of the same instant come out in the order of their insertion numbers, timers last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/cluster/sim_time.h"

namespace peal::sim {

enum class EventKind : uint8_t { kArrival, kQueued, kDmaDone, kTimer, kSubmission, kHost, kHop };

struct Event {
  TimeNs at_ns;
  uint64_t order_and_kind;  // is a timer << 63 | insertion number << 4 | kind
  uint32_t card;
  uint32_t item;  // index of the packet, DMA record, submission or host event

  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(order_and_kind & 15); }
  [[nodiscard]] bool is_timer() const { return order_and_kind >> 63 != 0; }
};
constexpr uint64_t order_and_kind(uint64_t insertion, EventKind kind) {
  const uint64_t last = kind == EventKind::kTimer ? uint64_t{1} << 63 : 0;
  return last | insertion << 4 | static_cast<uint64_t>(kind);
}
static_assert(sizeof(Event) == 24);

class EventHeap {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] const Event& top() const { return heap_.front(); }

  void push(const Event& event) {
    size_t hole = heap_.size();
    heap_.push_back(event);
    while (hole > 0) {
      const size_t parent = (hole - 1) / kArity;
      if (!before(event, heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return first;
  }

 private:
  static constexpr size_t kArity = 4;

  static bool before(const Event& a, const Event& b) {
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.order_and_kind < b.order_and_kind;
  }

  // Puts `event` where the first one was and lets it sink to its place.
  void sink(const Event& event) {
    const size_t count = heap_.size();
    size_t hole = 0;
    while (true) {
      const size_t first_child = hole * kArity + 1;
      if (first_child >= count) break;
      const size_t end = first_child + kArity < count ? first_child + kArity : count;
      size_t least = first_child;
      for (size_t child = first_child + 1; child < end; child++)
        if (before(heap_[child], heap_[least])) least = child;
      if (!before(heap_[least], event)) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = event;
  }

  std::vector<Event> heap_;
};

}  // namespace peal::sim
