// SPDX-License-Identifier: BSD-2-Clause
// peal-nic: options, DPDK, cards, host interfaces, loop; and the same backwards.
#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "emulator/nic/eal.h"
#include "emulator/nic/give_way.h"
#include "emulator/nic/linger.h"
#include "emulator/nic/log.h"
#include "emulator/nic/log_stream.h"
#include "emulator/nic/nic_loops.h"
#include "emulator/nic/options.h"
#include "emulator/nic/socket_server.h"
#include "emulator/nic/telemetry.h"

namespace peal::nic {
namespace {

NicLoops* signalled_loops = nullptr;

void on_signal(int) {
  if (signalled_loops != nullptr) signalled_loops->request_stop();
}

void catch_signals(NicLoops& loops) {
  signalled_loops = &loops;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

int fail(const std::string& text) {
  log(RTE_LOG_ERR, text);
  return 1;
}

// A client costs a few descriptors.
void raise_descriptor_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

uint32_t random_incarnation() {
  uint32_t value = 0;
  if (getrandom(&value, sizeof(value), 0) != sizeof(value)) value = static_cast<uint32_t>(getpid());
  return value >> 1 | 1;  // room for as many cards without wrapping to zero
}

bool write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written;
}

// Empty, or what went wrong.
std::string announce_ready(int fd) {
  if (fd < 0) return {};
  const bool written = write(fd, "ready\n", 6) == 6;
  std::string error = written ? "" : "cannot write to --ready-fd: " + std::string(strerror(errno));
  close(fd);
  return error;
}

// Those that nobody polls on; or where that leaves none, those of the engines; or all, on which the
// cards give way.
std::vector<int> other_cpus(const NicOptions& options, const std::vector<int>& allowed) {
  std::vector<int> cpus;
  std::vector<int> of_engines;
  for (const int cpu : allowed) {
    if (std::count(options.cpus.begin(), options.cpus.end(), cpu) > 0) continue;
    const bool polled = std::count(options.engine_cpus.begin(), options.engine_cpus.end(), cpu) > 0;
    (polled ? of_engines : cpus).push_back(cpu);
  }
  if (!cpus.empty()) return cpus;
  return options.loops() > 1 ? allowed : of_engines;
}

uint64_t dpdk_memory_bytes(uint32_t cards, uint32_t packet_buffers, uint32_t loops) {
  constexpr uint64_t kBase = uint64_t{24} << 20;
  const uint64_t pools = PacketPool::memory_bytes(packet_buffers);
  // Those of the engines' lcores are as long as one to a card.
  const uint64_t rings = WireRings::memory_bytes(cards, loops) +
                         WireRings::memory_bytes(CONFIG_TRANSMIT_ENGINES + 1, 1);
  return kBase + pools + pools / 8 + rings;
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

LoopOptions loop_options(const NicOptions& options, uint32_t packet_buffers, std::FILE* trace,
                         const std::vector<int>& allowed) {
  LoopOptions loop;
  loop.cards = options.cards;
  loop.packet_buffers = packet_buffers;
  loop.checksums = options.checksum_mode();
  loop.timeouts = options.timeouts;
  loop.wire.faults = options.faults;
  loop.wire.seed = options.seed;
  loop.wire.trace = trace;
  loop.wire.engine_lcores = static_cast<uint32_t>(options.engine_cpus.size());
  loop.incarnation = random_incarnation();
  loop.copy_deadline_ns = options.copy_deadline_ms * 1'000'000;
  loop.cache_bytes = options.cache_mib << 20;
  loop.idle_ns = options.idle_us * 1000;
  loop.may_sleep = options.may_sleep;
  loop.yield_when_idle = options.yields || allowed.size() <= options.loops();
  const bool own = !options.cpus.empty() && !loop.yield_when_idle;
  loop.linger_ns = options.linger_us ? *options.linger_us * 1000 : own ? Linger::kDefaultNs : 0;
  // What one loop waits for comes from ranks, which need its processor; and so do loops that share
  // one.
  const bool each_its_own = options.loops() > 1 && allowed.size() >= options.loops();
  loop.look_on_ns = each_its_own ? GiveWay::kLookOnNs : 0;
  loop.standby_cpus = other_cpus(options, allowed);
  return loop;
}

// Of the loop of that number.
std::string add_interfaces(const NicOptions& options, const std::vector<int>& control_cpus,
                           uint32_t number, NicLoop* loop) {
  std::string error;
  if (!options.socket_paths.empty()) {
    SocketOptions socket;
    socket.path = options.socket_paths[number];
    socket.memory_budget_bytes = (options.memory_budget_mib << 20) / options.loops();
    socket.shares = options.shares;
    // A part of what all sockets give a user together.
    socket.shares.user_memory_bytes /= options.loops();
    socket.shares.user_connections =
        (socket.shares.user_connections + options.loops() - 1) / options.loops();
    socket.copy_deadline_ms = options.copy_deadline_ms;
    socket.control_cpus = control_cpus;
    if (options.checksum_mode() == Checksums::kSkipped)
      socket.capabilities |= PEAL_CAPABILITY_CHECKSUM_SKIPPED;
    std::unique_ptr<SocketServer> server =
        SocketServer::create(socket, *loop, {loop->helper(), loop->copies()}, &error);
    if (server == nullptr) return error;
    loop->add_interface(std::move(server));
  }
  for (size_t i = 0; i < options.pci.size(); i++) {
#ifdef PEAL_NIC_PCI
    std::unique_ptr<HostInterface> pci =
        make_pci_interface(options.pci[i], loop->card(static_cast<uint32_t>(i)), *loop, &error);
    if (pci == nullptr) return error;
    loop->add_interface(std::move(pci));
#else
    return "--pci: this peal-nic was built without the PCI card";
#endif
  }
  return {};
}

// What DPDK's log is written to while there is one.
class LogTo {
 public:
  explicit LogTo(std::FILE* file) { rte_openlog_stream(file); }
  ~LogTo() { rte_openlog_stream(nullptr); }
  LogTo(const LogTo&) = delete;
  LogTo& operator=(const LogTo&) = delete;
};

int run(const NicOptions& options) {
  const LogStream stream(STDERR_FILENO);
  const LogTo log_to(stream.file());
  raise_descriptor_limit();
  signal(SIGPIPE, SIG_IGN);
  const std::vector<int> allowed = allowed_cpus();
  std::unique_ptr<std::FILE, FileCloser> trace;
  if (!options.trace_path.empty()) {
    trace.reset(std::fopen(options.trace_path.c_str(), "we"));
    if (trace == nullptr)
      return fail("cannot write '" + options.trace_path + "': " + std::strerror(errno));
  }
  const uint32_t packet_buffers = options.packet_buffers * options.cards;
  Eal eal;
  EalOptions eal_options;
  eal_options.memory_bytes = dpdk_memory_bytes(options.cards, packet_buffers, options.loops());
  eal_options.cpus = options.cpus;
  eal_options.loops = options.loops();
  eal_options.engine_cpus = options.engine_cpus;
  eal_options.telemetry = options.telemetry;
  eal_options.file_prefix = options.file_prefix;
  eal_options.log_levels = options.log_levels;
  if (const std::string error = eal.start(eal_options); !error.empty()) return fail(error);

  NicLoops loops(options.loops());
  catch_signals(loops);
  std::string error = loops.create(loop_options(options, packet_buffers, trace.get(), allowed));
  const std::vector<int> others = other_cpus(options, allowed);
  for (uint32_t i = 0; i < loops.count() && error.empty(); i++) {
    loops.loop(i).helper().run_on(others);
    error = add_interfaces(options, others, i, &loops.loop(i));
  }
  if (error.empty() && options.telemetry) error = offer_telemetry(loops);
  // From here on the file is ours: another one's has stayed as it was.
  const bool has_pid_file = error.empty() && !options.pid_path.empty();
  if (has_pid_file && !write_file(options.pid_path, std::to_string(getpid()) + "\n"))
    error = "cannot write '" + options.pid_path + "': " + std::strerror(errno);
  if (error.empty()) error = announce_ready(options.ready_fd);
  if (error.empty()) {
    log(RTE_LOG_INFO, "cards ready: " + std::to_string(options.cards));
    loops.run();
    if (trace != nullptr && (std::fflush(trace.get()) != 0 || std::ferror(trace.get()) != 0))
      error = "cannot write '" + options.trace_path + "': " + std::strerror(errno);
    if (!options.counters_path.empty() &&
        !write_file(options.counters_path, loops.counters_json().dump() + "\n"))
      error = "cannot write '" + options.counters_path + "': " + std::strerror(errno);
  }
  withdraw_telemetry();
  if (has_pid_file) unlink(options.pid_path.c_str());
  const int status = error.empty() ? 0 : fail(error);
  if (!loops.stop_copies()) {
    // Names are gone, except for DPDK's; memory goes with the process.
    eal.remove_folder();
    std::fflush(nullptr);
    _exit(status);
  }
  signalled_loops = nullptr;
  return status;
}

}  // namespace
}  // namespace peal::nic

int main(int argc, char** argv) {
  peal::nic::NicOptions options;
  if (const auto status = peal::nic::parse_options(argc, argv, &options)) return *status;
  return peal::nic::run(options);
}
