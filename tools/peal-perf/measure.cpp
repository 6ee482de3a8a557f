// SPDX-License-Identifier: BSD-2-Clause
// The measuring loop; see measure.h. Processes on one machine share CLOCK_MONOTONIC; where the
// ranks are on several, an iteration took as long as it took the slowest rank by its own clock.
#include "tools/peal-perf/measure.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <numeric>

#include "tools/peal-perf/data.h"

namespace peal::perf {
namespace {

struct Stamp {
  uint64_t start_ns;
  uint64_t end_ns;
};

// One out-of-band message takes at most 1 MiB.
constexpr size_t kStampsPerExchange = 32768;

// Write, operate, read: what an application does.
bool run_once(const Job& job, Side& side, const Work& work, uint64_t iteration, Stamp* stamp) {
  const Call call = work.call(job, iteration);
  stamp->start_ns = now_ns();
  write_data(job, side, call, iteration);
  side.run(call);
  const bool good = read_data(job, side, call, iteration);
  stamp->end_ns = now_ns();
  return good;
}

void evaluate(const Job& job, const Work& work, uint64_t first_iteration,
              const std::vector<Stamp>& own, Round* round) {
  const bool rooted = work.operation == PEAL_OPERATION_BROADCAST;
  std::vector<Stamp> all;
  for (size_t first = 0; first < own.size(); first += kStampsPerExchange) {
    const size_t count = std::min(kStampsPerExchange, own.size() - first);
    all.resize(count * job.size);
    job.exchange(&own[first], all.data(), count * sizeof(Stamp));
    for (size_t i = 0; i < count; i++) {
      uint64_t first_start = UINT64_MAX;
      uint64_t last_start = 0;
      uint64_t first_end = UINT64_MAX;
      uint64_t last_end = 0;
      uint64_t longest = 0;
      for (uint32_t rank = 0; rank < job.size; rank++) {
        const Stamp& stamp = all[rank * count + i];
        first_start = std::min(first_start, stamp.start_ns);
        last_start = std::max(last_start, stamp.start_ns);
        first_end = std::min(first_end, stamp.end_ns);
        last_end = std::max(last_end, stamp.end_ns);
        longest = std::max(longest, stamp.end_ns - stamp.start_ns);
      }
      if (!job.common_clock) {
        round->latency_us.push_back(static_cast<double>(longest) * 1e-3);
        continue;
      }
      if (rooted) {
        first_start = last_start =
            all[work.root_of(job, first_iteration + first + i) * count + i].start_ns;
      }
      // A broadcast ends nowhere before its root has begun; everything else, before all have.
      if (first_end < last_start) {
        fprintf(stderr, "peal-perf: iteration %zu ended before %s had begun\n", first + i,
                rooted ? "its root" : "the last rank");
        round->verified = false;
      }
      round->latency_us.push_back(static_cast<double>(last_end - first_start) * 1e-3);
    }
  }
  for (size_t i = 1; i < own.size(); i++) {
    round->period_us.push_back(static_cast<double>(own[i].end_ns - own[i - 1].end_ns) * 1e-3);
  }
}

}  // namespace

uint64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

bool all_good(const Job& job, bool good) {
  const uint8_t own = good ? 1 : 0;
  std::vector<uint8_t> all(job.size);
  job.exchange(&own, all.data(), 1);
  return std::all_of(all.begin(), all.end(), [](uint8_t each) { return each != 0; });
}

Round measure_round(const Job& job, Side& side, const Work& work, uint32_t warmup,
                    uint32_t iterations, uint64_t first_iteration) {
  Round round;
  std::vector<Stamp> stamps(iterations);
  side.begin_round();
  bool good = true;
  for (uint32_t i = 0; i < warmup; i++) {
    Stamp ignored = {};
    good &= run_once(job, side, work, first_iteration + i, &ignored);
  }
  for (uint32_t i = 0; i < iterations; i++) {
    good &= run_once(job, side, work, first_iteration + warmup + i, &stamps[i]);
  }
  side.end_round();
  round.verified = good;
  evaluate(job, work, first_iteration + warmup, stamps, &round);
  round.verified = all_good(job, round.verified);
  return round;
}

double percentile(std::vector<double> values, uint32_t percent) {
  if (values.empty()) return 0;
  const auto place = values.begin() + static_cast<ptrdiff_t>(values.size() * percent / 100);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

double median(std::vector<double> values) { return percentile(std::move(values), 50); }

double mean(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Spread spread(std::vector<double> values) {
  if (values.empty()) return {kNoFigure, kNoFigure, kNoFigure};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const Spread result = {0, *least, *most};
  return {median(std::move(values)), result.min, result.max};
}

}  // namespace peal::perf
