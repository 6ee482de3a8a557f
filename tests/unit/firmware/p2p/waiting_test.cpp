// SPDX-License-Identifier: BSD-2-Clause
// More ranks want to talk than there are connections: nobody starves, and by how much at most one
// waits for the others.
#include "firmware/p2p/waiting.h"

#include "tests/unit/firmware/p2p/p2p_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kRanks = 12;
constexpr uint32_t kFew = 4;
static_assert(kRanks - 1 > 2 * kFew && kRanks - 1 <= p2p::kWaiters && kFew <= p2p::kConnections);

class ManyRanks : public PointToPoint {
 protected:
  // Of the cards' connections all but a few are used by others.
  ManyRanks() : PointToPoint(kRanks) {
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      p2p::State& state = cluster.bench(rank).card().p2p;
      state.connections_used = p2p::kConnections - kFew;
      state.with_tokens = p2p::kConnections / 2 - kFew / 2;
    }
  }
  void TearDown() override {
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      p2p::State& state = cluster.bench(rank).card().p2p;
      state.connections_used =
          static_cast<uint16_t>(state.connections_used - (p2p::kConnections - kFew));
      state.with_tokens =
          static_cast<uint16_t>(state.with_tokens - (p2p::kConnections / 2 - kFew / 2));
    }
    cluster.fate = nullptr;
    expect_quiet();
  }

  // While a rank has something to send: most packets of others between two of its own.
  uint32_t longest_wait(uint32_t rank, size_t packets) {
    uint32_t longest = 0;
    uint32_t others = 0;
    size_t left = packets;
    for (const Frame& frame : cluster.trace()) {
      if (frame.header.type != PEAL_PACKET_PUT || left == 0) continue;
      if (frame.header.sender != rank) {
        others++;
        continue;
      }
      longest = std::max(longest, others);
      others = 0;
      left--;
    }
    return longest;
  }
};

TEST_F(ManyRanks, WhoWaitsIsServedAfterATurnOfEachOther) {
  constexpr uint32_t kPuts = 4;
  constexpr uint32_t kPackets = 30;
  for (uint32_t rank = 1; rank < kRanks; rank++) {
    for (uint32_t i = 0; i < kPuts; i++) (void)put(rank, 0, kPackets * kChunk);
  }
  ASSERT_TRUE(run_until_all_ended((kRanks - 1) * kPuts));
  for (uint32_t rank = 1; rank < kRanks; rank++) {
    for (const Completion& each : cluster.completions(rank)) {
      EXPECT_EQ(status_text(each.status), "OK");
    }
    // A turn ends when what is under way is acknowledged, and with it what leaves before the CLOSE
    // has come: two windows more at most. A second one have those alone who had another connection
    // when this rank's was closed.
    EXPECT_LE(longest_wait(rank, kPuts * kPackets),
              (kRanks - 2 + kFew - 1) * (p2p::kTurnPackets + 2 * p2p::kWindow))
        << rank;
  }
  EXPECT_GT(cluster.bench(0).counter(PEAL_COUNTER_CONNECTIONS_TAKEN_AWAY), 0u);
  EXPECT_GT(cluster.bench(0).counter(PEAL_COUNTER_NO_CONNECTION), 0u);
  EXPECT_EQ(cluster.total(PEAL_COUNTER_DROP_NO_CONNECTION), 0u);
}

TEST_F(ManyRanks, OneTalksToAllThoughItHasFewConnections) {
  size_t posted = 0;
  for (uint32_t i = 0; i < 2; i++) {
    for (uint32_t rank = 1; rank < kRanks; rank++, posted++) {
      (void)put(0, rank, 3 * kChunk, rank * 16);
    }
  }
  ASSERT_TRUE(run_until_all_ended(posted));
  for (uint32_t rank = 1; rank < kRanks; rank++) {
    EXPECT_TRUE(same(0, rank * 16, rank, 0, 3 * kChunk)) << rank;
  }
  EXPECT_GT(cluster.bench(0).counter(PEAL_COUNTER_CONNECTIONS_CLOSED), 0u);
}

