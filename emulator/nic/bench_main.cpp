// SPDX-License-Identifier: BSD-2-Clause
// peal-nic-bench: what an operation costs the cards' core, without hosts, wake-ups or waiting. All
// ranks' submissions are in the rings; the clock runs from the first turn to the last completion.
// The hosts' part (writing entries, reading completions) is outside of it.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "abi/ring.h"
#include "base/names.h"
#include "emulator/common/cache_size.h"
#include "emulator/common/command_line.h"
#include "emulator/nic/card_runner.h"
#include "emulator/nic/eal.h"
#include "emulator/nic/shared_memory.h"
#include "emulator/nic/tsc_clock.h"

namespace peal::nic {
namespace {

struct BenchOptions {
  uint32_t ranks = 8;
  uint32_t bytes = 1024;
  uint32_t iterations = 20000;
  std::string algorithm = names::algorithm(PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST);
  bool software_checksums = false;
};

// A rank: a card, its only context, and memory for both buffers.
class Rank final : public emulator::MemoryProvider {
 public:
  Rank(uint32_t index, PacketPool& pool, FrameSwitch& frame_switch, emulator::HostCopies& copies,
       Checksums checksums)
      : runner(index, pool, frame_switch, copies, checksums, default_timeouts(), 1 + index) {}
  ~Rank() {
    for (Mapping* mapping : mappings_) destroy(mapping);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  CardRunner runner;
  peal_host_ring ring{};
  uint8_t* memory = nullptr;
  uint32_t key = 0;
  peal_peer_address address{};

  bool open(uint64_t memory_bytes, uint32_t ranks, uint32_t rank) {
    peal_admin_command command = make(PEAL_ADMIN_OPEN_CONTEXT);
    if (!run(command, emulator::kNoContext)) return false;
    context_ = reply_.u.open.context;
    command = make(PEAL_ADMIN_REGISTER_MEMORY);
    command.u.register_memory.kind = PEAL_MEMORY_ALLOCATE;
    command.u.register_memory.access = PEAL_ACCESS_READ | PEAL_ACCESS_WRITE;
    command.u.register_memory.bytes = memory_bytes;
    if (!run(command, context_)) return false;
    key = reply_.u.register_memory.key;
    command = make(PEAL_ADMIN_RESERVE_GROUP);
    command.u.reserve.ranks = ranks;
    command.u.reserve.rank = rank;
    if (!run(command, context_)) return false;
    address = reply_.u.reserve.address;
    return true;
  }

  bool connect(const std::vector<std::unique_ptr<Rank>>& all, uint32_t rank) {
    peal_admin_command command = make(PEAL_ADMIN_CONNECT_GROUP);
    peal_connect_group& connect = command.u.connect;
    const auto ranks = static_cast<uint32_t>(all.size());
    connect.member = address.member;
    connect.group = 1;
    for (uint32_t distance = 1; distance < ranks; distance *= 2) {
      connect.peers[connect.peer_count++] = all[(rank + distance) % ranks]->address;
      connect.peers[connect.peer_count++] = all[(rank + ranks - distance) % ranks]->address;
    }
    return run(command, context_);
  }

  peal_status open_window(ContextId context, uint64_t* offset) override {
    uint8_t* const window = map(emulator::kWindowBytes);
    runner.host().windows->open(context, window, 0, nullptr);
    *offset = 0;
    peal_host_ring_init(&ring, window, emulator::kRingEntries);
    return PEAL_STATUS_OK;
  }
  void context_gone(ContextId) override {}
  peal_status make_memory(const peal_register_memory& request, RegionId* region) override {
    memory = map(request.bytes);
    *region = runner.host().regions->put_mapped(memory, request.bytes, {});
    return PEAL_STATUS_OK;
  }
  peal_status make_channels(const peal_reserve_group&, RegionId* region) override {
    *region = runner.host().regions->put_mapped(map(emulator::kChannelsBytes),
                                                emulator::kChannelsBytes, {});
    return PEAL_STATUS_OK;
  }

 private:
  uint8_t* map(uint64_t bytes) {
    mappings_.push_back(create_private(whole_pages(bytes)));
    return static_cast<uint8_t*>(mappings_.back()->base);
  }
  static peal_admin_command make(peal_admin_opcode opcode) {
    peal_admin_command command = {};
    command.version = PEAL_ABI_VERSION;
    command.opcode = static_cast<uint16_t>(opcode);
    command.bytes = PEAL_ADMIN_BYTES;
    return command;
  }
  bool run(const peal_admin_command& command, ContextId context) {
    return runner.admin().execute(command, sizeof(command), context, *this, 1, &reply_) ==
           PEAL_STATUS_OK;
  }

  std::vector<Mapping*> mappings_;
  peal_admin_reply reply_{};
  ContextId context_ = 0;
};

class Bench {
 public:
  explicit Bench(const BenchOptions& options)
      : options_(options), switch_(pool_, SwitchOptions{}) {}

  std::string set_up() {
    if (std::string error = pool_.create(1024 * options_.ranks, options_.ranks); !error.empty())
      return error;
    if (std::string error = switch_.create(options_.ranks); !error.empty()) return error;
    const Checksums checksums =
        options_.software_checksums ? Checksums::kSoftware : Checksums::kSkipped;
    const uint64_t memory_bytes = uint64_t{options_.bytes} * (options_.ranks + 1) + 4096;
    for (uint32_t i = 0; i < options_.ranks; i++) {
      ranks_.push_back(std::make_unique<Rank>(i, pool_, switch_, copies_, checksums));
      if (!ranks_.back()->open(memory_bytes, options_.ranks, i)) return "cannot open a rank";
    }
    for (uint32_t i = 0; i < options_.ranks; i++) {
      if (!ranks_[i]->connect(ranks_, i)) return "cannot connect the group";
    }
    return {};
  }

