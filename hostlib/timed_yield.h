// SPDX-License-Identifier: BSD-2-Clause
// A yield, and what it costs the processor.
#pragma once

#include <sched.h>

#include <cstdint>
#include <ctime>

namespace peal::host {

// Gives way to whoever else the processor has. Where `timed`, returns for how many nanoseconds this
// thread had the processor meanwhile, to give it and to take it again; else 0, for less.
inline uint64_t yield(bool timed) {
  if (!timed) {
    sched_yield();
    return 0;
  }
  timespec before = {};
  timespec after = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  sched_yield();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  return static_cast<uint64_t>((after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec -
                               before.tv_nsec);
}

}  // namespace peal::host
