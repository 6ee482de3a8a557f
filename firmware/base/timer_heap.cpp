// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/base/timer_heap.h"

#include "firmware/base/assert.h"

namespace peal {

void TimerHeap::put(uint32_t index, Timer* timer) {
  entries[index] = timer;
  timer->place = index + 1;
}

void TimerHeap::sift_up(uint32_t index, Timer* timer) {
  while (index > 0) {
    const uint32_t parent = (index - 1) / 2;
    if (entries[parent]->deadline_ns <= timer->deadline_ns) break;
    put(index, entries[parent]);
    index = parent;
  }
  put(index, timer);
}

void TimerHeap::sift_down(uint32_t index, Timer* timer) {
  for (;;) {
    uint32_t child = 2 * index + 1;
    if (child >= count) break;
    if (child + 1 < count && entries[child + 1]->deadline_ns < entries[child]->deadline_ns) ++child;
    if (timer->deadline_ns <= entries[child]->deadline_ns) break;
    put(index, entries[child]);
    index = child;
  }
  put(index, timer);
}

void TimerHeap::settle(uint32_t index, Timer* timer) {
  const bool rises = index > 0 && timer->deadline_ns < entries[(index - 1) / 2]->deadline_ns;
  if (rises) {
    sift_up(index, timer);
  } else {
    sift_down(index, timer);
  }
}

void TimerHeap::arm(Timer& timer, TimeNs deadline_ns) {
  timer.deadline_ns = deadline_ns;
  if (timer.place == 0) {
    PEAL_ASSERT(count < capacity);
    sift_up(count++, &timer);
  } else {
    settle(timer.place - 1, &timer);
  }
}

void TimerHeap::take_out(Timer& timer) {
  const uint32_t index = timer.place - 1;
  timer.place = 0;
  --count;
  settle(index, entries[count]);
}

Timer* TimerHeap::pop_due(TimeNs now) {
  if (count == 0 || entries[0]->deadline_ns > now) return nullptr;
  Timer* timer = entries[0];
  disarm(*timer);
  return timer;
}

}  // namespace peal
