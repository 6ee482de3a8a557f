// SPDX-License-Identifier: BSD-2-Clause
#include "tools/peal-sim/report_json.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "base/names.h"
#include "emulator/cluster/scenario_random.h"

namespace peal::sim {

namespace {

// Every check that can fail, so that a report also says what passed.
constexpr const char* kChecks[] = {
    "right-bytes",   "exactly-once", "user-buffers",  "conservation", "stuck",  "status",
    "running-ahead", "isolation",    "deterministic", "wire",         "set-up", "sealed-payload",
    "barrier",       "quiet",        "dead-memory",   "collapse",     "lent"};

double as_microseconds(TimeNs time_ns) { return static_cast<double>(time_ns) / 1000; }

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "%016" PRIx64, value);
  return text;
}

struct Spread {
  double median_us = 0;
  double min_us = 0;
  double max_us = 0;
};

Spread spread_of(std::vector<TimeNs> sorted) {
  if (sorted.empty()) return {};
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  const double median =
      sorted.size() % 2 == 1
          ? as_microseconds(sorted[half])
          : (as_microseconds(sorted[half - 1]) + as_microseconds(sorted[half])) / 2;
  return {median, as_microseconds(sorted.front()), as_microseconds(sorted.back())};
}

// What the ranks of each group post, equal ones in a row together.
nlohmann::json groups_json(const Scenario& scenario) {
  nlohmann::json groups = nlohmann::json::array();
  for (const GroupPlan& group : scenario.groups) {
    nlohmann::json operations = nlohmann::json::array();
    for (size_t i = 0, same = 0; i < group.operations.size(); i += same) {
      const OperationPlan& first = group.operations[i];
      const auto other =
          std::find_if(group.operations.begin() + static_cast<ptrdiff_t>(i), group.operations.end(),
                       [&first](const OperationPlan& each) { return each != first; });
      same = static_cast<size_t>(other - group.operations.begin()) - i;
      operations.push_back({{"what", operation_text(first)}, {"times", same}});
    }
    groups.push_back({{"ranks", group.places.size()}, {"operations", operations}});
  }
  return groups;
}

const char* checksums_text(Checksums checksums) {
  switch (checksums) {
    case Checksums::kSoftware:
      return "software";
    case Checksums::kHardware:
      return "hardware";
    case Checksums::kSkipped:
      return "skipped";
  }
  return "?";
}

}  // namespace

nlohmann::json report_json(const Scenario& scenario, const Report& report) {
  nlohmann::json tree;
  tree["scenario"] = {
      {"name", scenario.name},           {"description", describe(scenario)},
      {"seed", scenario.seed},           {"cards", scenario.cards},
      {"groups", groups_json(scenario)}, {"faults", emulator::format_fault_plan(scenario.faults)}};
  tree["ok"] = report.ok;
  nlohmann::json checks = nlohmann::json::object();
  for (const char* check : kChecks) {
    const auto found = report.findings.find(check);
    checks[check] = found == report.findings.end() ? 0 : found->second;
  }
  for (const auto& [check, count] : report.findings) checks[check] = count;
  tree["checks"] = checks;  // how often each failed
  tree["findings"] = report.lines;
  tree["trace_hash"] = hex(report.trace_hash);
  tree["ranks"] = report.ranks;
  tree["completed"] = report.completed;
  tree["mismatched"] = report.mismatched;
  tree["peer_dead"] = report.peer_dead;
  tree["dma_faults"] = report.dma_faults;
  tree["virtual_us"] = {{"finished", as_microseconds(report.finished_ns)},
                        {"drained", as_microseconds(report.drained_ns)}};
  const auto add_spread = [&tree](const char* name, const std::vector<TimeNs>& times) {
    const Spread spread = spread_of(times);
    tree[name] = {{"median", spread.median_us},
                  {"min", spread.min_us},
                  {"max", spread.max_us},
                  {"operations", times.size()}};
  };
  add_spread("latency_us", report.latencies_ns);
  add_spread("period_us", report.periods_ns);
  nlohmann::json packets = nlohmann::json::object();
  for (uint8_t type = 1; type < PEAL_PACKET_TYPE_COUNT; type++)
    packets[names::packet_type(type)] = report.packets[type];
  tree["packets"] = packets;
  tree["packets_sent"] = report.cluster.sent;
  tree["packets_needed"] = report.needed;
  tree["packets_received"] = report.cluster.received;
  tree["repairs"] = report.repairs;
  tree["repair_share"] = report.repair_share();
  tree["recycle_signals"] = report.recycle_signals;
  nlohmann::json drops = nlohmann::json::object();
  nlohmann::json counters = nlohmann::json::object();
  for (const auto& [name, value] : report.counters)
    (name.rfind("drop_", 0) == 0 || name == "duplicate" ? drops : counters)[name] = value;
  tree["drops"] = drops;
  tree["counters"] = counters;
  tree["wire"] = {{"lost", report.faults.lost},
                  {"partitioned", report.faults.partitioned},
                  {"duplicated", report.faults.duplicated},
                  {"reordered", report.faults.reordered},
                  {"delayed", report.faults.delayed},
                  {"corrupted", report.faults.corrupted},
                  {"card_full", report.cluster.dropped_full},
                  {"queue_full", report.cluster.dropped_queue},
                  {"card_silent", report.cluster.dropped_silent},
                  {"no_such_card", report.cluster.dropped_unknown},
                  {"cut", report.cluster.dropped_cut}};
  tree["dma"] = {{"refused", report.cluster.dma_refused},
                 {"out_of_order", report.cluster.dma_overtaken}};
  tree["checksums"] = checksums_text(report.checksums);
  return tree;
}

std::string report_text(const Report& report) {
  const Spread latency = spread_of(report.latencies_ns);
  const Spread period = spread_of(report.periods_ns);
  char text[480];
  std::snprintf(
      text, sizeof(text),
      "%s: %" PRIu64
      " completions, latency median %.2f us (%.2f to %.2f), period median %.2f us, %" PRIu64
      " packets (%.2f per packet needed, %.1f %% to repair), %" PRIu64
      " repairs, virtual %.3f ms, checksums %s, trace %s\n",
      report.ok ? "ok" : "FAILED", report.completed, latency.median_us, latency.min_us,
      latency.max_us, period.median_us, report.cluster.sent, report.effort(),
      100 * report.repair_share(), report.repairs, as_microseconds(report.finished_ns) / 1000,
      checksums_text(report.checksums), hex(report.trace_hash).c_str());
  std::string all = text;
  for (const std::string& line : report.lines) all += "  " + line + "\n";
  return all;
}

void write_json(const std::string& path, const nlohmann::json& tree) {
  const std::string text = tree.dump(2) + "\n";
  if (path == "-") {
    std::fputs(text.c_str(), stdout);
    return;
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write '" + path + "'");
}

}  // namespace peal::sim
