// SPDX-License-Identifier: BSD-2-Clause
// CLI11 reads the options; what it cannot know (combinations, values of faults) is checked behind
// it.
#include "emulator/nic/options.h"

#include <pwd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>

#include "emulator/nic/version.h"
#include "peal_config.h"

namespace peal::nic {
namespace {

constexpr uint32_t kCardsMax = 256;

// SOCKET,RAMFILE[,MIB]
std::string parse_pci(const std::string& text, PciOptions* pci) {
  const size_t first = text.find(',');
  const size_t second = first == std::string::npos ? first : text.find(',', first + 1);
  pci->socket_path = text.substr(0, first);
  if (first != std::string::npos) pci->ram_path = text.substr(first + 1, second - first - 1);
  if (pci->socket_path.empty() || pci->ram_path.empty())
    return "--pci '" + text + "': expected SOCKET,RAMFILE or SOCKET,RAMFILE,MIB";
  if (second == std::string::npos) return {};
  const std::string size = text.substr(second + 1);
  uint64_t mib = 0;
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), mib);
  if (error != std::errc() || end != size.data() + size.size() || mib == 0 || mib > 3072)
    return "--pci '" + text + "': the guest's memory must be 1 to 3072 MiB, not '" + size + "'";
  pci->ram_bytes = mib << 20;
  return {};
}

struct RawOptions {
  std::vector<std::string> pci;
  std::vector<std::string> fault_plans;
  std::string checksums = "auto";
  uint64_t nack_us = 0;
  uint64_t nack_max_us = 0;
  uint64_t probe_us = 0;
  uint64_t dead_ms = 0;
  uint64_t reorder_us = 20;
  uint64_t delay_us = 200;
  bool no_sleep = false;
  bool no_telemetry = false;
  int cpu = -1;
  std::vector<std::string> admitted;
  uint64_t user_memory_mib = 0;
  uint64_t connection_memory_mib = 0;
};

void declare_shares(CLI::App& app, NicOptions* options, RawOptions* raw) {
  constexpr const char* kGroup = "Shares of clients";
  ShareOptions& shares = options->shares;
  app.add_option("--admit", raw->admitted,
                 "also serve this user (name or number); each is sure of a share of everything; "
                 "repeat for more")
      ->group(kGroup);
  const auto limit = [&](const char* name, uint64_t* value, const char* text) {
    app.add_option(name, *value, text)->check(CLI::Range(1u, 1u << 24))->group(kGroup);
  };
  limit("--user-connections", &shares.user_connections, "connections of a user, at most");
  limit("--user-contexts", &shares.user_contexts, "contexts of a user on each card, at most");
  limit("--user-groups", &shares.user_groups, "group memberships of a user on each card, at most");
  limit("--user-keys", &shares.user_keys, "memory keys of a user on each card, at most");
  limit("--user-memory", &raw->user_memory_mib, "MiB created for a user, at most");
  limit("--connection-groups", &shares.connection_groups, "group memberships of a connection");
  limit("--connection-keys", &shares.connection_keys, "memory keys of a connection");
  limit("--connection-memory", &raw->connection_memory_mib, "MiB created for a connection");
}

// A user's number; nothing when there is no such user.
std::optional<uid_t> user_number(const std::string& text) {
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end) return number;
  const passwd* const entry = getpwnam(text.c_str());
  if (entry == nullptr) return std::nullopt;
  return entry->pw_uid;
}

std::string apply_shares(const RawOptions& raw, ShareOptions* shares) {
  for (const std::string& text : raw.admitted) {
    const std::optional<uid_t> uid = user_number(text);
    if (!uid) return "--admit '" + text + "': there is no such user";
    shares->admitted.push_back(*uid);
  }
  shares->user_memory_bytes = raw.user_memory_mib << 20;
  shares->connection_memory_bytes = raw.connection_memory_mib << 20;
  return {};
}

