// SPDX-License-Identifier: BSD-2-Clause
// Rounds by turns, and what they come to; see bench.h.
#include "tools/peal-perf/bench.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/names.h"
#include "tools/peal-perf/computing.h"
#include "tools/peal-perf/groups.h"
#include "tools/peal-perf/measure.h"
#include "tools/peal-perf/pairs.h"

namespace peal::perf {
namespace {

// The good wire's cards come behind those of the bad one, a card for each rank.
const char* card_on_good_wire() {
  const char* const card = getenv("PEAL_SECOND_CARD");
  if (card == nullptr) {
    fprintf(stderr,
            "peal-perf: --compare-loss: no $PEAL_SECOND_CARD, which pealrun sets where it starts "
            "two cards for each rank\n");
    _Exit(1);
  }
  return card;
}

// What all rounds of one side had in common.
struct Collected {
  std::vector<double> latency_us;
  std::vector<double> period_us;
  std::vector<double> medians_us;  // per round
  bool verified = true;

  void add(const Round& round) {
    latency_us.insert(latency_us.end(), round.latency_us.begin(), round.latency_us.end());
    period_us.insert(period_us.end(), round.period_us.begin(), round.period_us.end());
    medians_us.push_back(median(round.latency_us));
    verified = verified && round.verified;
  }

