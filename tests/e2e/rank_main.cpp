// SPDX-License-Identifier: BSD-2-Clause
// e2e-rank SCENARIO [ARGUMENTS...]: one rank of an end-to-end test, started by pealrun. It exits
// with 0 when everything it saw was as the scenario wants it, and says what was not.
#include <cstdio>
#include <cstring>

#include "tests/e2e/rank_support.h"

namespace {

struct Scenario {
  const char* name;
  void (*run)(peal::e2e::Job&);
};

constexpr Scenario kScenarios[] = {
    {"deep", peal::e2e::run_deep},
    {"overwrite", peal::e2e::run_overwrite},
    {"death", peal::e2e::run_death},
    {"disagree", peal::e2e::run_disagree},
    {"choice", peal::e2e::run_choice},
    {"rules", peal::e2e::run_rules},
    {"input", peal::e2e::run_input},
    {"card-gone", peal::e2e::run_card_gone},
    {"sleep", peal::e2e::run_sleep},
    {"epoll", peal::e2e::run_epoll},
    {"timeout", peal::e2e::run_timeout},
    {"threads", peal::e2e::run_threads},
    {"churn", peal::e2e::run_churn},
    {"overlap", peal::e2e::run_overlap},
    {"exit", peal::e2e::run_exit},
    {"gate", peal::e2e::run_gate},
    {"exhaust", peal::e2e::run_exhaust},
    {"many", peal::e2e::run_many},
    {"fork", peal::e2e::run_fork},
    {"soak", peal::e2e::run_soak},
    {"abort", peal::e2e::run_abort},
    {"steps", peal::e2e::run_steps},
    {"any", peal::e2e::run_any},
    {"signals", peal::e2e::run_signals},
    {"unmapped", peal::e2e::run_unmapped},
    {"remapped", peal::e2e::run_remapped},
    {"buffers", peal::e2e::run_buffers},
    {"broadcast", peal::e2e::run_broadcast},
    {"alltoall", peal::e2e::run_alltoall},
    {"mixed", peal::e2e::run_mixed},
    {"mixed-threads", peal::e2e::run_mixed_threads},
    {"late", peal::e2e::run_late},
    {"disagree-on", peal::e2e::run_disagree_on},
    {"death-in", peal::e2e::run_death_in},
    {"allgatherv", peal::e2e::run_allgatherv},
    {"alltoallv", peal::e2e::run_alltoallv},
    {"p2p-ring", peal::e2e::run_p2p_ring},
    {"p2p-gather", peal::e2e::run_p2p_gather},
    {"p2p-tags", peal::e2e::run_p2p_tags},
    {"p2p-memory", peal::e2e::run_p2p_memory},
    {"p2p-refused", peal::e2e::run_p2p_refused},
    {"p2p-truncated", peal::e2e::run_p2p_truncated},
    {"p2p-death", peal::e2e::run_p2p_death},
    {"persistent", peal::e2e::run_persistent},
    {"persistent-disagree", peal::e2e::run_persistent_disagree},
    {"persistent-death", peal::e2e::run_persistent_death},
    {"persistent-descriptors", peal::e2e::run_persistent_descriptors},
    {"programs", peal::e2e::run_programs},
    {"programs-bad", peal::e2e::run_programs_bad},
    {"programs-free", peal::e2e::run_programs_free},
    {"programs-many", peal::e2e::run_programs_many},
    {"programs-one-engine", peal::e2e::run_programs_one_engine},
    {"programs-trinary", peal::e2e::run_programs_trinary},
    {"programs-death", peal::e2e::run_programs_death},
    {"programs-stopped", peal::e2e::run_programs_stopped},
};

}  // namespace

int main(int argc, char** argv) {
  peal::e2e::Job job;
  for (int i = 2; i < argc; i++) job.arguments.emplace_back(argv[i]);
  for (const Scenario& scenario : kScenarios) {
    if (argc < 2 || strcmp(argv[1], scenario.name) != 0) continue;
    EXPECT_OK(job, peal_launch_rank(&job.rank, &job.size));
    EXPECT_OK(job, peal_oob_connect(nullptr, job.rank, job.size, 0, &job.oob));
    scenario.run(job);
    peal_oob_close(job.oob);
    return 0;
  }
  fprintf(stderr, "e2e-rank: no such scenario\n");
  return 2;
}
