// SPDX-License-Identifier: BSD-2-Clause
// Placement on processors; see cpus.h.
#include "tools/pealrun/cpus.h"

#include <charconv>

namespace peal::run {
namespace {

bool parse_list(const std::string& text, cpu_set_t* cpus) {
  CPU_ZERO(cpus);
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    unsigned first = 0;
    auto [stop, bad] = std::from_chars(at, end, first);
    if (bad != std::errc{}) return false;
    unsigned last = first;
    if (stop != end && *stop == '-') {
      const auto [stop_last, bad_last] = std::from_chars(stop + 1, end, last);
      if (bad_last != std::errc{}) return false;
      stop = stop_last;
    }
    if (last < first || last >= CPU_SETSIZE) return false;
    for (unsigned cpu = first; cpu <= last; cpu++) CPU_SET(cpu, cpus);
    if (stop != end && *stop++ != ',') return false;
    at = stop;
  }
  return CPU_COUNT(cpus) > 0;
}

}  // namespace

std::string cpu_list(const cpu_set_t& cpus) {
  std::string text;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &cpus)) continue;
    if (!text.empty()) text += ',';
    text += std::to_string(cpu);
  }
  return text;
}

cpu_set_t cpus_of_rank(const Placement& placement, uint32_t rank) {
  if (!placement.shared) return placement.ranks;
  int before = static_cast<int>(rank) % CPU_COUNT(&placement.ranks);
  unsigned cpu = 0;
  while (!CPU_ISSET(cpu, &placement.ranks) || before-- > 0) cpu++;
  cpu_set_t one = {};
  CPU_SET(cpu, &one);
  return one;
}

bool place(const Options& options, Placement* placement, std::string* error) {
  cpu_set_t allowed = {};
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) CPU_SET(0, &allowed);
  int last = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) last = cpu;
  }
  const bool several = CPU_COUNT(&allowed) > 1;
  if (options.card_cpu == "none" || !options.card_urls.empty()) {
    placement->card_cpu = -1;
  } else if (!options.card_cpu.empty()) {
    cpu_set_t one = {};
    if (!parse_list(options.card_cpu, &one) || CPU_COUNT(&one) != 1) {
      *error = "--card-cpu needs one processor's number or 'none', not " + options.card_cpu;
      return false;
    }
    placement->card_cpu = std::stoi(cpu_list(one));
    if (!CPU_ISSET(static_cast<unsigned>(placement->card_cpu), &allowed)) {
      *error = "processor " + options.card_cpu + " is not among the allowed " + cpu_list(allowed);
      return false;
    }
  } else {
    placement->card_cpu = several ? last : -1;
  }

  if (options.rank_cpus == "none") return true;
  placement->shared = options.placement == "shared";
  if (!options.rank_cpus.empty()) {
    if (!parse_list(options.rank_cpus, &placement->ranks)) {
      *error = "--rank-cpus needs a list such as 0,2-3 or 'none', not " + options.rank_cpus;
      return false;
    }
    placement->pin_ranks = true;
  } else if (placement->shared) {
    placement->ranks = allowed;
    placement->pin_ranks = true;
  } else if (placement->card_cpu >= 0 && several) {
    placement->ranks = allowed;
    CPU_CLR(static_cast<unsigned>(placement->card_cpu), &placement->ranks);
    placement->pin_ranks = true;
  }
  return true;
}

}  // namespace peal::run
