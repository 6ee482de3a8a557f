// SPDX-License-Identifier: BSD-2-Clause
// Starts DPDK's environment so that it needs no root, no hugepages and no devices,
// and leaves nothing behind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace peal::nic {

struct EalOptions {
  uint64_t memory_bytes = 0;
  // Of the calling thread, which becomes lcore 0, and of as many more as there are loops: each is
  // pinned to one; none: nobody is.
  std::vector<int> cpus;
  uint32_t loops = 1;
  std::vector<int> engine_cpus;  // the lcores behind those, each pinned to one
  bool telemetry = true;
  std::string file_prefix;
  std::vector<std::string> log_levels;  // TYPE:LEVEL, in this order
};

class Eal {
 public:
  Eal() = default;
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  // Empty on success.
  std::string start(const EalOptions& options);
  // What is left in the file system goes now. For a process that ends without its destructors.
  void remove_folder();

 private:
  std::string runtime_folder_;
  bool started_ = false;
};

// Removes the runtime folders (peal-PID) of killed processes from DPDK's folder `parent`.
void collect_runtime_folders(const std::string& parent);

// CPUs this process may run on.
std::vector<int> allowed_cpus();

}  // namespace peal::nic