  // Nanoseconds of card core for one operation of all ranks; 0 when it failed.
  TimeNs run_one() {
    peal_submission entry = {};
    entry.algorithm = *names::value_of(names::kAlgorithms, options_.algorithm);
    entry.operation = entry.algorithm == PEAL_ALGORITHM_DISSEMINATION ? PEAL_OPERATION_BARRIER
                                                                      : PEAL_OPERATION_ALLGATHER;
    entry.sequence = sequence_++;
    if (entry.operation == PEAL_OPERATION_ALLGATHER) entry.block_bytes = options_.bytes;
    entry.receive_offset = options_.bytes;
    for (const auto& rank : ranks_) {
      entry.member = rank->address.member;
      entry.send_key = entry.operation == PEAL_OPERATION_ALLGATHER ? rank->key : 0;
      entry.receive_key = entry.send_key;
      if (entry.operation == PEAL_OPERATION_BARRIER) entry.receive_offset = 0;
      peal_host_ring_submit(&rank->ring, &entry);
    }
    const TimeNs began = clock_.now();
    TimeNs ended = began;
    for (size_t done = 0; done < ranks_.size();) {
      const TimeNs now = clock_.now();
      switch_.set_now(now);
      bool quiet = true;
      for (const auto& rank : ranks_) rank->runner.serve(now);
      for (uint32_t i = 0; i < ranks_.size(); i++) quiet &= !switch_.has_frames(i);
      for (const auto& rank : ranks_) rank->runner.run_timers(now, quiet);
      ended = clock_.now();
      for (const auto& rank : ranks_) {
        peal_completion completion;
        if (!peal_host_ring_poll(&rank->ring, &completion)) continue;
        if (completion.status != PEAL_STATUS_OK) return 0;
        done++;
      }
    }
    return ended - began;
  }

  [[nodiscard]] uint64_t frames() const { return switch_.counts().sent; }

 private:
  BenchOptions options_;
  TscClock clock_;
  PacketPool pool_;
  FrameSwitch switch_;
  emulator::HostCopies copies_{emulator::last_cache_bytes()};
  std::vector<std::unique_ptr<Rank>> ranks_;
  uint64_t sequence_ = 0;
};

int run(const BenchOptions& options) {
  Eal eal;
  EalOptions eal_options;
  eal_options.memory_bytes = (uint64_t{32} << 20) + PacketPool::memory_bytes(1152 * options.ranks);
  eal_options.telemetry = false;
  eal_options.file_prefix = "peal-bench-" + std::to_string(getpid());
  std::string error = eal.start(eal_options);
  std::unique_ptr<Bench> bench;
  if (error.empty()) {
    bench = std::make_unique<Bench>(options);
    error = bench->set_up();
  }
  if (!error.empty()) {
    std::fprintf(stderr, "peal-nic-bench: %s\n", error.c_str());
    return 1;
  }
  std::vector<TimeNs> times;
  times.reserve(options.iterations);
  for (uint32_t i = 0; i < options.iterations; i++) {
    times.push_back(bench->run_one());
    if (times.back() == 0) {
      std::fprintf(stderr, "peal-nic-bench: operation %u failed\n", i);
      return 1;
    }
  }
  std::sort(times.begin(), times.end());
  const double frames = static_cast<double>(bench->frames()) / options.iterations;
  const auto median = static_cast<double>(times[times.size() / 2]);
  std::printf(
      "%s ranks=%u bytes=%u checksums=%s: %.2f us median (%.2f min, %.2f p90), %.1f frames, "
      "%.0f ns per frame\n",
      options.algorithm.c_str(), options.ranks, options.bytes,
      options.software_checksums ? "software" : "skipped", median / 1000,
      static_cast<double>(times.front()) / 1000,
      static_cast<double>(times[times.size() * 9 / 10]) / 1000, frames,
      frames > 0 ? median / frames : 0.0);
  return 0;
}

}  // namespace
}  // namespace peal::nic

int main(int argc, char** argv) {
  peal::nic::BenchOptions options;
  namespace command_line = peal::command_line;
  command_line::App app(
      "peal-nic-bench", "peal-nic-bench [OPTIONS]",
      "Measures what a collective costs the core that all cards of a peal-nic share.");
  command_line::Group group(app);
  group.add("--ranks", options.ranks, "N", "Runs N ranks, 1 to 64, each with a card of its own.")
      .check(command_line::whole(1, 64))
      .show_default();
  group.add("--bytes", options.bytes, "N", "Gathers blocks of N bytes, 1 to 1M.")
      .check(command_line::whole(1, 1 << 20))
      .show_default();
  group.add("--iterations", options.iterations, "N", "Measures N operations.")
      .check(command_line::whole(1, 10'000'000))
      .show_default();
  group
      .add("--algorithm", options.algorithm, "NAME",
           "Runs all-to-all-broadcast, recursive-doubling, or dissemination (the barrier).")
      .check(command_line::one_of(
          peal::names::names_of(peal::names::kAlgorithms,
                                {PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST,
                                 PEAL_ALGORITHM_RECURSIVE_DOUBLING, PEAL_ALGORITHM_DISSEMINATION})))
      .show_default();
  group.add_flag("--software-checksums", options.software_checksums,
                 "Has the firmware compute CRC32C; by default nobody does.");
  if (const auto status = app.parse(argc, argv)) return *status;
  return peal::nic::run(options);
}
