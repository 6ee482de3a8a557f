// SPDX-License-Identifier: BSD-2-Clause
// peal-perf: what a collective takes and how much of it can be computed in, with every result
// verified, beside what the ideal card takes in the same run.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tools/peal-perf/bench.h"
#include "tools/peal-perf/options.h"
#include "tools/peal-perf/side.h"

namespace peal::perf {
namespace {

constexpr const char* kLaunched = "PEAL_PERF_LAUNCHED";

// Starts this very command line again, once per rank.
int launch(const Options& options, int argc, char** argv) {
  char path[PATH_MAX] = {};
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0) {
    perror("peal-perf: /proc/self/exe");
    return 1;
  }
  const std::string self(path);
  const std::string pealrun = self.substr(0, self.rfind('/')) + "/pealrun";
  std::vector<std::string> words = {pealrun, "-n", std::to_string(options.ranks)};
  words.insert(words.end(), options.launch.begin(), options.launch.end());
  words.insert(words.end(), {"--", self});
  for (int i = 1; i < argc; i++) words.emplace_back(argv[i]);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  setenv(kLaunched, "1", 1);
  execv(pealrun.c_str(), arguments.data());
  fprintf(stderr, "peal-perf: cannot start %s: %s\n", pealrun.c_str(), strerror(errno));
  return 1;
}

// Whether all ranks run under one kernel, and so have one clock.
bool on_one_machine(const Job& job) {
  std::array<char, 40> boot_id = {};
  std::ifstream("/proc/sys/kernel/random/boot_id").read(boot_id.data(), boot_id.size() - 1);
  std::vector<std::array<char, 40>> all(job.size);
  job.gather(boot_id, all.data());
  return std::all_of(all.begin(), all.end(), [&](const auto& other) { return other == boot_id; });
}

int run(const Options& options) {
  Job job;
  if (peal_launch_rank(&job.rank, &job.size) != PEAL_OK ||
      peal_oob_connect(nullptr, job.rank, job.size, 0, &job.oob) != PEAL_OK) {
    give_up(job, "start");
  }
  job.common_clock = on_one_machine(job);
  if (options.root && *options.root >= job.size) {
    if (job.rank == 0) {
      fprintf(stderr, "peal-perf: --root: there is no rank %u of %u\n", *options.root, job.size);
    }
    peal_oob_close(job.oob);
    return 2;
  }
  if (options.talk && job.size < 2) {
    fprintf(stderr, "peal-perf: %s is between two ranks, and there is one\n",
            talk_name(*options.talk));
    peal_oob_close(job.oob);
    return 2;
  }
  const char* cpu = getenv("PEAL_CARD_CPU");
  if (cpu != nullptr) job.card_cpu = atoi(cpu);
  job.card_yields = getenv("PEAL_CARD_YIELDS") != nullptr;
  if (job.rank == 0 && !options.launch.empty() && getenv(kLaunched) == nullptr) {
    fprintf(stderr, "peal-perf: already under a launcher, so %s has no effect\n",
            options.launch[0].c_str());
  }
  const bool good = Bench(job, options).run();
  peal_oob_close(job.oob);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace peal::perf

int main(int argc, char** argv) {
  peal::perf::Options options;
  if (const auto status = peal::perf::parse_options(argc, argv, &options)) return *status;
  if (getenv("PEAL_RANK") == nullptr) return peal::perf::launch(options, argc, argv);
  return peal::perf::run(options);
}