// All ranks' messages come before their receives, and those are posted in the order that suits
// least.
TEST_F(ManyRanks, MessagesWithoutReceivesDoNotKeepOthersOut) {
  size_t posted = 0;
  for (uint32_t rank = 1; rank < kRanks; rank++) {
    for (uint32_t i = 0; i < 2; i++, posted++) (void)send(rank, 0, i, 64 + 900 * i, rank * 32);
  }
  ASSERT_FALSE(cluster.run_until([] { return false; }, 200'000'000));
  for (uint32_t rank = kRanks - 1; rank >= 1; rank--) {
    for (uint32_t i = 2; i-- > 0;) {
      const uint64_t cookie = receive(0, rank, i, 64 + 900 * i, (rank * 2 + i) * 1024);
      posted++;
      ASSERT_TRUE(run_until_ended(0, cookie)) << rank << " " << i;
      EXPECT_EQ(ended(0, cookie), "OK");
      EXPECT_TRUE(same(rank, rank * 32, 0, (rank * 2 + i) * 1024, 64 + 900 * i)) << rank;
    }
  }
  ASSERT_TRUE(run_until_all_ended(posted));
}

// Nor does it keep them from the message that is wanted first, which stands behind more than may be
// announced: it is sought in each life of their connections.
TEST_F(ManyRanks, MessagesAreFoundBehindOthersThoughConnectionsAreShort) {
  constexpr uint64_t kOthers = p2p::kPlaces + 2;
  size_t posted = 0;
  for (uint32_t rank = 1; rank < kRanks; rank++) {
    for (uint64_t i = 0; i <= kOthers; i++, posted++) {
      (void)send(rank, 0, i == kOthers ? 2 : 1, 32, rank * 32 + i);
    }
  }
  ASSERT_FALSE(cluster.run_until([] { return false; }, 200'000'000));
  for (uint32_t rank = kRanks - 1; rank >= 1; rank--, posted++) {
    const uint64_t cookie = receive(0, rank, 2, 32, rank * 32);
    ASSERT_TRUE(run_until_ended(0, cookie)) << rank;
    EXPECT_TRUE(same(rank, rank * 32 + kOthers, 0, rank * 32, 32)) << rank;
  }
  for (uint32_t rank = 1; rank < kRanks; rank++) {
    for (uint64_t i = 0; i < kOthers; i++, posted++) {
      const uint64_t cookie = receive(0, rank, 1, 32, 0);
      ASSERT_TRUE(run_until_ended(0, cookie)) << rank << " " << i;
      EXPECT_TRUE(same(rank, rank * 32 + i, 0, 0, 32)) << rank << " " << i;
    }
  }
  ASSERT_TRUE(run_until_all_ended(posted));
}

TEST_F(ManyRanks, OnABadWireAllTalkToAll) {
  for (uint32_t seed = 1; seed <= 6; seed++) {
    Random random(seed);
    cluster.fate = bad_wire(random);
    size_t before = 0;
    for (uint32_t rank = 0; rank < kRanks; rank++) before += cluster.completions(rank).size();
    size_t posted = 0;
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      (void)get(rank, (rank + 5) % kRanks, 3 * kChunk, 0, seed * 8);
      (void)put(rank, (rank + 7) % kRanks, 2 * kChunk, seed * 8, 3 * kChunk);
      (void)send(rank, (rank + 3) % kRanks, seed, 100 * seed, seed);
      (void)receive(rank, (rank + kRanks - 3) % kRanks, seed, 100 * seed, 6 * kChunk);
      posted += 4;
    }
    ASSERT_TRUE(run_until_all_ended(before + posted)) << seed;
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      EXPECT_TRUE(same((rank + 5) % kRanks, seed * 8, rank, 0, 3 * kChunk));
      EXPECT_TRUE(same(rank, seed * 8, (rank + 7) % kRanks, 3 * kChunk, 2 * kChunk));
      EXPECT_TRUE(same((rank + kRanks - 3) % kRanks, seed, rank, 6 * kChunk, 100 * seed));
    }
  }
}

}  // namespace
}  // namespace peal::test
