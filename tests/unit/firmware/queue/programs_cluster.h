// SPDX-License-Identifier: BSD-2-Clause
// Whole programs on a few real cards, over point-to-point.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "firmware/card_types.h"
#include "hostlib/program_collectives.h"
#include "tests/support/pattern.h"
#include "tests/unit/cluster_fixture.h"

namespace peal::test {

using host::Program;

// A program a rank, or two, over one buffer of `bytes` that is read and one that is written.
class Programs {
 public:
  struct Place {
    uint32_t rank;
    void* send;
    void* receive;
    const std::vector<Program::Remote>& receives;  // of all
  };
  using Make = std::function<Program(const Place&)>;

  Programs(uint32_t ranks, size_t bytes, const Make& make, const Make& make_second = nullptr)
      : cluster(ranks, with_tables()) {
    cluster.scribble_at_completion = false;
    for (uint32_t rank = 0; rank < ranks; rank++) {
      sends.push_back(cluster.bench(rank).add_memory("send", bytes));
      receives.push_back(cluster.bench(rank).add_memory("receive", bytes));
      remotes.push_back({.key = receives.back().key, .offset = 0});
      clear(rank);
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
      const Place place = {rank, send(rank).data(), receive(rank).data(), remotes};
      handles.push_back(commit(rank, make(place), kName));
      if (make_second) seconds.push_back(commit(rank, make_second(place), kSecondName));
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
      start(rank, 0, 0);
      if (make_second) start_second(rank, 0, 0);
    }
    looked_at = cluster.run_until_completions(make_second ? 2 : 1);
  }

  HostBytes& send(uint32_t rank) { return cluster.bench(rank).port.bytes(sends[rank].region); }
  HostBytes& receive(uint32_t rank) {
    return cluster.bench(rank).port.bytes(receives[rank].region);
  }
  void clear(uint32_t rank) {
    std::fill(receive(rank).begin(), receive(rank).end(), uint8_t{0xee});
  }
  void start(uint32_t rank, uint64_t iteration, uint64_t passes = 1) {
    post(rank, handles[rank], iteration, passes, cookie_of(iteration, passes));
  }
  void start_second(uint32_t rank, uint64_t iteration, uint64_t passes = 1) {
    post(rank, seconds[rank], iteration, passes, cookie_of_second(iteration, passes));
  }
  static uint64_t cookie_of(uint64_t iteration, uint64_t passes = 1) {
    return 1000 + 2 * iteration + (passes > 0 ? 1 : 0);
  }
  static uint64_t cookie_of_second(uint64_t iteration, uint64_t passes = 1) {
    return 5000 + cookie_of(iteration, passes);
  }
  void start_all(uint64_t iteration, uint64_t passes = 1) {
    for (uint32_t rank = 0; rank < cluster.ranks(); rank++) start(rank, iteration, passes);
  }
  // How that start ended on that rank; null: not yet.
  const Completion* end_of(uint32_t rank, uint64_t cookie) {
    for (const Completion& completion : cluster.completions(rank)) {
      if (completion.cookie == cookie) return &completion;
    }
    return nullptr;
  }
  // Posted puts are over before they are acknowledged.
  void keep_posted() {
    for (uint32_t rank = 0; rank < cluster.ranks(); rank++) {
      cluster.bench(rank).card().p2p.kept_most = 4;
    }
  }
  // Until all that was posted is acknowledged.
  void rest() {
    (void)cluster.run_until([] { return false; }, 100'000'000);
  }
  std::string problems() {
    rest();
    return cluster.problems();
  }
  // All ranks' starts so far, the look at the program included.
  void expect_good(size_t starts) {
    ASSERT_TRUE(cluster.run_until_completions(starts + 1));
    expect_all(cluster, starts + 1, "OK");
  }

  Cluster cluster;
  std::vector<Memory> sends;
  std::vector<Memory> receives;
  std::vector<Program::Remote> remotes;
  std::vector<uint32_t> handles;
  std::vector<uint32_t> seconds;
  bool looked_at = false;

  static constexpr uint16_t kName = 3;
  static constexpr uint16_t kSecondName = 4;

 private:
  void post(uint32_t rank, uint32_t handle, uint64_t iteration, uint64_t passes, uint64_t cookie) {
    peal_submission entry{};
    entry.operation = PEAL_OPERATION_START;
    entry.member = cluster.member(rank).handle();
    entry.sequence = iteration;
    entry.cookie = cookie;
    entry.send_key = handle;
    entry.block_bytes = passes;
    cluster.bench(rank).submit(entry);
  }
  static BenchOptions with_tables() {
    BenchOptions options;
    options.tables = true;
    return options;
  }
  bool find(uint32_t rank, const void* memory, uint64_t bytes, uint32_t* key, uint64_t* offset) {
    const auto* at = static_cast<const uint8_t*>(memory);
    for (const Memory& known : {sends[rank], receives[rank]}) {
      const auto& region = cluster.bench(rank).port.bytes(known.region);
      if (at < region.data() || at + bytes > region.data() + region.size()) continue;
      *key = known.key;
      *offset = static_cast<uint64_t>(at - region.data());
      return true;
    }
    return false;
  }
  uint32_t commit(uint32_t rank, Program program, uint16_t name) {
    program.set_name(name);
    CardBench& bench = cluster.bench(rank);
    const Memory memory = bench.add_memory("program", program.bytes(), PEAL_ACCESS_READ);
    const auto known = [&](const void* own, uint64_t bytes, bool, uint32_t* key, uint64_t* offset) {
      return find(rank, own, bytes, key, offset);
    };
    uint32_t bad = 0;
    EXPECT_TRUE(program.encode(known, bench.port.bytes(memory.region).data(), &bad)) << bad;
    peal_commit_program request{};
    request.member = cluster.member(rank).handle();
    request.key = memory.key;
    request.count = program.count();
    request.counters = static_cast<uint32_t>(program.sources().size());
    request.scheduled = program.shape().scheduled;
    request.name = name;
    request.mode = program.mode();
    peal_commit_program_reply reply{};
    EXPECT_EQ(card_commit_program(bench.card(), bench.context(), request, &reply), PEAL_STATUS_OK);
    EXPECT_EQ(reply.starts, CONFIG_QUEUE_STARTS);
    return reply.program;
  }
};

}  // namespace peal::test
