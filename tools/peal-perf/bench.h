// SPDX-License-Identifier: BSD-2-Clause
// All that one command line asks for: memories, algorithms, sizes, and for each of them rounds of
// the sides that are compared, by turns, so that whatever else the machine does hits both.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/peal-perf/options.h"
#include "tools/peal-perf/overlap.h"
#include "tools/peal-perf/report.h"
#include "tools/peal-perf/side.h"

namespace peal::perf {

class Bench {
 public:
  Bench(const Job& job, const Options& options)
      : job_(job), options_(options), prints_(job.rank == 0 && options.prints_table()) {}

  // False when anything could not be verified.
  bool run();

 private:
  bool run_groups();
  bool run_pairs();
  void write_records();

  // Peal, and what it is compared with: the ideal card, Peal on a good wire, or nothing.
  struct Sides {
    PealSide& peal;
    Side* other = nullptr;
    Setting setting;
  };

  void run_setting(Memory memory, const std::string& algorithm);
  std::unique_ptr<Side> make_other(Memory memory, const std::string& algorithm,
                                   const Call& longest);
  void run_size(const Sides& sides);
  void run_overlap(const Sides& sides);
  Round next_round(Side& side, const Work& work);
  OverlapRound next_overlap(Side& side, OverlapPlan plan);
  [[nodiscard]] uint32_t operations_per_round() const;

  template <typename Reported>
  void finish(const Reported& record);

  const Job& job_;
  const Options& options_;
  const bool prints_;
  nlohmann::ordered_json records_ = nlohmann::ordered_json::array();
  bool good_ = true;
  uint64_t iteration_ = 0;  // of all, so that no two ever carry the same data
  double turns_per_us_ = 1;
};

}  // namespace peal::perf
