// SPDX-License-Identifier: BSD-2-Clause
// peal-perf: what a collective takes, with every result verified, beside what the ideal card takes
// in the same run.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/names.h"
#include "tools/peal-perf/measure.h"
#include "tools/peal-perf/options.h"
#include "tools/peal-perf/report.h"
#include "tools/peal-perf/side.h"

namespace peal::perf {
namespace {

constexpr const char* kLaunched = "PEAL_PERF_LAUNCHED";

// Starts this very command line again, once per rank.
int launch(const Options& options, int argc, char** argv) {
  char path[PATH_MAX] = {};
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0) {
    perror("peal-perf: /proc/self/exe");
    return 1;
  }
  const std::string self(path);
  const std::string pealrun = self.substr(0, self.rfind('/')) + "/pealrun";
  std::vector<std::string> words = {pealrun, "-n", std::to_string(options.ranks)};
  words.insert(words.end(), options.launch.begin(), options.launch.end());
  words.insert(words.end(), {"--", self});
  for (int i = 1; i < argc; i++) words.emplace_back(argv[i]);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  setenv(kLaunched, "1", 1);
  execv(pealrun.c_str(), arguments.data());
  fprintf(stderr, "peal-perf: cannot start %s: %s\n", pealrun.c_str(), strerror(errno));
  return 1;
}

Record make_record(const Job& job, const Options& options, uint64_t bytes, Memory memory) {
  Record record;
  record.operation = names::operation(options.operation);
  record.memory = memory_name(memory);
  record.ranks = job.size;
  record.bytes = bytes;
  record.iterations = options.iterations;
  return record;
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
    record->latency_us = median(latency_us);
    record->latency_us_min = *std::min_element(latency_us.begin(), latency_us.end());
    record->latency_us_max = *std::max_element(latency_us.begin(), latency_us.end());
    record->period_us = median(period_us);
    record->verified = verified;
  }
};

class Bench {
 public:
  Bench(const Job& job, const Options& options) : job_(job), options_(options) {}

  // False when anything could not be verified.
  bool run();

 private:
  void run_setting(Memory memory, const std::string& algorithm);
  void run_size(PealSide& peal, Side* floor, Memory memory, const std::string& algorithm,
                uint64_t bytes);
  void finish(Record record, bool show_ratio);

  const Job& job_;
  const Options& options_;
  std::vector<Record> records_;
  bool good_ = true;
  uint64_t iteration_ = 0;  // of all, so that no two ever carry the same data
};

bool Bench::run() {
  if (job_.rank == 0) print_header(options_.floor);
  for (const Memory memory : options_.memories) {
    for (const std::string& algorithm : options_.algorithms) run_setting(memory, algorithm);
  }
  if (job_.rank == 0 && !options_.json.empty() && !write_json(options_.json, records_)) {
    fprintf(stderr, "peal-perf: cannot write %s: %s\n", options_.json.c_str(), strerror(errno));
    good_ = false;
  }
  return good_;
}

void Bench::run_setting(Memory memory, const std::string& algorithm) {
  const uint64_t most = *std::max_element(options_.sizes.begin(), options_.sizes.end());
  PealSide peal(job_, options_.operation, algorithm, memory, options_.in_place, most);
  std::unique_ptr<Side> floor;
  if (options_.floor) floor = make_floor_side(job_, options_.operation, memory, most);
  for (const uint64_t bytes : options_.sizes) run_size(peal, floor.get(), memory, algorithm, bytes);
}

void Bench::run_size(PealSide& peal, Side* floor, Memory memory, const std::string& algorithm,
                     uint64_t bytes) {
  const Work work = {options_.operation, bytes, options_.root};
  const uint32_t per_round = std::max(options_.iterations / options_.rounds, 1u);
  peal.use_block(bytes);
  Collected peal_all;
  Collected floor_all;
  const Packets before = peal.packets();
  for (uint32_t round = 0; round < options_.rounds; round++) {
    // Alternately, so that whatever else the machine does hits both.
    if (floor != nullptr) {
      floor_all.add(measure_round(job_, *floor, work, options_.warmup, per_round, iteration_));
      iteration_ += options_.warmup + per_round;
    }
    peal_all.add(measure_round(job_, peal, work, options_.warmup, per_round, iteration_));
    iteration_ += options_.warmup + per_round;
  }
  const Packets after = peal.packets();

  Record record = make_record(job_, options_, bytes, memory);
  record.algorithm = algorithm;
  peal_all.fill(&record);
  const double operations = double{1} * options_.rounds * (options_.warmup + per_round);
  const auto per_operation = [&](uint64_t was, uint64_t is) {
    return static_cast<double>(is - was) / operations;
  };
  record.packets_collective = per_operation(before.collective, after.collective);
  record.packets_recycling = per_operation(before.recycling, after.recycling);
  record.packets_repair = per_operation(before.repair, after.repair);
  record.packets = record.packets_collective + record.packets_recycling + record.packets_repair +
                   per_operation(before.other, after.other);
  if (floor != nullptr) {
    std::vector<double> ratios;
    for (size_t i = 0; i < peal_all.medians_us.size(); i++) {
      ratios.push_back(peal_all.medians_us[i] / floor_all.medians_us[i]);
    }
    record.ratio = median(ratios);
    record.ratio_min = *std::min_element(ratios.begin(), ratios.end());
    record.ratio_max = *std::max_element(ratios.begin(), ratios.end());
    Record ideal = make_record(job_, options_, bytes, memory);
    ideal.algorithm = "ideal-card";
    floor_all.fill(&ideal);
    finish(ideal, true);
  }
  finish(record, floor != nullptr);
}

void Bench::finish(Record record, bool show_ratio) {
  good_ = good_ && record.verified;
  if (job_.rank == 0) print_record(record, show_ratio);
  records_.push_back(std::move(record));
}

// Whether all ranks run under one kernel, and so have one clock.
bool on_one_machine(const Job& job) {
  std::array<char, 40> boot_id = {};
  std::ifstream("/proc/sys/kernel/random/boot_id").read(boot_id.data(), boot_id.size() - 1);
  std::vector<std::array<char, 40>> all(job.size);
  job.gather(boot_id, all.data());
  return std::all_of(all.begin(), all.end(), [&](const auto& other) { return other == boot_id; });
}

int run(const Options& options) {
  Job job;
  if (peal_launch_rank(&job.rank, &job.size) != PEAL_OK ||
      peal_oob_connect(nullptr, job.rank, job.size, 0, &job.oob) != PEAL_OK) {
    give_up(job, "start");
  }
  job.common_clock = on_one_machine(job);
  if (options.root && *options.root >= job.size) {
    if (job.rank == 0) {
      fprintf(stderr, "peal-perf: --root: there is no rank %u of %u\n", *options.root, job.size);
    }
    peal_oob_close(job.oob);
    return 2;
  }
  const char* cpu = getenv("PEAL_CARD_CPU");
  if (cpu != nullptr) job.card_cpu = atoi(cpu);
  if (job.rank == 0 && !options.launch.empty() && getenv(kLaunched) == nullptr) {
    fprintf(stderr, "peal-perf: already under a launcher, so %s has no effect\n",
            options.launch[0].c_str());
  }
  const bool good = Bench(job, options).run();
  peal_oob_close(job.oob);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace peal::perf

int main(int argc, char** argv) {
  peal::perf::Options options;
  if (const auto status = peal::perf::parse_options(argc, argv, &options)) return *status;
  if (getenv("PEAL_RANK") == nullptr) return peal::perf::launch(options, argc, argv);
  return peal::perf::run(options);
}
