// SPDX-License-Identifier: BSD-2-Clause
// CLI11 reads the options; what it cannot know (combinations, values of faults) is checked behind
// it.
#include "emulator/nic/options.h"

#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>

#include "emulator/common/cache_size.h"
#include "emulator/common/command_line.h"
#include "emulator/common/fault_options.h"
#include "emulator/nic/wire_rings.h"
#include "peal_config.h"

namespace peal::nic {
namespace {

using command_line::Group;
using command_line::one_of;
using command_line::whole;

constexpr uint32_t kCardsMax = 256;
constexpr uint64_t kMibMax = uint64_t{1} << 24;

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
  if (!command_line::parse_whole(size, 1, 3072, &mib))
    return "--pci '" + text + "': the guest's memory must be 1 to 3072 MiB, not '" + size + "'";
  pci->ram_bytes = mib << 20;
  return {};
}

// What an option's text becomes only after all have been read.
struct RawOptions {
  command_line::FaultOptions faults;
  std::vector<std::string> pci;
  std::string checksums = "auto";
  uint64_t nack_us = 0;
  uint64_t nack_max_us = 0;
  uint64_t probe_us = 0;
  uint64_t dead_ms = 0;
  bool no_sleep = false;
  bool no_telemetry = false;
  std::vector<std::string> cpus;
  std::vector<std::string> engine_cpus;
  std::vector<std::string> admitted;
  uint64_t user_memory_mib = 0;
  uint64_t connection_memory_mib = 0;
};

void declare_cards(command_line::App& app, NicOptions* options, RawOptions* raw) {
  Group group(app);
  group.add("--cards", options->cards, "N", "Runs N cards, 1 to 256.")
      .check(whole(1, kCardsMax))
      .show_default();
  group.add("--socket", options->socket_paths, "PATH",
            "Serves host processes on this Unix socket (libpeal: emu:PATH,card=I). Repeatable: "
            "each of S sockets has a polling core of its own and every S-th card, of which I "
            "counts.");
  group.add("--pci", raw->pci, "SOCKET,RAMFILE[,MIB]",
            "Plays an ivshmem PCI card for a QEMU guest with so many MiB, 1 to 3072 (default 256). "
            "Repeatable: the first is on card 0.");
  group.add("--lcore-affinity", raw->cpus, "CPU",
            "Pins the polling core to this CPU. Repeatable, once for each. Default: not pinned.");
  group.add_flag("--yield", options->yields,
                 "Gives way to others on the polling core's CPU when it finds nothing to do: for "
                 "cards that share it with ranks. Several polling cores with a CPU for each look "
                 "on for up to 3 microseconds first, unless a host was told of an end. So it does "
                 "anyway where it may use no more CPUs than it has polling cores.");
  group.add("--engine-lcore", raw->engine_cpus, "CPU",
            "Has what the cards' transmit engines send carried by a polling core of its own, "
            "pinned to this CPU. Repeatable: engines take turns. Default: the one polling core "
            "does it.");
  group
      .add("--checksums", raw->checksums, "HOW",
           "Has CRC32C computed by the firmware (software), by nobody (skip), or skips it only on "
           "a wire without faults (auto).")
      .check(one_of({"auto", "software", "skip"}))
      .show_default();
  group
      .add("--memory-budget", options->memory_budget_mib, "MIB",
           "Creates at most so many MiB of memory for all clients together.")
      .check(whole(1, kMibMax))
      .show_default();
  group
      .add("--packet-buffers", options->packet_buffers, "N",
           "Gives each card N packet buffers, 64 to 65536.")
      .check(whole(64, 65536))
      .show_default();
  group
      .add("--cache", options->cache_mib, "MIB",
           "Takes the processors' last cache to hold so many MiB: what is written to hosts' memory "
           "at longer intervals goes past it. 0: nothing does. Default: what Linux says.")
      .check(whole(0, kMibMax));
}

void declare_shares(command_line::App& app, NicOptions* options, RawOptions* raw) {
  Group group(app, "Shares of clients");
  ShareOptions& shares = options->shares;
  group.add("--admit", raw->admitted, "USER",
            "Also serves this user (name or number), sure of a share of everything. Repeatable.");
  const auto limit = [&](const char* name, uint64_t* value, const char* unit,
                         const std::string& text) {
    group.add(name, *value, unit, text).check(whole(1, kMibMax));
  };
  const std::string user = " Default: all but what others are sure of.";
  limit("--user-connections", &shares.user_connections, "N", "Limits a user's connections." + user);
  limit("--user-contexts", &shares.user_contexts, "N",
        "Limits a user's contexts on each card." + user);
  limit("--user-groups", &shares.user_groups, "N",
        "Limits a user's group memberships on each card." + user);
  limit("--user-keys", &shares.user_keys, "N", "Limits a user's memory keys on each card." + user);
  limit("--user-memory", &raw->user_memory_mib, "MIB", "Limits the MiB created for a user." + user);
  const std::string connection = " Default: three quarters of all.";
  limit("--connection-groups", &shares.connection_groups, "N",
        "Limits a connection's group memberships." + connection);
  limit("--connection-keys", &shares.connection_keys, "N",
        "Limits a connection's memory keys." + connection);
  limit("--connection-memory", &raw->connection_memory_mib, "MIB",
        "Limits the MiB created for a connection." + connection);
}

// Hosts are told it in microseconds of 32 bits.
constexpr uint64_t kDeadMsMax = UINT32_MAX / 1000;

void declare_patience(command_line::App& app, NicOptions* options, RawOptions* raw) {
  Group group(app, "Patience");
  const auto add = [&](const char* name, uint64_t& value, const char* unit, uint64_t preset,
                       const std::string& text, uint64_t least = 1,
                       uint64_t most = command_line::kMicrosecondsMax) {
    group.add(name, value, unit, text)
        .check(whole(least, most))
        .show_default(std::to_string(preset));
  };
  const CardTimeouts& preset = options->timeouts;
  add("--nack-us", raw->nack_us, "US", preset.nack_ns / 1000,
      "Sends the first NACK after so many microseconds.");
  add("--nack-max-us", raw->nack_max_us, "US", preset.nack_max_ns / 1000,
      "Sends the next ones at intervals of at most so many microseconds.");
  add("--probe-us", raw->probe_us, "US", preset.probe_interval_ns / 1000,
      "Probes a silent peer every so many microseconds.");
  add("--dead-ms", raw->dead_ms, "MS", preset.dead_ns / 1'000'000,
      "Takes a peer for dead that was silent for so many milliseconds.", 1, kDeadMsMax);
  group
      .add("--copy-deadline-ms", options->copy_deadline_ms, "MS",
           "Ends a client whose registered memory cannot be reached for so many milliseconds.")
      .check(whole(1, 3'600'000))
      .show_default();
  add("--idle-us", options->idle_us, "US", options->idle_us,
      "Stays awake for so many microseconds without work.", 0);
  group
      .add("--linger-us", options->linger_us, "US",
           "Stays awake for so many microseconds after a host was told of an end. Default: 10000 "
           "with --lcore-affinity and without --yield, otherwise 0.")
      .check(whole(0, command_line::kMicrosecondsMax));
  group.add_flag("--no-sleep", raw->no_sleep, "Never sleeps: polls for ever.");
}

void declare_seeing(command_line::App& app, NicOptions* options, RawOptions* raw) {
  Group group(app, "Seeing what happens");
  group.add("--trace", options->trace_path, "FILE",
            "Writes a line per sent frame to this file. Default: none.");
  group.add("--counters-json", options->counters_path, "FILE",
            "Writes all counters to this file at the end, as JSON. Default: none.");
  group
      .add("--ready-fd", options->ready_fd, "FD",
           "Writes 'ready' to this descriptor when the cards can be used. Default: none.")
      .check(whole(0, INT_MAX));
  group.add("--pid-file", options->pid_path, "FILE",
            "Writes the process id to this file, and removes it at the end. Default: none.");
  group.add_flag("--no-telemetry", raw->no_telemetry, "Opens no DPDK telemetry socket.");
  group.add("--log-level", options->log_levels, "[TYPE:]LEVEL",
            "Says what is of this level or worse: error, warning, notice, info or debug; with TYPE "
            "a part of DPDK says it, for example lib.eal:debug. Repeatable. Default: notice, and "
            "*:error.");
  group.add("--file-prefix", options->file_prefix, "NAME",
            "Names this process for DPDK (dpdk-telemetry.py -f NAME). Default: peal-PID.");
}

void declare(command_line::App& app, NicOptions* options, RawOptions* raw) {
  declare_cards(app, options, raw);
  declare_shares(app, options, raw);
  raw->faults.add_faults(app);
  raw->faults.add_plan_and_seed(app);
  declare_patience(app, options, raw);
  declare_seeing(app, options, raw);
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

// A level alone is ours.
std::string apply_log_level(std::string* text) {
  constexpr std::array<std::string_view, 5> kLevels = {"error", "warning", "notice", "info",
                                                       "debug"};
  const size_t colon = text->rfind(':');
  const std::string level = colon == text->npos ? *text : text->substr(colon + 1);
  if (colon == 0 || std::find(kLevels.begin(), kLevels.end(), level) == kLevels.end())
    return "--log-level '" + *text +
           "': expected error, warning, notice, info or debug, or TYPE: and one of these";
  if (colon == text->npos) *text = "peal:" + level;
  return {};
}

// One after the other, so that whatever is wrong is named. `taken`: CPUs that have a polling core.
std::string apply_cpus(const char* name, const std::vector<std::string>& texts,
                       std::vector<int> taken, std::vector<int>* cpus) {
  for (const std::string& text : texts) {
    uint64_t number = 0;
    if (!command_line::parse_whole(text, 0, CPU_SETSIZE - 1, &number))
      return std::string(name) + " '" + text + "': expected the number of a CPU";
    const auto cpu = static_cast<int>(number);
    if (std::find(taken.begin(), taken.end(), cpu) != taken.end())
      return std::string(name) + " " + text + ": that CPU has a polling core already";
    taken.push_back(cpu);
    cpus->push_back(cpu);
  }
  return {};
}

std::string apply_polling_cores(const RawOptions& raw, NicOptions* options) {
  if (raw.engine_cpus.size() > CONFIG_TRANSMIT_ENGINES)
    return "--engine-lcore is given " + std::to_string(raw.engine_cpus.size()) +
           " times, and these cards have " + std::to_string(CONFIG_TRANSMIT_ENGINES) +
           " transmit engines";
  std::string error = apply_cpus("--lcore-affinity", raw.cpus, {}, &options->cpus);
  if (error.empty())
    error = apply_cpus("--engine-lcore", raw.engine_cpus, options->cpus, &options->engine_cpus);
  if (!error.empty()) return error;
  const uint32_t loops = options->loops();
  if (!options->cpus.empty() && options->cpus.size() != loops)
    return "--lcore-affinity is given " + std::to_string(options->cpus.size()) + " times for " +
           std::to_string(loops) + " polling cores; give it once for each, or not at all";
  if (loops == 1) return {};
  if (loops > WireRings::kLoopsMax || loops > options->cards)
    return "--socket is given " + std::to_string(loops) + " times: it may be " +
           std::to_string(std::min(WireRings::kLoopsMax, options->cards)) + ", one for each card";
  if (!raw.pci.empty() || !raw.engine_cpus.empty())
    return "--pci and --engine-lcore are for one polling core; give one --socket";
  return {};
}

std::string apply(const RawOptions& raw, NicOptions* options) {
  if (std::string error = apply_polling_cores(raw, options); !error.empty()) return error;
  options->may_sleep = !raw.no_sleep;
  options->telemetry = !raw.no_telemetry;
  if (std::string error = raw.faults.read(&options->faults); !error.empty()) return error;
  for (const emulator::Partition& partition : options->faults.partitions) {
    if (partition.last_card >= options->cards)
      return "a partition names card " + std::to_string(partition.last_card) + " of " +
             std::to_string(options->cards) + "; raise --cards";
  }
  options->seed = raw.faults.seed();
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
  if (options->socket_paths.empty() && options->pci.empty())
    return "no host could reach the cards; give --socket PATH, --pci SOCKET,RAMFILE, or both";
  for (std::string& level : options->log_levels) {
    if (std::string error = apply_log_level(&level); !error.empty()) return error;
  }
  if (options->file_prefix.empty()) options->file_prefix = "peal-" + std::to_string(getpid());
  if (options->file_prefix.find('/') != std::string::npos)
    return "--file-prefix must not contain '/'";
  if (options->file_prefix == "." || options->file_prefix == "..")
    return "--file-prefix names a folder of its own, not '" + options->file_prefix + "'";
  if (options->ready_fd >= 0 && fcntl(options->ready_fd, F_GETFD) < 0)
    return "--ready-fd " + std::to_string(options->ready_fd) + ": no such descriptor is open";
  return {};
}

}  // namespace

std::optional<int> parse_options(int argc, char** argv, NicOptions* options) {
  command_line::App app(
      "peal-nic", "peal-nic [OPTIONS] --socket PATH | --pci SOCKET,RAMFILE[,MIB]...",
      "Runs Peal's firmware as emulated network cards on DPDK, unprivileged and without "
      "hugepages.\n"
      "Host processes reach the cards through a Unix socket, virtual machines through a PCI card.");

  options->timeouts = default_timeouts();
  options->packet_buffers = std::min<uint32_t>(CONFIG_PACKET_BUFFERS, 1024);
  options->cache_mib = emulator::last_cache_bytes() >> 20;
  RawOptions raw;
  declare(app, options, &raw);
  if (const auto status = app.parse(argc, argv)) return status;
  if (const std::string error = apply(raw, options); !error.empty()) return app.complain(error);
  return std::nullopt;
}

}  // namespace peal::nic
