// SPDX-License-Identifier: BSD-2-Clause
// What tests of point-to-point start from: a few real cards wired together, each rank with a memory
// to send from and one to receive into, and the five requests as a host posts them.
#pragma once

#include <algorithm>
#include <map>

#include "firmware/card_types.h"
#include "tests/unit/cluster_fixture.h"

namespace peal::test {

inline constexpr size_t kChunk = p2p::kChunkBytes;

class PointToPoint : public ::testing::Test {
 protected:
  static constexpr size_t kMemoryBytes = 40 * p2p::kChunkBytes;

  explicit PointToPoint(uint32_t ranks = 4, BenchOptions options = {})
      : cluster(ranks, with_tables(options)) {
    for (uint32_t rank = 0; rank < ranks; rank++) {
      CardBench& bench = cluster.bench(rank);
      from.push_back(bench.add_memory("from", kMemoryBytes));
      to.push_back(bench.add_memory("to", kMemoryBytes));
      bench.port.log_dma = false;
      uint8_t value = static_cast<uint8_t>(17 * rank + 1);
      for (uint8_t& byte : bytes_from(rank)) byte = value = static_cast<uint8_t>(value * 5 + 7);
      std::fill(bytes_to(rank).begin(), bytes_to(rank).end(), uint8_t{0xee});
    }
  }
  static BenchOptions with_tables(BenchOptions options) {
    options.tables = true;
    options.keeps_early = true;
    return options;
  }

  HostBytes& bytes_from(uint32_t rank) { return cluster.bench(rank).port.bytes(from[rank].region); }
  HostBytes& bytes_to(uint32_t rank) { return cluster.bench(rank).port.bytes(to[rank].region); }
  // What the sender has at `at` is what the receiver has there.
  bool same(uint32_t sender, size_t at, uint32_t receiver, size_t there, size_t bytes) {
    const auto begin = bytes_from(sender).begin() + static_cast<std::ptrdiff_t>(at);
    return std::equal(begin, begin + static_cast<std::ptrdiff_t>(bytes),
                      bytes_to(receiver).begin() + static_cast<std::ptrdiff_t>(there));
  }
  // Bytes of a range that nobody has written.
  size_t untouched(uint32_t rank, size_t at, size_t bytes) {
    const auto begin = bytes_to(rank).begin() + static_cast<std::ptrdiff_t>(at);
    return static_cast<size_t>(
        std::count(begin, begin + static_cast<std::ptrdiff_t>(bytes), uint8_t{0xee}));
  }

  peal_submission entry(uint32_t rank, peal_operation operation, uint32_t other, uint64_t bytes) {
    peal_submission made{};
    made.operation = static_cast<uint8_t>(operation);
    made.member = cluster.member(rank).handle();
    made.cookie = ++cookies;
    made.root = other;
    made.block_bytes = bytes;
    return made;
  }
  // Each returns its cookie.
  uint64_t post(uint32_t rank, const peal_submission& what) {
    cluster.bench(rank).submit(what);
    return what.cookie;
  }
  uint64_t send(uint32_t rank, uint32_t other, uint64_t tag, uint64_t bytes, uint64_t at = 0) {
    peal_submission made = entry(rank, PEAL_OPERATION_SEND, other, bytes);
    made.sequence = tag;
    made.send_key = from[rank].key;
    made.send_offset = at;
    return post(rank, made);
  }
  uint64_t receive(uint32_t rank, uint32_t other, uint64_t tag, uint64_t bytes, uint64_t at = 0,
                   bool any = false) {
    peal_submission made = entry(rank, PEAL_OPERATION_RECEIVE, other, bytes);
    made.sequence = tag;
    made.receive_key = to[rank].key;
    made.receive_offset = at;
    made.flags = any ? PEAL_SUBMIT_ANY_TAG : 0;
    return post(rank, made);
  }
  uint64_t put(uint32_t rank, uint32_t other, uint64_t bytes, uint64_t at = 0, uint64_t there = 0) {
    peal_submission made = entry(rank, PEAL_OPERATION_PUT, other, bytes);
    made.send_key = from[rank].key;
    made.send_offset = at;
    made.receive_key = to[other].key;
    made.receive_offset = there;
    return post(rank, made);
  }
  uint64_t get(uint32_t rank, uint32_t other, uint64_t bytes, uint64_t at = 0, uint64_t there = 0) {
    peal_submission made = entry(rank, PEAL_OPERATION_GET, other, bytes);
    made.send_key = from[other].key;
    made.send_offset = there;
    made.receive_key = to[rank].key;
    made.receive_offset = at;
    return post(rank, made);
  }
  uint64_t fence(uint32_t rank, uint32_t other) {
    return post(rank, entry(rank, PEAL_OPERATION_FENCE, other, 0));
  }

  // How the request of this cookie ended; "" if it has not.
  std::string ended(uint32_t rank, uint64_t cookie) {
    for (const Completion& each : cluster.completions(rank)) {
      if (each.cookie == cookie) return status_text(each.status);
    }
    return "";
  }
  const Completion* completion(uint32_t rank, uint64_t cookie) {
    for (const Completion& each : cluster.completions(rank)) {
      if (each.cookie == cookie) return &each;
    }
    return nullptr;
  }
  bool run_until_ended(uint32_t rank, uint64_t cookie, TimeNs limit_ns = 10'000'000'000) {
    return cluster.run_until([&] { return ended(rank, cookie) != ""; }, limit_ns);
  }
  // All so many requests of all ranks are over.
  bool run_until_all_ended(size_t requests, TimeNs limit_ns = 10'000'000'000) {
    return cluster.run_until(
        [&] {
          size_t count = 0;
          for (uint32_t rank = 0; rank < cluster.ranks(); rank++)
            count += cluster.completions(rank).size();
          return count >= requests;
        },
        limit_ns);
  }
  // Every connection is given back in the end, and nothing is kept.
  void expect_quiet() {
    EXPECT_TRUE(cluster.run_until(
        [&] {
          return cluster.total(PEAL_COUNTER_CONNECTIONS_OPENED) ==
                 cluster.total(PEAL_COUNTER_CONNECTIONS_CLOSED);
        },
        10'000'000'000));
    for (uint32_t rank = 0; rank < cluster.ranks(); rank++) {
      const p2p::State& state = cluster.bench(rank).card().p2p;
      EXPECT_EQ(state.connections_used, 0u) << rank;
      EXPECT_EQ(state.requests_used, 0u) << rank;
      EXPECT_EQ(state.tokens_used, 0u) << rank;
      EXPECT_EQ(state.with_tokens, 0u) << rank;
      EXPECT_EQ(state.reads, 0u) << rank;
    }
    EXPECT_EQ(cluster.problems(), "");
  }

  Cluster cluster;
  std::vector<Memory> from;
  std::vector<Memory> to;
  uint64_t cookies = 1000;
};

}  // namespace peal::test