void declare(CLI::App& app, NicOptions* options, RawOptions* raw) {
  app.add_option("--cards", options->cards, "cards in this process, on one polling core")
      ->check(CLI::Range(1u, kCardsMax))
      ->capture_default_str();
  app.add_option("--socket", options->socket_path,
                 "serve host processes on this Unix socket (libpeal: emu:PATH,card=N)");
  app.add_option("--pci", raw->pci,
                 "SOCKET,RAMFILE[,MIB]: play an ivshmem PCI card for a QEMU guest; repeat for one "
                 "guest per card, in order");
  app.add_option("--lcore-affinity", raw->cpu, "pin the polling core to this CPU");

  const auto probability = CLI::Range(0.0, 1.0);
  app.add_option("--loss", options->faults.loss, "probability that a frame is lost")
      ->check(probability)
      ->group("Faults on the wire");
  app.add_option("--duplicate", options->faults.duplicate, "probability of a second copy")
      ->check(probability)
      ->group("Faults on the wire");
  app.add_option("--reorder", options->faults.reorder, "probability of being overtaken")
      ->check(probability)
      ->group("Faults on the wire");
  app.add_option("--reorder-us", raw->reorder_us, "how long at most an overtaken frame waits")
      ->capture_default_str()
      ->group("Faults on the wire");
  app.add_option("--delay", options->faults.delay, "probability of a delay")
      ->check(probability)
      ->group("Faults on the wire");
  app.add_option("--delay-us", raw->delay_us, "longest delay")
      ->capture_default_str()
      ->group("Faults on the wire");
  app.add_option("--corrupt", options->faults.corrupt, "probability of a flipped bit")
      ->check(probability)
      ->group("Faults on the wire");
  app.add_option("--fault-plan", raw->fault_plans,
                 "several faults as text, partitions too: "
                 "loss=0.01,partition=FIRST-LAST:FROM_US-UNTIL_US")
      ->group("Faults on the wire");
  app.add_option("--seed", options->seed, "of the faults")
      ->capture_default_str()
      ->group("Faults on the wire");
  app.add_option("--checksums", raw->checksums,
                 "CRC32C by the firmware (software), by nobody (skip), or skip only on a wire "
                 "without faults (auto)")
      ->check(CLI::IsMember({"auto", "software", "skip"}))
      ->capture_default_str();

  app.add_option("--nack-us", raw->nack_us, "first NACK after")->group("Patience");
  app.add_option("--nack-max-us", raw->nack_max_us, "longest interval between NACKs")
      ->group("Patience");
  app.add_option("--probe-us", raw->probe_us, "interval of probes of a silent peer")
      ->group("Patience");
  app.add_option("--dead-ms", raw->dead_ms, "a peer silent for this long is dead")
      ->group("Patience");
  app.add_option("--copy-deadline-ms", options->copy_deadline_ms,
                 "a client whose registered memory cannot be reached for this long is ended")
      ->check(CLI::Range(1u, 3'600'000u))
      ->capture_default_str()
      ->group("Patience");
  app.add_option("--idle-us", options->idle_us, "awake for this long without work")
      ->capture_default_str()
      ->group("Patience");
  app.add_flag("--no-sleep", raw->no_sleep, "never sleep: poll for ever")->group("Patience");

  app.add_option("--memory-budget", options->memory_budget_mib,
                 "MiB of memory created for clients, all together")
      ->check(CLI::Range(1u, 1u << 24))
      ->capture_default_str();
  declare_shares(app, options, raw);
  app.add_option("--packet-buffers", options->packet_buffers, "packet buffers per card")
      ->check(CLI::Range(64u, 65536u))
      ->capture_default_str();
  app.add_option("--trace", options->trace_path, "write a line per sent frame to this file")
      ->group("Seeing what happens");
  app.add_option("--counters-json", options->counters_path,
                 "write all counters to this file at the end")
      ->group("Seeing what happens");
  app.add_option("--ready-fd", options->ready_fd, "write 'ready' to this descriptor when up")
      ->group("Seeing what happens");
  app.add_option("--pid-file", options->pid_path, "write the process id here; removed at the end")
      ->group("Seeing what happens");
  app.add_flag("--no-telemetry", raw->no_telemetry, "no DPDK telemetry socket")
      ->group("Seeing what happens");
  app.add_option("--file-prefix", options->file_prefix,
                 "DPDK's name for this process (dpdk-telemetry.py -f PREFIX); default peal-PID")
      ->group("Seeing what happens");
}

