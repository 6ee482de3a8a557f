// SPDX-License-Identifier: BSD-2-Clause
// Table and JSON; see report.h.
#include "tools/peal-perf/report.h"

#include <cstdio>

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
  FILE* file = fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  fprintf(file, "[");
  for (size_t i = 0; i < records.size(); i++) {
    const Record& record = records[i];
    fprintf(file,
            "%s\n  {\"operation\": \"%s\", \"algorithm\": \"%s\", \"ranks\": %u, \"bytes\": %llu, "
            "\"memory\": \"%s\", \"iterations\": %llu, \"latency_us\": %.3f, "
            "\"latency_us_min\": %.3f, \"latency_us_max\": %.3f, \"period_us\": %.3f, "
            "\"packets\": %.3f, \"packets_collective\": %.3f, \"packets_recycling\": %.3f, "
            "\"packets_repair\": %.3f, \"verified\": %s",
            i == 0 ? "" : ",", record.operation.c_str(), record.algorithm.c_str(), record.ranks,
            static_cast<unsigned long long>(record.bytes), record.memory.c_str(),
            static_cast<unsigned long long>(record.iterations), record.latency_us,
            record.latency_us_min, record.latency_us_max, record.period_us, record.packets,
            record.packets_collective, record.packets_recycling, record.packets_repair,
            record.verified ? "true" : "false");
    if (record.ratio > 0) {
      fprintf(file, ", \"floor_ratio\": %.3f, \"floor_ratio_min\": %.3f, \"floor_ratio_max\": %.3f",
              record.ratio, record.ratio_min, record.ratio_max);
    }
    fprintf(file, "}");
  }
  fprintf(file, "\n]\n");
  const bool good = ferror(file) == 0;
  return fclose(file) == 0 && good;
}

}  // namespace peal::perf
