// SPDX-License-Identifier: BSD-2-Clause
// Placement on processors; see cpus.h.
#include "tools/pealrun/cpus.h"

#include <algorithm>
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

std::vector<int> numbers_of(const cpu_set_t& cpus) {
  std::vector<int> numbers;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &cpus)) numbers.push_back(cpu);
  }
  return numbers;
}

bool all_allowed(const cpu_set_t& cpus, const cpu_set_t& allowed, std::string* error) {
  for (const int cpu : numbers_of(cpus)) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) continue;
    *error = "processor " + std::to_string(cpu) + " is not among the allowed " + cpu_list(allowed);
    return false;
  }
  return true;
}

// A polling core on each of these, but no more than there are cards, or than peal-nic may have.
std::vector<int> cores_on(const cpu_set_t& cpus, const Options& options) {
  constexpr size_t kCoresMax = 64;  // WireRings::kLoopsMax of emulator/nic
  std::vector<int> cores = numbers_of(cpus);
  cores.resize(std::min({cores.size(), kCoresMax, size_t{options.cards}}));
  return cores;
}

// Each processor has a rank, in order; a further one goes where the load is least, to the first of
// equals. A polling core counts as `core_load` ranks: where that is 0, they are dealt in turn.
std::vector<int> deal(uint32_t ranks, const std::vector<int>& cpus,
                      const std::vector<int>& card_cpus, int core_load) {
  std::vector<int> loads;
  for (const int cpu : cpus) {
    const auto cores = std::count(card_cpus.begin(), card_cpus.end(), cpu);
    loads.push_back(static_cast<int>(cores) * core_load);
  }
  std::vector<int> of_rank;
  for (size_t rank = 0; rank < ranks; rank++) {
    const auto least = static_cast<size_t>(std::ranges::min_element(loads) - loads.begin());
    const size_t place = rank < cpus.size() ? rank : least;
    loads[place]++;
    of_rank.push_back(cpus[place]);
  }
  return of_rank;
}

}  // namespace

std::string cpu_list(const cpu_set_t& cpus) {
  std::string text;
  for (const int cpu : numbers_of(cpus)) text += (text.empty() ? "" : ",") + std::to_string(cpu);
  return text;
}

cpu_set_t cpus_of_rank(const Placement& placement, uint32_t rank) {
  if (placement.of_rank.empty()) return placement.ranks;
  cpu_set_t one = {};
  CPU_SET(static_cast<unsigned>(placement.of_rank[rank]), &one);
  return one;
}

bool place(const Options& options, Placement* placement, std::string* error) {
  cpu_set_t allowed = {};
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) CPU_SET(0, &allowed);
  const int last = numbers_of(allowed).back();
  const bool several = CPU_COUNT(&allowed) > 1;
  if (options.card_cpu == "none" || !options.card_urls.empty()) {
    placement->card_cpus.clear();
  } else if (!options.card_cpu.empty()) {
    cpu_set_t cards = {};
    if (!parse_list(options.card_cpu, &cards)) {
      *error = "--card-cpu needs a list such as 0,2-3 or 'none', not " + options.card_cpu;
      return false;
    }
    if (!all_allowed(cards, allowed, error)) return false;
    placement->card_cpus = cores_on(cards, options);
  } else if (several) {
    placement->card_cpus = {last};
  }

  if (options.rank_cpus == "none") return true;
  const bool shared = options.placement != "apart";
  if (!options.rank_cpus.empty()) {
    if (!parse_list(options.rank_cpus, &placement->ranks)) {
      *error = "--rank-cpus needs a list such as 0,2-3 or 'none', not " + options.rank_cpus;
      return false;
    }
    placement->pin_ranks = true;
  } else if (shared) {
    placement->ranks = allowed;
    placement->pin_ranks = true;
  } else if (!placement->card_cpus.empty() && several) {
    placement->ranks = allowed;
    for (const int cpu : placement->card_cpus)
      CPU_CLR(static_cast<unsigned>(cpu), &placement->ranks);
    // Where the cards have all of them, ranks share these.
    if (CPU_COUNT(&placement->ranks) == 0) placement->ranks = allowed;
    placement->pin_ranks = true;
  }
  if (!all_allowed(placement->ranks, allowed, error)) return false;
  if (options.placement == "spread") placement->card_cpus = cores_on(placement->ranks, options);
  for (const int cpu : placement->card_cpus)
    placement->cards_yield |= CPU_ISSET(static_cast<unsigned>(cpu), &placement->ranks) != 0;
  if (!shared) return true;
  placement->cards_yield = true;
  placement->of_rank = deal(options.ranks, numbers_of(placement->ranks), placement->card_cpus,
                            options.placement == "balanced" ? 2 : 0);
  return true;
}

}  // namespace peal::run