  void fill(Record* record) const {
    record->latency_us = spread(latency_us);
    record->latency_us_mean = mean(latency_us);
    record->period_us = median(period_us);
    record->period_us_mean = mean(period_us);
    record->verified = verified;
  }
};

// Round by round.
Spread ratios(const std::vector<double>& values, const std::vector<double>& others) {
  std::vector<double> all;
  for (size_t i = 0; i < values.size(); i++) all.push_back(values[i] / others[i]);
  return spread(all);
}

OverlapRecord make_overlap_record(const Setting& setting, const std::vector<OverlapRound>& rounds) {
  OverlapRecord record;
  record.setting = setting;
  const auto each = [&](auto value) {
    std::vector<double> values;
    for (const OverlapRound& round : rounds) {
      if (!std::isnan(value(round))) values.push_back(value(round));
    }
    return spread(values);
  };
  record.comm_us = each([](const OverlapRound& round) { return round.comm_us; });
  record.work_us = each([](const OverlapRound& round) { return round.work_us; });
  record.both_us = each([](const OverlapRound& round) { return round.both_us; });
  record.cpu_us = each([](const OverlapRound& round) { return round.cpu_us; });
  record.ratio = each([](const OverlapRound& round) { return round.ratio(); });
  record.overlap = each([](const OverlapRound& round) { return round.overlap(); });
  record.start_cpu_us = each([](const OverlapRound& round) { return round.start_cpu_us; });
  record.done_cpu_us = each([](const OverlapRound& round) { return round.done_cpu_us; });
  record.done_before = each([](const OverlapRound& round) { return round.done_before; });
  record.verified = std::all_of(rounds.begin(), rounds.end(),
                                [](const OverlapRound& round) { return round.verified; });
  return record;
}

}  // namespace

bool Bench::run() {
  if (options_.talk) return run_pairs();
  if (options_.operation == PEAL_OPERATION_NONE) return run_groups();
  if (options_.overlap) turns_per_us_ = measure_turns_per_us(job_);
  if (prints_) print_header(options_);
  for (const Memory memory : options_.memories) {
    for (const std::string& algorithm : options_.algorithms) run_setting(memory, algorithm);
  }
  write_records();
  return good_;
}

bool Bench::run_groups() {
  const GroupRecord record = measure_groups(job_, options_);
  if (prints_) print_record(record);
  records_.push_back(to_json(record));
  write_records();
  return good_;
}

bool Bench::run_pairs() {
  if (prints_) print_header(options_);
  for (const Memory memory : options_.memories) {
    Pairs pairs(job_, options_, memory);
    for (const uint64_t bytes : options_.sizes) {
      PairsRecord record = pairs.measure(bytes);
      record.setting.memory = memory_name(memory);
      finish(record);
    }
  }
  write_records();
  return good_;
}

void Bench::write_records() {
  if (job_.rank == 0 && !options_.json.empty() && !write_json(options_.json, records_)) {
    fprintf(stderr, "peal-perf: cannot write %s: %s\n", options_.json.c_str(), strerror(errno));
    good_ = false;
  }
}

std::unique_ptr<Side> Bench::make_other(Memory memory, const std::string& algorithm,
                                        const Call& longest) {
  if (options_.floor) return make_floor_side(job_, memory, longest);
  if (!options_.compare_loss) return nullptr;
  return std::make_unique<PealSide>(job_, card_on_good_wire(), algorithm, memory, options_.in_place,
                                    options_.persistent, longest);
}

void Bench::run_setting(Memory memory, const std::string& algorithm) {
  const uint64_t most = *std::max_element(options_.sizes.begin(), options_.sizes.end());
  const Call longest = {options_.operation, most, 0, options_.spread};
  PealSide peal(job_, nullptr, algorithm, memory, options_.in_place, options_.persistent, longest);
  const std::unique_ptr<Side> other = make_other(memory, algorithm, longest);
  for (const uint64_t bytes : options_.sizes) {
    Setting setting;
    setting.operation = names::operation(options_.operation);
    setting.algorithm = algorithm;
    setting.memory = memory_name(memory);
    setting.ranks = job_.size;
    setting.bytes = bytes;
    setting.iterations = uint64_t{options_.rounds} * operations_per_round();
    peal.use_block(bytes);
    if (other != nullptr) other->use_block(bytes);
    const Sides sides = {peal, other.get(), setting};
    options_.overlap ? run_overlap(sides) : run_size(sides);
  }
}

uint32_t Bench::operations_per_round() const {
  return std::max(options_.iterations / options_.rounds, 1u);
}

Round Bench::next_round(Side& side, const Work& work) {
  const uint64_t first = iteration_;
  iteration_ += options_.warmup + operations_per_round();
  return measure_round(job_, side, work, options_.warmup, operations_per_round(), first);
}

void Bench::run_size(const Sides& sides) {
  const Work work = {options_.operation, sides.setting.bytes, options_.root, options_.spread};
  Collected peal_all;
  Collected other_all;
  const Packets before = sides.peal.packets();
  for (uint32_t round = 0; round < options_.rounds; round++) {
    if (sides.other != nullptr) other_all.add(next_round(*sides.other, work));
    peal_all.add(next_round(sides.peal, work));
  }
  const Packets after = sides.peal.packets();

  Record record;
  record.setting = sides.setting;
  peal_all.fill(&record);
  const double operations =
      double{1} * options_.rounds * (options_.warmup + operations_per_round());
  const auto per_operation = [&](uint64_t was, uint64_t is) {
    return static_cast<double>(is - was) / operations;
  };
  record.packets_collective = per_operation(before.collective, after.collective);
  record.packets_recycling = per_operation(before.recycling, after.recycling);
  record.packets_repair = per_operation(before.repair, after.repair);
  record.packets = record.packets_collective + record.packets_recycling + record.packets_repair +
                   per_operation(before.other, after.other);
  if (sides.other != nullptr) {
    Record beside;
    beside.setting = sides.setting;
    beside.setting.algorithm = sides.other->name(sides.setting.algorithm);
    other_all.fill(&beside);
    finish(beside);
    record.compared_with = options_.floor ? "floor" : "good_wire";
    record.ratio = ratios(peal_all.medians_us, other_all.medians_us);
    record.ratio_mean = record.latency_us_mean / beside.latency_us_mean;
  }
  finish(record);
}

OverlapRound Bench::next_overlap(Side& side, OverlapPlan plan) {
  plan.first_iteration = iteration_;
  iteration_ += plan.iterations();
  return measure_overlap(job_, side, plan);
}

void Bench::run_overlap(const Sides& sides) {
  OverlapPlan plan;
  plan.work = {options_.operation, sides.setting.bytes, options_.root, options_.spread};
  plan.work_us = options_.work_us;
  plan.tests = options_.tests;
  plan.warmup = options_.warmup;
  plan.operations = operations_per_round();
  plan.turns_per_us = turns_per_us_;
  std::vector<OverlapRound> peal_all;
  std::vector<OverlapRound> other_all;
  for (uint32_t round = 0; round < options_.rounds; round++) {
    if (sides.other != nullptr) other_all.push_back(next_overlap(*sides.other, plan));
    peal_all.push_back(next_overlap(sides.peal, plan));
  }
  if (sides.other != nullptr) {
    Setting beside = sides.setting;
    beside.algorithm = sides.other->name(beside.algorithm);
    finish(make_overlap_record(beside, other_all));
  }
  finish(make_overlap_record(sides.setting, peal_all));
}

template <typename Reported>
void Bench::finish(const Reported& record) {
  good_ = good_ && record.verified;
  if (prints_) print_record(record);
  records_.push_back(to_json(record));
}

}  // namespace peal::perf
