// SPDX-License-Identifier: BSD-2-Clause
// The loop and its clock; see groups.h.
#include "tools/peal-perf/groups.h"

#include <algorithm>
#include <vector>

#include "tools/peal-perf/extent.h"
#include "tools/peal-perf/measure.h"

namespace peal::perf {
namespace {

// One call, on one rank.
struct Taken {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t exchange_ns = 0;  // of it, in the caller's exchange

  [[nodiscard]] uint64_t own_ns() const { return end_ns - start_ns - exchange_ns; }
};

// The job's exchange, with a clock.
struct TimedExchange {
  const Job& job;
  uint64_t ns = 0;

  static int run(void* argument, const void* send, void* receive, size_t bytes) {
    auto* self = static_cast<TimedExchange*>(argument);
    const uint64_t start = now_ns();
    const int failed = peal_oob_exchange(self->job.oob, send, receive, bytes);
    self->ns += now_ns() - start;
    return failed;
  }
};

class Groups {
 public:
  Groups(const Job& job, const Options& options) : job_(job), options_(options) {
    if (peal_open(nullptr, &context_) != PEAL_OK) give_up(job_, "opening the card");
  }
  ~Groups() { peal_close(context_); }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  GroupRecord run() {
    for (uint32_t i = 0; i < options_.warmup; i += options_.at_once) some(false);
    for (uint32_t i = 0; i < options_.iterations; i += options_.at_once) some(true);
    GroupRecord record;
    record.ranks = job_.size;
    record.at_once = options_.at_once;
    record.groups = create_us_.size();
    record.create_us = spread(create_us_);
    record.create_own_us = spread(create_own_us_);
    record.destroy_us = spread(destroy_us_);
    return record;
  }

 private:
  void some(bool measured) {
    std::vector<peal_group*> groups(options_.at_once);
    for (peal_group*& group : groups) create(&group, measured);
    for (peal_group* group : groups) {
      if (peal_barrier(group) != PEAL_OK) give_up(job_, "a barrier in the group");
    }
    for (peal_group* group : groups) destroy(group, measured);
  }

  void create(peal_group** group, bool measured) {
    TimedExchange exchange = {job_};
    job_.barrier();
    Taken own;
    own.start_ns = now_ns();
    if (peal_group_create(context_, job_.rank, job_.size, TimedExchange::run, &exchange, nullptr,
                          group) != PEAL_OK) {
      give_up(job_, "making a group");
    }
    own.end_ns = now_ns();
    own.exchange_ns = exchange.ns;
    note(own, measured, &create_us_, &create_own_us_);
  }

  void destroy(peal_group* group, bool measured) {
    job_.barrier();
    Taken own;
    own.start_ns = now_ns();
    if (peal_group_destroy(group) != PEAL_OK) give_up(job_, "destroying a group");
    own.end_ns = now_ns();
    note(own, measured, &destroy_us_, nullptr);
  }

  // Of all ranks together; beside the exchange, of the slowest rank.
  void note(const Taken& own, bool measured, std::vector<double>* whole_us,
            std::vector<double>* own_us) {
    std::vector<Taken> all(job_.size);
    job_.gather(own, all.data());
    if (!measured) return;
    Extent extent;
    uint64_t longest_own = 0;
    for (const Taken& each : all) {
      extent.add(each.start_ns, each.end_ns);
      longest_own = std::max(longest_own, each.own_ns());
    }
    whole_us->push_back(extent.us(job_.common_clock));
    if (own_us != nullptr) own_us->push_back(static_cast<double>(longest_own) * 1e-3);
  }

  const Job& job_;
  const Options& options_;
  peal_context* context_ = nullptr;
  std::vector<double> create_us_;
  std::vector<double> create_own_us_;
  std::vector<double> destroy_us_;
};

}  // namespace

GroupRecord measure_groups(const Job& job, const Options& options) {
  return Groups(job, options).run();
}

}  // namespace peal::perf
