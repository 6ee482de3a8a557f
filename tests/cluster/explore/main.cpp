// SPDX-License-Identifier: BSD-2-Clause
// All that a wire can do to the first packets that each card sends: every act takes one of them
// that is in flight and delivers it, loses it, or delivers it and keeps a copy in flight, or lets
// the time pass to the next timer while all of them wait. What is sent later waits for these, and
// is then delivered in order. So all losses, repetitions, orders and delays of those packets are
// tried, and everything must end well. Acts at different cards commute, and of the orders that
// differ only by that one is run (sleep sets: Godefroid, "Partial-Order Methods for the
// Verification of Concurrent Systems").
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "firmware/base/mutation.h"
#include "tests/cluster/explore/plan.h"
#include "tests/cluster/explore/world.h"

namespace peal::explore {
namespace {

// --- all of them ---

// False when there is no other path.
bool advance(std::vector<World::Node>* path) {
  while (!path->empty()) {
    World::Node& last = path->back();
    if (++last.taken < last.choices.size()) return true;
    path->pop_back();
  }
  return false;
}

// How many runs it took; 0 after a failure.
uint64_t explore(const Plan& plan) {
  World world(plan);
  std::vector<World::Node> path;
  uint64_t runs = 0;
  do {
    runs++;
    const std::string problem = world.run(&path);
    if (problem.empty()) continue;
    world.tell = true;
    (void)world.run(&path);
    std::printf("%s: %s, in run %" PRIu64 "\n", plan.name.c_str(), problem.c_str(), runs);
    const size_t shown = std::min<size_t>(world.story().size(), 60);
    for (size_t i = 0; i < shown; i++) std::printf("  %s\n", world.story()[i].c_str());
    return 0;
  } while (advance(&path));
  return runs;
}

// One packet of each card more each time, up to `packets`, while the next is likely to take at most
// runs_max runs (or, of the first `whole` ones, however many). False after a failure.
bool deepen(Plan plan, uint32_t packets, uint32_t whole, uint64_t runs_max, uint64_t* total) {
  uint64_t before = 1;
  uint64_t runs = 1;
  uint32_t done = 0;
  for (plan.packets = 1;
       plan.packets <= packets && (plan.packets <= whole || runs * runs / before <= runs_max);
       plan.packets++) {
    before = runs;
    runs = explore(plan);
    if (runs == 0) return false;
    *total += runs;
    done = plan.packets;
  }
  plan.packets = done;
  uint32_t together = 0;
  for (uint32_t i = 0; i < plan.cards; i++) together += plan.packets_of(i);
  std::printf("%-52s %u cards, %2u packets, %u timers: %9" PRIu64 " runs, all well\n",
              plan.name.c_str(), plan.cards, together, plan.timers, runs);
  std::fflush(stdout);
  return true;
}

}  // namespace
}  // namespace peal::explore

#ifdef PEAL_MUTATIONS
peal::Mutation peal::present_mutation = peal::Mutation::kNone;
#endif

int main(int argc, char** argv) {
#ifdef PEAL_MUTATIONS
  if (argc > 1) {
    peal::present_mutation = static_cast<peal::Mutation>(std::atoi(argv[1]));
    --argc;
    ++argv;
  }
#endif
  if (argc > 3) {
    std::fprintf(
        stderr,
        "usage: peal-explore [MORE [RUNS]], peal-explore-mutant MUTATION [MORE [RUNS]]: the first "
        "4, 3, 2 packets and MORE of each of 2, "
        "3, 4 cards (of the third of 3 cards: 2), while they take at most about RUNS runs of each "
        "kind\n");
    return 2;
  }
  const auto more = argc > 1 ? static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 0u;
  const uint64_t runs_max = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20'000;
  uint64_t total = 0;
  for (const peal::explore::Plan& plan : peal::explore::plans(more > 0)) {
    const uint32_t first = plan.cards == 2 ? 4 : plan.cards == 3 ? 3 : 2;
    const uint32_t whole = plan.whole ? first : 0;
    if (!peal::explore::deepen(plan, first + more, whole, runs_max, &total)) return 1;
  }
  std::printf("%" PRIu64 " runs\n", total);
  return 0;
}
