// SPDX-License-Identifier: BSD-2-Clause
// A few real cards that carry out all-to-alls by one algorithm.
#pragma once

#include <cstring>

#include "tests/unit/cluster_fixture.h"

namespace peal::test {

class AlltoallCluster : public Cluster {
 public:
  AlltoallCluster(peal_algorithm algorithm, uint32_t ranks, BenchOptions options = {})
      : Cluster(ranks, with_tables(algorithm, options)) {
    alltoall_algorithm = algorithm;
  }

  void post_all(uint64_t sequence, size_t block, bool in_place = false) {
    for (uint32_t rank = 0; rank < ranks(); rank++) alltoall(rank, sequence, block, in_place);
  }
  void post_all_but(uint32_t left_out, size_t block) {
    for (uint32_t rank = 0; rank < ranks(); rank++) {
      if (rank != left_out) alltoall(rank, 0, block);
    }
  }
  void expect_right(uint64_t sequence, size_t block) {
    for (uint32_t rank = 0; rank < ranks(); rank++)
      ASSERT_EQ(check_alltoall(rank, sequence, block), "") << "blocks of " << block;
  }
  // The only operation of these ranks has ended, and names the dead one.
  void expect_dead(uint32_t dead, const std::vector<uint32_t>& told) {
    for (const uint32_t rank : told) {
      ASSERT_EQ(completions(rank).size(), 1u) << "rank " << rank;
      EXPECT_EQ(status_text(completions(rank)[0].status), "PEER_DEAD") << "rank " << rank;
      EXPECT_EQ(completions(rank)[0].failed_rank, dead) << "rank " << rank;
    }
    EXPECT_EQ(problems(), "");
  }
  [[nodiscard]] bool is_to(const Frame& frame, uint32_t rank) const {
    return std::memcmp(frame.header.destination, member(rank).address.mac, PEAL_MAC_BYTES) == 0;
  }

 private:
  static BenchOptions with_tables(peal_algorithm algorithm, BenchOptions options) {
    options.tables = algorithm == PEAL_ALGORITHM_DIRECT;
    return options;
  }
};

}  // namespace peal::test
