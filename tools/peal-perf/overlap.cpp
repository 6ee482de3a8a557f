// SPDX-License-Identifier: BSD-2-Clause
// The parts of a round; see overlap.h.
#include "tools/peal-perf/overlap.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tools/peal-perf/computing.h"
#include "tools/peal-perf/data.h"
#include "tools/peal-perf/extent.h"

namespace peal::perf {
namespace {

// One round, in three parts; the calls' processor time is measured in a fourth, since reading the
// clock costs more than some of them.
class Overlapping {
 public:
  Overlapping(const Job& job, Side& side, const OverlapPlan& plan)
      : job_(job), side_(side), plan_(plan), iteration_(plan.first_iteration) {}

  OverlapRound run();

 private:
  // Runs `each` as often as the plan says; what one took, over all ranks.
  template <typename Each>
  double time(Each each);
  void communicate();
  void overlap();
  void overlap_measured();
  void work();
  Call begin();
  void end(const Call& call);
  [[nodiscard]] double over_ranks(double value) const;

  const Job& job_;
  Side& side_;
  const OverlapPlan& plan_;
  uint64_t iteration_;
  uint64_t turns_ = 0;  // of work for each operation
  uint64_t clock_ns_ = 0;
  std::vector<double> start_us_;
  std::vector<double> done_us_;
  bool good_ = true;
};

Call Overlapping::begin() {
  const Call call = plan_.work.call(job_, iteration_);
  write_data(job_, side_, call, iteration_);
  return call;
}

void Overlapping::end(const Call& call) {
  good_ = read_data(job_, side_, call, iteration_) && good_;
  iteration_++;
}

void Overlapping::communicate() {
  const Call call = begin();
  side_.run(call);
  end(call);
}

void Overlapping::work() {
  bool done = false;
  const uint64_t part = turns_ / (plan_.tests + 1);
  for (uint32_t i = 0; i < plan_.tests; i++) {
    compute(part);
    done = done || side_.test();
  }
  compute(turns_ - plan_.tests * part);
}

void Overlapping::overlap() {
  const Call call = begin();
  side_.start(call);
  work();
  side_.wait();
  end(call);
}

void Overlapping::overlap_measured() {
  const auto us = [&](uint64_t span_ns) {
    return static_cast<double>(span_ns - std::min(span_ns, clock_ns_)) * 1e-3;
  };
  const Call call = begin();
  thread_cpu_ns();  // so that its way into the kernel is in the caches again
  const uint64_t starting = thread_cpu_ns();
  side_.start(call);
  const uint64_t started = thread_cpu_ns();
  start_us_.push_back(us(started - starting));
  compute(turns_);
  const TimedEnd ended = side_.end_timed();
  if (ended.was_over) done_us_.push_back(us(ended.cpu_ns));
  end(call);
}

// Of those that have one.
double Overlapping::over_ranks(double value) const {
  std::vector<double> all(job_.size);
  job_.gather(value, all.data());
  std::erase_if(all, [](double each) { return std::isnan(each); });
  return all.empty() ? kNoFigure : median(all);
}

template <typename Each>
double Overlapping::time(Each each) {
  struct Span {
    uint64_t first_ns;
    uint64_t last_ns;
  };
  for (uint32_t i = 0; i < plan_.warmup; i++) each();
  start_us_.clear();
  done_us_.clear();
  job_.barrier();
  Span own = {now_ns(), 0};
  for (uint32_t i = 0; i < plan_.operations; i++) each();
  own.last_ns = now_ns();
  std::vector<Span> all(job_.size);
  job_.gather(own, all.data());
  Extent extent;
  for (const Span& span : all) extent.add(span.first_ns, span.last_ns);
  return extent.us(job_.common_clock) / plan_.operations;
}

OverlapRound Overlapping::run() {
  OverlapRound round;
  side_.begin_round();
  round.comm_us = time([&] { communicate(); });
  round.cpu_us = plan_.work_us > 0 ? plan_.work_us : round.comm_us;
  turns_ = std::max<uint64_t>(static_cast<uint64_t>(round.cpu_us * plan_.turns_per_us), 1);
  round.work_us = time([&] { compute(turns_); });
  round.both_us = time([&] { overlap(); });
  clock_ns_ = clock_cost_ns();
  time([&] { overlap_measured(); });
  side_.end_round();
  round.start_cpu_us = over_ranks(median(start_us_));
  round.done_cpu_us = over_ranks(done_us_.empty() ? kNoFigure : median(done_us_));
  round.done_before =
      over_ranks(static_cast<double>(done_us_.size()) / static_cast<double>(start_us_.size()));
  round.verified = all_good(job_, good_);
  return round;
}

}  // namespace

OverlapRound measure_overlap(const Job& job, Side& side, const OverlapPlan& plan) {
  return Overlapping(job, side, plan).run();
}

}  // namespace peal::perf
