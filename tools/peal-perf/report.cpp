// SPDX-License-Identifier: BSD-2-Clause
// Table and JSON; see report.h.
#include "tools/peal-perf/report.h"

#include <cmath>
#include <cstdio>

namespace peal::perf {
namespace {

double rounded(double value) { return std::round(value * 1000) / 1000; }

void print_setting(const Setting& setting) {
  printf("%-10s %-21s %-10s %5u %9llu ", setting.operation.c_str(), setting.algorithm.c_str(),
         setting.memory.c_str(), setting.ranks, static_cast<unsigned long long>(setting.bytes));
}

nlohmann::ordered_json setting_json(const Setting& setting) {
  return {{"operation", setting.operation}, {"algorithm", setting.algorithm},
          {"ranks", setting.ranks},         {"bytes", setting.bytes},
          {"memory", setting.memory},       {"iterations", setting.iterations}};
}

void add(nlohmann::ordered_json& entry, const std::string& name, const Spread& spread) {
  entry[name] = rounded(spread.median);
  entry[name + "_min"] = rounded(spread.min);
  entry[name + "_max"] = rounded(spread.max);
}

}  // namespace

void print_header(const Options& options) {
  if (options.talk) {
    printf("%-10s %-10s %5s %5s %9s %10s %10s %10s %10s %6s %11s %11s %8s %s\n", "operation",
           "memory", "ranks", "pairs", "bytes", "median us", "min us", "p99 us", "max us", "window",
           "each us", "messages/s", "MB/s", "verified");
    return;
  }
  printf("%-10s %-21s %-10s %5s %9s ", "operation", "algorithm", "memory", "ranks", "bytes");
  if (options.overlap) {
    printf("%10s %10s %10s %19s %8s %9s %9s %6s %s\n", "T_comm us", "T_work us", "T_both us",
           "both/sum (spread)", "overlap", "start cpu", "done cpu", "there", "verified");
    return;
  }
  printf("%10s %10s %10s %10s %9s %s%s\n", "median us", "min us", "max us", "period us", "packets",
         "verified", options.floor || options.compare_loss ? "  ratio (spread), of means" : "");
}

void print_record(const Record& record) {
  print_setting(record.setting);
  printf("%10.2f %10.2f %10.2f %10.2f %9.2f %s", record.latency_us.median, record.latency_us.min,
         record.latency_us.max, record.period_us, record.packets, record.verified ? "yes" : "NO ");
  if (!record.compared_with.empty()) {
    printf("       %5.2f (%.2f-%.2f), %.2f", record.ratio.median, record.ratio.min,
           record.ratio.max, record.ratio_mean);
  }
  printf("\n");
  fflush(stdout);
}

void print_record(const OverlapRecord& record) {
  print_setting(record.setting);
  char done[32] = "-";
  if (!std::isnan(record.done_cpu_us.median))
    snprintf(done, sizeof(done), "%.2f", record.done_cpu_us.median);
  printf("%10.2f %10.2f %10.2f    %4.2f (%4.2f-%5.2f) %6.0f %% %9.2f %9s %4.0f %% %s\n",
         record.comm_us.median, record.work_us.median, record.both_us.median, record.ratio.median,
         record.ratio.min, record.ratio.max, 100 * record.overlap.median,
         record.start_cpu_us.median, done, 100 * record.done_before.median,
         record.verified ? "yes" : "NO ");
  fflush(stdout);
}

void print_record(const GroupRecord& record) {
  printf("%5s %8s %8s  %-26s %-26s %s\n", "ranks", "at once", "groups", "create us (min-max)",
         "without exchange", "destroy us");
  printf("%5u %8u %8llu ", record.ranks, record.at_once,
         static_cast<unsigned long long>(record.groups));
  for (const Spread& spread : {record.create_us, record.create_own_us, record.destroy_us})
    printf(" %7.0f (%.0f-%.0f)%*s", spread.median, spread.min, spread.max, 6, "");
  printf("\n");
}

void print_record(const PairsRecord& record) {
  const Setting& setting = record.setting;
  printf("%-10s %-10s %5u %5u %9llu %10.2f %10.2f %10.2f %10.2f %6u %11.2f %11.0f %8.0f %s\n",
         setting.operation.c_str(), setting.memory.c_str(), setting.ranks, record.pairs,
         static_cast<unsigned long long>(setting.bytes), record.latency_us.median,
         record.latency_us.min, record.latency_us_p99, record.latency_us.max, record.window,
         record.message_us, record.messages_per_s(), record.bytes_per_s() * 1e-6,
         record.verified ? "yes" : "NO ");
  fflush(stdout);
}

nlohmann::ordered_json to_json(const Record& record) {
  nlohmann::ordered_json entry = setting_json(record.setting);
  add(entry, "latency_us", record.latency_us);
  entry["latency_us_mean"] = rounded(record.latency_us_mean);
  entry["period_us"] = rounded(record.period_us);
  entry["period_us_mean"] = rounded(record.period_us_mean);
  entry["packets"] = rounded(record.packets);
  entry["packets_collective"] = rounded(record.packets_collective);
  entry["packets_recycling"] = rounded(record.packets_recycling);
  entry["packets_repair"] = rounded(record.packets_repair);
  entry["verified"] = record.verified;
  if (!record.compared_with.empty()) {
    add(entry, record.compared_with + "_ratio", record.ratio);
    entry[record.compared_with + "_ratio_mean"] = rounded(record.ratio_mean);
  }
  return entry;
}

nlohmann::ordered_json to_json(const OverlapRecord& record) {
  nlohmann::ordered_json entry = setting_json(record.setting);
  add(entry, "comm_us", record.comm_us);
  add(entry, "work_us", record.work_us);
  add(entry, "both_us", record.both_us);
  add(entry, "work_cpu_us", record.cpu_us);
  add(entry, "both_ratio", record.ratio);
  add(entry, "overlap", record.overlap);
  add(entry, "start_cpu_us", record.start_cpu_us);
  add(entry, "done_cpu_us", record.done_cpu_us);
  add(entry, "done_before", record.done_before);
  entry["verified"] = record.verified;
  return entry;
}

nlohmann::ordered_json to_json(const GroupRecord& record) {
  nlohmann::ordered_json entry = {
      {"ranks", record.ranks}, {"at_once", record.at_once}, {"groups", record.groups}};
  add(entry, "create_us", record.create_us);
  add(entry, "create_own_us", record.create_own_us);
  add(entry, "destroy_us", record.destroy_us);
  return entry;
}

nlohmann::ordered_json to_json(const PairsRecord& record) {
  nlohmann::ordered_json entry = setting_json(record.setting);
  entry.erase("algorithm");
  entry["pairs"] = record.pairs;
  add(entry, "latency_us", record.latency_us);
  entry["latency_us_p99"] = rounded(record.latency_us_p99);
  entry["latency_us_mean"] = rounded(record.latency_us_mean);
  entry["window"] = record.window;
  entry["message_us"] = rounded(record.message_us);
  entry["messages_per_s"] = rounded(record.messages_per_s());
  entry["bytes_per_s"] = rounded(record.bytes_per_s());
  entry["verified"] = record.verified;
  return entry;
}

bool write_json(const std::string& path, const nlohmann::ordered_json& records) {
  if (path == kStandardOutput) {
    printf("%s\n", records.dump(2).c_str());
    return fflush(stdout) == 0 && ferror(stdout) == 0;
  }
  FILE* file = fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  fprintf(file, "%s\n", records.dump(2).c_str());
  const bool good = ferror(file) == 0;
  return fclose(file) == 0 && good;
}

}  // namespace peal::perf
