// SPDX-License-Identifier: BSD-2-Clause
// What it takes to end an operation, with the clock right beside the calls. Each side does it with
// itself, so that nothing of peal-perf's is dispatched, through cold tables, in between.
#pragma once

#include "tools/peal-perf/computing.h"
#include "tools/peal-perf/side.h"

namespace peal::perf {

// Looks whether it is over, and waits for it.
template <typename KnownSide>
TimedEnd time_end(KnownSide& side) {
  thread_cpu_ns();  // so that its way into the kernel is in the caches again
  const uint64_t looking = thread_cpu_ns();
  const bool was_over = side.test();
  side.wait();
  return {was_over, thread_cpu_ns() - looking};
}

}  // namespace peal::perf
