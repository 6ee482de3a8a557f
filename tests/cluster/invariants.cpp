// SPDX-License-Identifier: BSD-2-Clause
#include "tests/cluster/invariants.h"

#include "tests/cluster/hostile.h"
#include "tests/cluster/plans.h"

namespace peal::sim {

namespace {

void add_finding(Report* report, const char* check, const std::string& text) {
  report->ok = false;
  report->findings[check]++;
  report->lines.push_back(std::string(check) + ": " + text);
}

// Every packet twice, now and then, and some never: still every byte is right.
Report exactly_once() {
  Scenario scenario = plan(8, broadcast(3000), 40);
  scenario.faults.duplicate = 0.3;
  scenario.faults.loss = 0.1;
  scenario.faults.until_ns = kSecond;
  return run(scenario);
}

// The host overwrites its buffers at once, and repairs are asked for long after.
Report send_buffers() {
  Scenario scenario = plan(6, broadcast(20'000), 12, 3);
  scenario.faults.loss = 0.2;
  scenario.faults.until_ns = kSecond;
  return run(scenario);
}

// One host is late; all others post as many operations as they may.
Report bounded_running_ahead() {
  Scenario scenario = plan(5, broadcast(64), 24, device().parked_max);
  scenario.groups[0].first_post_ns[3] = 10 * kMillisecond;
  return run(scenario);
}

// A rank that is seconds late costs a question now and then, at the longest interval, and repairs
// nothing.
Report any_skew() {
  constexpr uint32_t kRanks = 8;
  constexpr TimeNs kLateNs = 3 * kSecond;
  Scenario scenario = plan(kRanks, broadcast(1000), 1);
  scenario.groups[0].first_post_ns[2] = kLateNs;
  Report report = run(scenario);
  // Each of the others asks on the way to the longest interval, and then once per interval.
  const uint64_t questions = kRanks * (16 + kLateNs / scenario.timeouts.nack_max_ns);
  if (report.packets[PEAL_PACKET_NACK] > questions)
    add_finding(&report, "storm",
                std::to_string(report.packets[PEAL_PACKET_NACK]) + " NACKs for one late rank");
  if (report.repairs > 0) add_finding(&report, "storm", "repairs although nothing was lost");
  return report;
}

Report failure_is_told() {
  Scenario scenario = plan(7, kBarrier, 200);
  scenario.accidents.push_back({Accident::Kind::kSilence, {3, 0}, 100 * kMicrosecond});
  return run(scenario);
}

Report deterministic() {
  Scenario scenario = plan(6, doubling(700), 20, 4);
  scenario.faults.loss = 0.1;
  scenario.faults.reorder = 0.1;
  scenario.faults.until_ns = kSecond;
  return run_twice(scenario);
}

// Drops of every kind, with few buffers: in the end all of them are back.
Report no_growth() {
  Scenario scenario = plan(6, broadcast(6000), 20, 4);
  scenario.packets_per_card = 48;
  scenario.faults.duplicate = 0.2;
  scenario.faults.corrupt = 0.1;
  scenario.faults.loss = 0.05;
  scenario.faults.until_ns = kSecond;
  return run(scenario);
}

constexpr std::array<Invariant, 8> kInvariants = {{
    {1, "exactly once", "right-bytes", exactly_once},
    {2, "send buffers", "user-buffers", send_buffers},
    {3, "bounded running ahead", "running-ahead", bounded_running_ahead},
    {4, "any skew", "storm", any_skew},
    {5, "isolation", "isolation", run_hostile_host},
    {6, "failure is told", "stuck", failure_is_told},
    {7, "deterministic", "deterministic", deterministic},
    {8, "no card-side growth", "conservation", no_growth},
}};

}  // namespace

const std::array<Invariant, 8>& invariants() { return kInvariants; }

}  // namespace peal::sim
