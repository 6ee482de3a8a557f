// SPDX-License-Identifier: BSD-2-Clause
// All timers of a card in one binary heap of fixed capacity, earliest first. A timer object is in
// the heap at most once and knows its position, so arming, re-arming and disarming are O(log n) and
// never fail.
#pragma once

#include <cstddef>
#include <cstdint>

#include "firmware/port.h"

namespace peal {

enum class TimerKind : uint8_t {
  kOperation,
  kMember,
  kCard,
  kConnection,  // `member` is the connection's index
  kPointToPoint,
  kQueues,
  kQueueWatch,
  kFailures,
};

struct Timer {
  TimeNs deadline_ns;
  uint32_t place;  // 1-based position in the heap, 0 = not armed
  uint16_t member;
  uint8_t slot;
  TimerKind kind;
};

struct TimerHeap {
  Timer** entries;
  uint32_t capacity;
  uint32_t count;

  void arm(Timer& timer, TimeNs deadline_ns);
  // Brings the deadline forward; leaves an earlier one alone.
  void arm_no_later(Timer& timer, TimeNs deadline_ns) {
    if (timer.place == 0 || timer.deadline_ns > deadline_ns) arm(timer, deadline_ns);
  }
  void disarm(Timer& timer) {
    if (timer.place == 0) return;
    if (timer.place == count) {
      timer.place = 0;
      --count;
    } else {
      take_out(timer);
    }
  }
  [[nodiscard]] TimeNs earliest() const { return count == 0 ? kNever : entries[0]->deadline_ns; }
  // Takes the earliest timer out if it is due, else null.
  Timer* pop_due(TimeNs now);

 private:
  void take_out(Timer& timer);
  void put(uint32_t index, Timer* timer);
  // Puts a timer where it belongs: here, or above, or below.
  void sift_up(uint32_t index, Timer* timer);
  void sift_down(uint32_t index, Timer* timer);
  void settle(uint32_t index, Timer* timer);
};

}  // namespace peal