std::string apply(const RawOptions& raw, NicOptions* options) {
  if (raw.cpu >= 0) options->cpu = raw.cpu;
  options->may_sleep = !raw.no_sleep;
  options->telemetry = !raw.no_telemetry;
  options->faults.reorder_ns = raw.reorder_us * 1000;
  options->faults.delay_ns = raw.delay_us * 1000;
  for (const std::string& plan : raw.fault_plans) {
    if (std::string error = emulator::parse_fault_plan(plan, &options->faults); !error.empty())
      return error;
  }
  if (std::string problem = options->faults.problem(); !problem.empty()) return problem;
  options->checksums = raw.checksums == "software" ? ChecksumChoice::kSoftware
                       : raw.checksums == "skip"   ? ChecksumChoice::kSkip
                                                   : ChecksumChoice::kAuto;
  if (options->checksums == ChecksumChoice::kSkip && options->faults.any())
    return "--checksums skip is only for a wire without faults; use auto or software";
  if (raw.nack_us > 0) options->timeouts.nack_ns = raw.nack_us * 1000;
  if (raw.nack_max_us > 0) options->timeouts.nack_max_ns = raw.nack_max_us * 1000;
  if (raw.probe_us > 0) options->timeouts.probe_interval_ns = raw.probe_us * 1000;
  if (raw.dead_ms > 0) options->timeouts.dead_ns = raw.dead_ms * 1'000'000;
  if (options->timeouts.nack_max_ns < options->timeouts.nack_ns)
    return "--nack-max-us must not be smaller than --nack-us";
  if (options->timeouts.dead_ns <= options->timeouts.probe_interval_ns)
    return "--dead-ms must be longer than --probe-us, or peers die before they are asked";
  if (std::string error = apply_shares(raw, &options->shares); !error.empty()) return error;
  for (const std::string& text : raw.pci) {
    PciOptions pci;
    if (std::string error = parse_pci(text, &pci); !error.empty()) return error;
    options->pci.push_back(pci);
  }
  if (options->pci.size() > options->cards)
    return "--pci is given " + std::to_string(options->pci.size()) + " times for " +
           std::to_string(options->cards) + " cards; raise --cards";
  if (options->socket_path.empty() && options->pci.empty())
    return "no host could reach the cards; give --socket PATH, --pci SOCKET,RAMFILE, or both";
  if (options->file_prefix.empty()) options->file_prefix = "peal-" + std::to_string(getpid());
  if (options->file_prefix.find('/') != std::string::npos)
    return "--file-prefix must not contain '/'";
  return {};
}

}  // namespace

std::optional<int> parse_options(int argc, char** argv, NicOptions* options) {
  CLI::App app(
      "peal-nic: emulated collective network cards. Runs Peal's firmware on DPDK, unprivileged and "
      "without hugepages; host processes reach the cards through a Unix socket, virtual machines "
      "through a PCI card.",
      "peal-nic");
  app.set_version_flag("--version", std::string("peal-nic ") + kVersion);
  app.option_defaults()->always_capture_default(false);
  options->timeouts = default_timeouts();
  options->packet_buffers = std::min<uint32_t>(CONFIG_PACKET_BUFFERS, 1024);
  RawOptions raw;
  declare(app, options, &raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  if (const std::string error = apply(raw, options); !error.empty()) {
    std::cerr << "peal-nic: " << error << "\n";
    return 2;
  }
  return std::nullopt;
}

}  // namespace peal::nic
