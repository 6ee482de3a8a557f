// SPDX-License-Identifier: BSD-2-Clause
// The results: a table for people, a JSON list for programs.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/peal-perf/options.h"

namespace peal::perf {

// What was measured.
struct Setting {
  std::string operation;
  std::string algorithm;
  std::string memory;
  uint32_t ranks = 0;
  uint64_t bytes = 0;
  uint64_t iterations = 0;
};

// Where nothing was measured: "-" in tables, null in records.
inline constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

struct Record {
  Setting setting;
  Spread latency_us;
  double latency_us_mean = 0;
  // Back to back, on rank 0: the median, and the mean, which is the time of all of them by their
  // number. Where ranks run ahead and are waited for by turns, only the mean says how fast it goes.
  double period_us = 0;
  double period_us_mean = 0;
  bool verified = false;
  // Packets per operation, from the cards' counters; all zero for what is compared with.
  double packets = 0;
  double packets_collective = 0;
  double packets_recycling = 0;
  double packets_repair = 0;
  // Against the other side: of the medians round by round, and of the means of all; "floor",
  // "good_wire" or nothing.
  std::string compared_with;
  Spread ratio;
  double ratio_mean = 0;
};

// Over the rounds; what each is, overlap.h says.
struct OverlapRecord {
  Setting setting;
  Spread comm_us;
  Spread work_us;
  Spread both_us;
  Spread cpu_us;
  Spread ratio;
  Spread overlap;
  Spread start_cpu_us;
  Spread done_cpu_us;
  Spread done_before;
  bool verified = false;
};

// Of groups made and destroyed; over all of them.
struct GroupRecord {
  uint32_t ranks = 0;
  uint32_t at_once = 0;
  uint64_t groups = 0;
  Spread create_us;      // from the first rank's start to the last one's end
  Spread create_own_us;  // of the slowest rank, without the caller's exchange
  Spread destroy_us;
};

// Of pairs of ranks; over all pairs.
struct PairsRecord {
  Setting setting;  // without an algorithm
  uint32_t pairs = 0;
  Spread latency_us;
  double latency_us_p99 = 0;
  double latency_us_mean = 0;
  uint32_t window = 0;
  double message_us = 0;  // median of a whole window, shared out among its messages
  bool verified = false;

  // Of one pair.
  [[nodiscard]] double messages_per_s() const { return message_us == 0 ? 0 : 1e6 / message_us; }
  [[nodiscard]] double bytes_per_s() const {
    return messages_per_s() * static_cast<double>(setting.bytes);
  }
};

void print_header(const Options& options);
void print_record(const Record& record);
void print_record(const OverlapRecord& record);
void print_record(const GroupRecord& record);  // with its header
void print_record(const PairsRecord& record);
nlohmann::ordered_json to_json(const Record& record);
nlohmann::ordered_json to_json(const OverlapRecord& record);
nlohmann::ordered_json to_json(const GroupRecord& record);
nlohmann::ordered_json to_json(const PairsRecord& record);
// False with errno.
bool write_json(const std::string& path, const nlohmann::ordered_json& records);

}  // namespace peal::perf
