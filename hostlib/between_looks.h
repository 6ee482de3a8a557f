// SPDX-License-Identifier: BSD-2-Clause
// What is done between looks: a pause, or a yield, of which one may know what it costs.
#pragma once

#include <sched.h>

#include <cstdint>
#include <ctime>

namespace peal::host {

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

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
