// SPDX-License-Identifier: BSD-2-Clause
// Table and JSON; see report.h.
#include "tools/peal-perf/report.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace peal::perf {

void print_header(bool with_ratio) {
  printf("%-10s %-21s %-10s %5s %9s %10s %10s %10s %10s %9s %s%s\n", "operation", "algorithm",
         "memory", "ranks", "bytes", "median us", "min us", "max us", "period us", "packets",
         "verified", with_ratio ? "  ratio (spread)" : "");
}

void print_record(const Record& record, bool with_ratio) {
  printf("%-10s %-21s %-10s %5u %9llu %10.2f %10.2f %10.2f %10.2f %9.2f %s",
         record.operation.c_str(), record.algorithm.c_str(), record.memory.c_str(), record.ranks,
         static_cast<unsigned long long>(record.bytes), record.latency_us, record.latency_us_min,
         record.latency_us_max, record.period_us, record.packets, record.verified ? "yes" : "NO ");
  if (with_ratio && record.ratio > 0) {
    printf("       %5.2f (%.2f-%.2f)", record.ratio, record.ratio_min, record.ratio_max);
  }
  printf("\n");
  fflush(stdout);
}

bool write_json(const std::string& path, const std::vector<Record>& records) {
  const auto rounded = [](double value) { return std::round(value * 1000) / 1000; };
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Record& record : records) {
    nlohmann::ordered_json entry = {{"operation", record.operation},
                                    {"algorithm", record.algorithm},
                                    {"ranks", record.ranks},
                                    {"bytes", record.bytes},
                                    {"memory", record.memory},
                                    {"iterations", record.iterations},
                                    {"latency_us", rounded(record.latency_us)},
                                    {"latency_us_min", rounded(record.latency_us_min)},
                                    {"latency_us_max", rounded(record.latency_us_max)},
                                    {"period_us", rounded(record.period_us)},
                                    {"packets", rounded(record.packets)},
                                    {"packets_collective", rounded(record.packets_collective)},
                                    {"packets_recycling", rounded(record.packets_recycling)},
                                    {"packets_repair", rounded(record.packets_repair)},
                                    {"verified", record.verified}};
    if (record.ratio > 0) {
      entry["floor_ratio"] = rounded(record.ratio);
      entry["floor_ratio_min"] = rounded(record.ratio_min);
      entry["floor_ratio_max"] = rounded(record.ratio_max);
    }
    list.push_back(std::move(entry));
  }
  FILE* file = fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  fprintf(file, "%s\n", list.dump(2).c_str());
  const bool good = ferror(file) == 0;
  return fclose(file) == 0 && good;
}

}  // namespace peal::perf
