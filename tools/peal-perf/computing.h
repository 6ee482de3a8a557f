// SPDX-License-Identifier: BSD-2-Clause
// Work of a known amount, as an application has: a fixed number of turns of a loop that touches no
// memory. How many turns are a microsecond is measured in processor time of the thread, so that it
// does not matter who else has the processor meanwhile.
#pragma once

#include <cstdint>

#include "tools/peal-perf/side.h"

namespace peal::perf {

// Processor time of the calling thread.
uint64_t thread_cpu_ns();

// What to take off a span between two calls of thread_cpu_ns(), for the calls themselves.
uint64_t clock_cost_ns();

void compute(uint64_t turns);

// Turns in a microsecond, the same number on all ranks. Collective.
double measure_turns_per_us(const Job& job);

}  // namespace peal::perf
