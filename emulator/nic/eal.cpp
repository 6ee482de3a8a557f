// SPDX-License-Identifier: BSD-2-Clause
// EAL arguments, and the removal of runtime folders (where the telemetry socket lives): our own at
// the end, and at the start those of processes that were killed.
#include "emulator/nic/eal.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/unix_socket.h"

namespace peal::nic {
namespace {

// DPDK removes its socket only when the process exits, and the folder never. Nothing else is in it
// (no shared configuration, no hugepages), and what is not known stays.
void remove_runtime_folder(const std::string& folder) {
  unlink((folder + "/dpdk_telemetry.v2").c_str());
  rmdir(folder.c_str());
}

// Somebody listens on it, or may.
bool answers(const std::string& path) {
  UnixAddress address;
  if (!address.set(path)) return true;
  const FileDescriptor probe(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return true;
  return connect(probe.get(), address.get(), UnixAddress::bytes()) == 0 ||
         (errno != ECONNREFUSED && errno != ENOENT);
}

// The number may have gone to another program since.
bool is_peal_nic(pid_t pid) {
  if (kill(pid, 0) != 0 && errno == ESRCH) return false;
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  return !std::getline(file, name) || name.rfind("peal-nic", 0) == 0;
}

}  // namespace

void collect_runtime_folders(const std::string& parent) {
  constexpr std::string_view kPrefix = "peal-";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename();
    const std::string number = name.substr(std::min(name.size(), kPrefix.size()));
    if (name.rfind(kPrefix, 0) != 0 || number.empty() || number.size() > 9 ||
        number.find_first_not_of("0123456789") != std::string::npos)
      continue;
    // A process of another container is no process to us, but it answers.
    if (is_peal_nic(std::stoi(number)) || answers(entry.path().string() + "/dpdk_telemetry.v2"))
      continue;
    remove_runtime_folder(entry.path());
  }
}

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
  for (const auto& [name, wanted] : {std::pair("--lcore-affinity", &options.cpus),
                                     std::pair("--engine-lcore", &options.engine_cpus)}) {
    for (const int cpu : *wanted) {
      if (std::find(cpus.begin(), cpus.end(), cpu) == cpus.end())
        return std::string(name) + " " + std::to_string(cpu) +
               ": this process may not run on that CPU";
    }
  }
  std::string anywhere;
  for (const int cpu : cpus) anywhere += (anywhere.empty() ? "(" : ",") + std::to_string(cpu);
  anywhere += ')';
  std::string lcores;
  for (uint32_t i = 0; i < options.loops; i++) {
    lcores += (i > 0 ? "," : "") + std::to_string(i) + "@" +
              (options.cpus.empty() ? anywhere : std::to_string(options.cpus[i]));
  }
  for (size_t i = 0; i < options.engine_cpus.size(); i++)
    lcores +=
        "," + std::to_string(options.loops + i) + "@" + std::to_string(options.engine_cpus[i]);
  const uint64_t mib = (options.memory_bytes >> 20) + 1;
  std::vector<std::string> arguments = {"peal-nic",    "--no-huge",         "--no-pci",
                                        "--no-shconf", "--iova-mode",       "va",
                                        "-m",          std::to_string(mib), "--lcores",
                                        lcores,        "--file-prefix",     options.file_prefix,
                                        "--log-level", "*:error",           "--log-level",
                                        "peal:notice"};
  for (const std::string& level : options.log_levels)
    arguments.insert(arguments.end(), {"--log-level", level});
  if (!options.telemetry) arguments.emplace_back("--no-telemetry");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const int result = rte_eal_init(static_cast<int>(argv.size()), argv.data());
  runtime_folder_ = rte_eal_get_runtime_dir();
  if (result < 0)
    return std::string("DPDK did not start: ") + rte_strerror(rte_errno) + " (asked for " +
           std::to_string(mib) + " MiB; see the messages above)";
  started_ = true;
  collect_runtime_folders(std::filesystem::path(runtime_folder_).parent_path());
  return {};
}

Eal::~Eal() {
  if (started_) rte_eal_cleanup();
  remove_folder();
}

void Eal::remove_folder() {
  if (!runtime_folder_.empty()) remove_runtime_folder(runtime_folder_);
  runtime_folder_.clear();
}

}  // namespace peal::nic
