// SPDX-License-Identifier: BSD-2-Clause
// What tests of a few real cards wired together start from: a bad wire, and how all must end.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/cluster.h"

namespace peal::test {

class Random {  // xorshift; a seed means the same everywhere
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint32_t below(uint32_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint32_t>((state_ >> 33) % limit);
  }

 private:
  uint64_t state_;
};

// A tenth of the frames are lost, a tenth come twice.
inline std::function<uint32_t(const Frame&)> bad_wire(Random& random) {
  return [&random](const Frame&) -> uint32_t {
    const uint32_t draw = random.below(10);
    return draw == 0 ? 0 : draw == 1 ? 2 : 1;
  };
}

// One frame of so many is lost.
inline std::function<uint32_t(const Frame&)> lossy_wire(Random& random, uint32_t frames) {
  return [&random, frames](const Frame&) -> uint32_t { return random.below(frames) == 0 ? 0 : 1; };
}

// So many operations have ended like that on every rank, each once.
inline void expect_all(Cluster& cluster, size_t count, const std::string& status) {
  for (uint32_t rank = 0; rank < cluster.ranks(); rank++) {
    ASSERT_EQ(cluster.completions(rank).size(), count) << "rank " << rank;
    std::set<uint64_t> cookies;
    for (const Completion& completion : cluster.completions(rank)) {
      EXPECT_EQ(status_text(completion.status), status) << "rank " << rank;
      EXPECT_TRUE(cookies.insert(completion.cookie).second) << "completed twice";
    }
  }
  EXPECT_EQ(cluster.problems(), "");
}

// K deep: at most so many are outstanding that every buffer slot is free when it comes round.
// post(rank, sequence) has each rank post an operation.
template <typename Post>
void run_operations(Cluster& cluster, uint64_t operations, Post post) {
  for (uint64_t sequence = 0; sequence < operations; sequence++) {
    for (uint32_t rank = 0; rank < cluster.ranks(); rank++) post(rank, sequence);
    if (sequence + 1 < CONFIG_CHANNELS) continue;
    const uint64_t done = sequence + 2 - CONFIG_CHANNELS;
    ASSERT_TRUE(cluster.run_until_completions(done)) << "sequence " << done;
  }
  ASSERT_TRUE(cluster.run_until_completions(operations));
  expect_all(cluster, operations, "OK");
}

}  // namespace peal::test
