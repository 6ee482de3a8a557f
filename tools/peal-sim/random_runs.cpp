// SPDX-License-Identifier: BSD-2-Clause
#include "tools/peal-sim/random_runs.h"

#include <stdexcept>

#include "emulator/cluster/arithmetic.h"
#include "emulator/cluster/message_hosts.h"
#include "emulator/cluster/random_surroundings.h"
#include "emulator/common/random.h"
#include "hostlib/program_check.h"
#include "tools/peal-sim/random_programs.h"

namespace peal::sim {
namespace {

constexpr TimeNs kLateNs = 400'000;

std::string describe(const ClusterOptions& options) {
  std::string text;
  const auto add = [&text](const char* name, double probability) {
    if (probability > 0) text += ", " + std::string(name) + " " + std::to_string(probability);
  };
  add("loss", options.faults.loss);
  add("duplicate", options.faults.duplicate);
  add("reorder", options.faults.reorder);
  add("delay", options.faults.delay);
  add("corrupt", options.faults.corrupt);
  if (options.dma_per_card != ClusterOptions{}.dma_per_card) {
    text += ", DMA " + std::to_string(options.dma_per_card);
  }
  return text;
}

RandomRun run_messages(uint64_t seed, Observer* observer) {
  const MessagePlan plan(seed);
  const ClusterOptions options = random_surroundings(seed, plan.ranks());
  MessageHosts hosts(options, plan, observer);
  hosts.run();
  RandomRun run;
  run.description = std::to_string(plan.ranks()) + " cards, " +
                    std::to_string(plan.transfers().size()) + " transfers" + describe(options);
  if (plan.victim() != MessagePlan::kNobody) {
    run.description += ", rank " + std::to_string(plan.victim()) + " dies";
  }
  run.problems = hosts.problems();
  run.only_stuck = hosts.only_stuck();
  run.packets = hosts.counts().sent;
  run.lost = hosts.frames_lost();
  run.trace_hash = hosts.trace_hash();
  return run;
}

// Three rounds of starts, each of which has other bytes to move: what a later start does not move
// any more is seen.
class ProgramRounds {
 public:
  ProgramRounds(const RandomPrograms& plan, ProgramHosts& hosts, uint64_t seed)
      : plan_(plan), hosts_(hosts), random_(seed ^ 0x70726f67) {}

  // What was wrong, when all rounds are over or one was wrong; "" when all was well.
  std::string run() {
    // Nobody waits for everybody: a rank may be as far ahead as all starts of a round together.
    const uint64_t most = plan_.everybody_has_a_part() ? program_starts() - 1 : 1;
    const uint64_t passes = 1 + random_.below(most);
    std::string wrong = run_round([&](uint32_t rank) { hosts_.start(rank, 1, late()); });
    if (!wrong.empty()) return wrong;
    wrong = run_round([&](uint32_t rank) {
      hosts_.start(rank, 1, late());
      hosts_.start(rank, passes, kLateNs + late());
    });
    if (!wrong.empty()) return wrong;
    return run_round([&](uint32_t rank) { hosts_.start(rank, 1, late()); });
  }

 private:
  TimeNs late() { return random_.below(3) == 0 ? random_.below(kLateNs) : 0; }

  template <typename Start>
  std::string run_round(Start start) {
    round_++;
    for (uint32_t rank = 0; rank < plan_.ranks(); rank++) {
      plan_.fill(rank, round_, hosts_.send(rank), hosts_.receive(rank));
      start(rank);
    }
    hosts_.run();
    std::string wrong = hosts_.problems();
    if (hosts_.only_stuck()) return wrong;  // what has not come is no wonder then
    for (uint32_t rank = 0; rank < plan_.ranks(); rank++) {
      const size_t bytes = plan_.wrong_bytes(rank, round_, hosts_.receive(rank));
      if (bytes == 0) continue;
      wrong += "rank " + std::to_string(rank) + ": " + std::to_string(bytes) +
               " bytes are wrong after round " + std::to_string(round_) + "\n";
    }
    return wrong;
  }

  const RandomPrograms& plan_;
  ProgramHosts& hosts_;
  emulator::Random random_;
  uint32_t round_ = 0;
};

// Programs of all ranks, started several times, some of them late.
RandomRun run_programs(uint64_t seed, Observer* observer) {
  const RandomPrograms plan(seed);
  const ClusterOptions options = random_surroundings(seed, plan.ranks());
  RandomRun run;
  run.description = std::to_string(plan.ranks()) + " cards, " + std::to_string(plan.counts().puts) +
                    " puts, " + std::to_string(plan.counts().messages) + " messages, " +
                    std::to_string(plan.counts().signals) + " signals" + describe(options);
  std::string wrong;
  ProgramHosts hosts(
      options, plan.bytes(),
      [&](const ProgramHosts::Place& place) {
        host::Program program = plan.write(place);
        for (const host::Finding& finding : host::check_program(program)) {
          if (finding.wrong) wrong += "rank " + std::to_string(place.rank) + ": " + finding.text;
        }
        return program;
      },
      observer);
  run.problems = wrong + ProgramRounds(plan, hosts, seed).run();
  run.only_stuck = wrong.empty() && hosts.only_stuck();
  if (run.problems.empty()) run.problems = hosts.leaks();
  run.packets = hosts.cluster().counts().sent;
  run.lost = hosts.cluster().faults().lost;
  run.trace_hash = hosts.cluster().trace_hash();
  return run;
}

}  // namespace

RandomRun run_random(RandomKind kind, uint64_t seed, Observer* observer) {
  if (kind == RandomKind::kMessages) return run_messages(seed, observer);
  if (kind == RandomKind::kPrograms) return run_programs(seed, observer);
  throw std::logic_error("collectives are scenarios");
}

RandomRun run_random_twice(RandomKind kind, uint64_t seed, Observer* observer) {
  RandomRun run = run_random(kind, seed, observer);
  if (run_random(kind, seed).trace_hash != run.trace_hash) {
    run.problems += "a second run sent other packets\n";
    run.only_stuck = false;
  }
  return run;
}

}  // namespace peal::sim
