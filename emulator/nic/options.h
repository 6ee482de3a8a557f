// SPDX-License-Identifier: BSD-2-Clause
// The command line of peal-nic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/common/fault_injector.h"
#include "emulator/nic/host_interface.h"
#include "emulator/nic/shares.h"
#include "firmware/card.h"

namespace peal::nic {

enum class ChecksumChoice : uint8_t { kAuto, kSoftware, kSkip };

struct NicOptions {
  uint32_t cards = 1;
  std::vector<std::string> socket_paths;  // each has a polling core of its own
  std::vector<PciOptions> pci;
  std::vector<int> cpus;  // of the polling cores; none: not pinned
  std::vector<int> engine_cpus;
  bool yields = false;  // the polling core gives way to who shares its CPU
  emulator::FaultPlan faults;
  uint64_t seed = 1;
  std::string trace_path;
  ChecksumChoice checksums = ChecksumChoice::kAuto;
  CardTimeouts timeouts = {};
  uint64_t memory_budget_mib = 4096;
  ShareOptions shares;
  uint32_t packet_buffers = 0;  // per card
  uint64_t cache_mib = 0;       // of the processors' last cache
  uint64_t copy_deadline_ms = 2000;
  uint64_t idle_us = 200;
  std::optional<uint64_t> linger_us;  // none: by whose the processor is
  bool may_sleep = true;
  int ready_fd = -1;
  std::string pid_path;
  std::string counters_path;
  bool telemetry = true;
  std::string file_prefix;
  std::vector<std::string> log_levels;  // TYPE:LEVEL

  // Polling cores.
  [[nodiscard]] uint32_t loops() const {
    return socket_paths.empty() ? 1 : static_cast<uint32_t>(socket_paths.size());
  }
  // What the cards are told: auto is decided here.
  [[nodiscard]] Checksums checksum_mode() const {
    return checksums == ChecksumChoice::kSkip ||
                   (checksums == ChecksumChoice::kAuto && !faults.any())
               ? Checksums::kSkipped
               : Checksums::kSoftware;
  }
};

// The exit status when the program should end now (help, version, an error, which has been
// printed).
std::optional<int> parse_options(int argc, char** argv, NicOptions* options);

}  // namespace peal::nic
