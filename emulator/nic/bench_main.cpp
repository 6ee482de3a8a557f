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
#include "firmware/channels.h"

namespace peal::nic {
namespace {

struct BenchOptions {
  uint32_t ranks = 8;
  uint32_t bytes = 1024;
  uint32_t iterations = 20000;
  std::string operation = "allgather";
  std::string algorithm;  // empty: the operation's usual one
  bool software_checksums = false;
};

struct Usual {
  peal_operation operation;
  peal_algorithm algorithm;
};
constexpr Usual kUsual[] = {
    {PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION},
    {PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_DIRECT},
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

  // With so much memory for buffers, behind which lie the addresses of all ranks.
  bool open(uint64_t buffer_bytes, uint32_t ranks, uint32_t rank) {
    addresses_offset_ = buffer_bytes;
    peal_admin_command command = make(PEAL_ADMIN_OPEN_CONTEXT);
    if (!run(command, emulator::kNoContext)) return false;
    context_ = reply_.u.open.context;
    command = make(PEAL_ADMIN_REGISTER_MEMORY);
    command.u.register_memory.kind = PEAL_MEMORY_ALLOCATE;
    command.u.register_memory.access = PEAL_ACCESS_READ | PEAL_ACCESS_WRITE;
    command.u.register_memory.bytes = buffer_bytes + ranks * sizeof(peal_peer_address);
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
    connect.addresses_key = key;
    connect.addresses_offset = addresses_offset_;
    for (uint32_t i = 0; i < ranks; i++)
      std::memcpy(memory + addresses_offset_ + i * sizeof(address), &all[i]->address,
                  sizeof(address));
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
    *region = runner.host().regions->put_mapped(map(kChannelsBytes), kChannelsBytes, {});
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
  uint64_t addresses_offset_ = 0;
};

class Bench {
 public:
  Bench(const BenchOptions& options, const Usual& what)
      : options_(options),
        switch_(pool_, SwitchOptions{}),
        receive_offset_(uint64_t{options.bytes} * options.ranks) {
    entry_.operation = static_cast<uint8_t>(what.operation);
    entry_.algorithm = static_cast<uint8_t>(what.algorithm);
    if (what.operation != PEAL_OPERATION_BARRIER) entry_.block_bytes = options.bytes;
  }

  std::string set_up() {
    if (std::string error = pool_.create(1024 * options_.ranks, options_.ranks); !error.empty())
      return error;
    if (std::string error = switch_.create(options_.ranks); !error.empty()) return error;
    const Checksums checksums =
        options_.software_checksums ? Checksums::kSoftware : Checksums::kSkipped;
    const uint64_t buffers = 2 * uint64_t{options_.bytes} * options_.ranks;
    for (uint32_t i = 0; i < options_.ranks; i++) {
      ranks_.push_back(std::make_unique<Rank>(i, pool_, switch_, copies_, checksums));
      if (!ranks_.back()->open((buffers + 63) & ~uint64_t{63}, options_.ranks, i))
        return "cannot open a rank";
    }
    for (uint32_t i = 0; i < options_.ranks; i++) {
      if (!ranks_[i]->connect(ranks_, i)) return "cannot connect the group";
      for (uint32_t to = 0; to < options_.ranks; to++)
        std::memset(ranks_[i]->memory + uint64_t{to} * options_.bytes, pattern(i, to),
                    options_.bytes);
    }
    return {};
  }

  // Nanoseconds of card core for one operation of all ranks; 0 when it failed.
  TimeNs run_one() {
    peal_submission entry = entry_;
    entry.sequence = sequence_++;
    const bool moves = entry.operation != PEAL_OPERATION_BARRIER;
    const bool rooted = entry.operation == PEAL_OPERATION_BROADCAST;
    for (const auto& rank : ranks_) {
      const bool is_root = rank == ranks_.front();
      entry.member = rank->address.member;
      entry.send_key = moves && (!rooted || is_root) ? rank->key : 0;
      entry.receive_key = moves && (!rooted || !is_root) ? rank->key : 0;
      entry.receive_offset = entry.receive_key != 0 ? receive_offset_ : 0;
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

  // Has every rank what the others gave?
  [[nodiscard]] bool is_right() const {
    if (entry_.operation == PEAL_OPERATION_BARRIER) return true;
    const bool rooted = entry_.operation == PEAL_OPERATION_BROADCAST;
    const bool to_each = entry_.operation == PEAL_OPERATION_ALLTOALL;
    for (uint32_t to = rooted ? 1 : 0; to < ranks_.size(); to++) {
      const uint8_t* const result = ranks_[to]->memory + receive_offset_;
      for (uint32_t from = 0; from < (rooted ? 1 : ranks_.size()); from++) {
        const uint8_t* const block = result + uint64_t{from} * options_.bytes;
        if (std::count(block, block + options_.bytes, pattern(from, to_each ? to : 0)) !=
            options_.bytes)
          return false;
      }
    }
    return true;
  }

 private:
  // Bytes of the block that a rank has for another one; what it has for all is that for rank 0.
  static uint8_t pattern(uint32_t from, uint32_t to) {
    return static_cast<uint8_t>(from * 37 + to * 11 + 1);
  }

  BenchOptions options_;
  TscClock clock_;
  PacketPool pool_;
  FrameSwitch switch_;
  emulator::HostCopies copies_{emulator::last_cache_bytes()};
  std::vector<std::unique_ptr<Rank>> ranks_;
  peal_submission entry_{};
  uint64_t receive_offset_;
  uint64_t sequence_ = 0;
};

// By the usual algorithm, or the one that was asked for.
Usual operation_of(const BenchOptions& options) {
  const uint8_t operation = *names::value_of(names::kOperations, options.operation);
  Usual what = *std::find_if(std::begin(kUsual), std::end(kUsual),
                             [&](const Usual& each) { return each.operation == operation; });
  if (!options.algorithm.empty())
    what.algorithm =
        static_cast<peal_algorithm>(*names::value_of(names::kAlgorithms, options.algorithm));
  return what;
}

int run(const BenchOptions& options) {
  Eal eal;
  EalOptions eal_options;
  eal_options.memory_bytes = (uint64_t{32} << 20) + PacketPool::memory_bytes(1152 * options.ranks);
  eal_options.telemetry = false;
  eal_options.file_prefix = "peal-bench-" + std::to_string(getpid());
  std::string error = eal.start(eal_options);
  std::unique_ptr<Bench> bench;
  if (error.empty()) {
    bench = std::make_unique<Bench>(options, operation_of(options));
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
  if (!bench->is_right()) {
    std::fprintf(stderr, "peal-nic-bench: a result is wrong\n");
    return 1;
  }
  std::sort(times.begin(), times.end());
  const double frames = static_cast<double>(bench->frames()) / options.iterations;
  const auto median = static_cast<double>(times[times.size() / 2]);
  std::printf(
      "%s %s ranks=%u bytes=%u checksums=%s: %.2f us median (%.2f min, %.2f p90), %.1f frames, "
      "%.0f ns per frame\n",
      options.operation.c_str(), names::algorithm(operation_of(options).algorithm).c_str(),
      options.ranks, options.bytes, options.software_checksums ? "software" : "skipped",
      median / 1000, static_cast<double>(times.front()) / 1000,
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
  group.add("--bytes", options.bytes, "N", "Moves blocks of N bytes, 1 to 1M.")
      .check(command_line::whole(1, 1 << 20))
      .show_default();
  group.add("--iterations", options.iterations, "N", "Measures N operations.")
      .check(command_line::whole(1, 10'000'000))
      .show_default();
  std::vector<std::string> operations;
  for (const peal::nic::Usual& each : peal::nic::kUsual)
    operations.push_back(peal::names::operation(each.operation));
  group
      .add("--operation", options.operation, "NAME",
           "Runs " + peal::names::list_of(operations) + ".")
      .check(command_line::one_of(operations))
      .show_default();
  group
      .add("--algorithm", options.algorithm, "NAME",
           "Runs it by this algorithm; by default by dissemination, binomial, all-to-all-broadcast "
           "or direct.")
      .check(command_line::one_of(peal::names::names_of(
          peal::names::kAlgorithms,
          {PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, PEAL_ALGORITHM_RECURSIVE_DOUBLING,
           PEAL_ALGORITHM_RING, PEAL_ALGORITHM_DIRECT, PEAL_ALGORITHM_BRUCK})));
  group.add_flag("--software-checksums", options.software_checksums,
                 "Has the firmware compute CRC32C; by default nobody does.");
  if (const auto status = app.parse(argc, argv)) return *status;
  return peal::nic::run(options);
}
