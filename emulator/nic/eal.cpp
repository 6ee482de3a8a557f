// SPDX-License-Identifier: BSD-2-Clause
// EAL arguments, and the removal of its runtime folder (where the telemetry socket lives).
#include "emulator/nic/eal.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace peal::nic {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::string Eal::start(const EalOptions& options) {
  const std::vector<int> cpus = allowed_cpus();
  if (options.cpu && std::find(cpus.begin(), cpus.end(), *options.cpu) == cpus.end())
    return "--lcore-affinity " + std::to_string(*options.cpu) +
           ": this process may not run on that CPU";
  std::string lcores = "0@";
  if (options.cpu) {
    lcores += std::to_string(*options.cpu);
  } else {
    lcores += '(';
    for (size_t i = 0; i < cpus.size(); i++) lcores += (i > 0 ? "," : "") + std::to_string(cpus[i]);
    lcores += ')';
  }
  const uint64_t mib = (options.memory_bytes >> 20) + 1;
  std::vector<std::string> arguments = {"peal-nic",
                                        "--no-huge",
                                        "--no-pci",
                                        "--no-shconf",
                                        "--iova-mode",
                                        "va",
                                        "-m",
                                        std::to_string(mib),
                                        "--lcores",
                                        lcores,
                                        "--file-prefix",
                                        options.file_prefix,
                                        "--log-level",
                                        "error"};
  if (!options.telemetry) arguments.emplace_back("--no-telemetry");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const int result = rte_eal_init(static_cast<int>(argv.size()), argv.data());
  runtime_folder_ = rte_eal_get_runtime_dir();
  if (result < 0)
    return std::string("DPDK did not start: ") + rte_strerror(rte_errno) + " (asked for " +
           std::to_string(mib) + " MiB; see the messages above)";
  started_ = true;
  return {};
}

Eal::~Eal() {
  if (started_) rte_eal_cleanup();
  if (runtime_folder_.empty()) return;
  // DPDK removes its socket only when the process exits, and the folder never.
  unlink((runtime_folder_ + "/dpdk_telemetry.v2").c_str());
  rmdir(runtime_folder_.c_str());
}

}  // namespace peal::nic
