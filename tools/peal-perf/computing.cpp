// SPDX-License-Identifier: BSD-2-Clause
// Measuring the loop; see computing.h.
#include "tools/peal-perf/computing.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <vector>

#include "tools/peal-perf/measure.h"

namespace peal::perf {
namespace {

constexpr uint64_t kTrialTurns = 1'000'000;
constexpr int kTrials = 9;
constexpr size_t kClockTrials = 101;

}  // namespace

uint64_t thread_cpu_ns() {
  timespec used = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(used.tv_nsec);
}

uint64_t clock_cost_ns() {
  std::array<uint64_t, kClockTrials> spans = {};
  for (uint64_t& span : spans) {
    const uint64_t before = thread_cpu_ns();
    span = thread_cpu_ns() - before;
  }
  std::nth_element(spans.begin(), spans.begin() + kClockTrials / 2, spans.end());
  return spans[kClockTrials / 2];
}

void compute(uint64_t turns) {
  uint64_t value = turns;
  for (uint64_t i = 0; i < turns; i++) {
    value = value * 0x9e3779b97f4a7c15u + i;
    asm volatile("" : "+r"(value));  // each turn needs the one before, and none may be left out
  }
}

double measure_turns_per_us(const Job& job) {
  compute(kTrialTurns);  // the processor's clock rises
  std::vector<double> own;
  for (int i = 0; i < kTrials; i++) {
    const uint64_t before = thread_cpu_ns();
    compute(kTrialTurns);
    own.push_back(1e3 * static_cast<double>(kTrialTurns) /
                  static_cast<double>(thread_cpu_ns() - before));
  }
  const double rate = median(own);
  std::vector<double> all(job.size);
  job.gather(rate, all.data());
  return median(all);
}

}  // namespace peal::perf
