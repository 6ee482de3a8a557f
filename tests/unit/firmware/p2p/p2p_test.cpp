// SPDX-License-Identifier: BSD-2-Clause
// The five requests over real cards: what is where at the end, on a good wire and on a bad one.
#include "firmware/p2p/p2p.h"

#include "tests/unit/firmware/p2p/p2p_fixture.h"

namespace peal::test {
namespace {

TEST_F(PointToPoint, APutIsInMemoryAtItsOwnerWhenItIsOver) {
  const uint64_t cookie = put(0, 1, 3 * kChunk + 5, 64, 128);
  ASSERT_TRUE(run_until_ended(0, cookie));
  EXPECT_EQ(ended(0, cookie), "OK");
  EXPECT_EQ(completion(0, cookie)->bytes, 3 * kChunk + 5);
  EXPECT_TRUE(same(0, 64, 1, 128, 3 * kChunk + 5));
  EXPECT_EQ(untouched(1, 0, 128), 128u);
  EXPECT_EQ(untouched(1, 128 + 3 * kChunk + 5, 64), 64u);
  expect_quiet();
}

TEST_F(PointToPoint, AGetBringsWhatItsOwnerHas) {
  const uint64_t cookie = get(2, 1, 2 * kChunk + 1, 32, 96);
  ASSERT_TRUE(run_until_ended(2, cookie));
  EXPECT_EQ(ended(2, cookie), "OK");
  EXPECT_TRUE(same(1, 96, 2, 32, 2 * kChunk + 1));
  EXPECT_EQ(untouched(2, 0, 32), 32u);
  expect_quiet();
}

TEST_F(PointToPoint, AMessageFindsItsReceiveWhicheverComesFirst) {
  for (const size_t bytes : {size_t{0}, size_t{7}, kChunk, kChunk + 1, 9 * kChunk}) {
    const uint64_t early = send(0, 1, 5, bytes, 11);
    cluster.settle();
    const uint64_t its = receive(1, 0, 5, bytes, 3);
    ASSERT_TRUE(run_until_ended(1, its)) << bytes;
    ASSERT_TRUE(run_until_ended(0, early)) << bytes;
    EXPECT_EQ(ended(0, early) + ended(1, its), "OKOK");
    EXPECT_EQ(completion(1, its)->bytes, bytes);
    EXPECT_EQ(completion(1, its)->tag, 5u);
    EXPECT_TRUE(same(0, 11, 1, 3, bytes)) << bytes;
    const uint64_t posted = receive(2, 3, 6, bytes);
    cluster.settle();
    const uint64_t late = send(3, 2, 6, bytes);
    ASSERT_TRUE(run_until_ended(2, posted)) << bytes;
    ASSERT_TRUE(run_until_ended(3, late)) << bytes;
    EXPECT_TRUE(same(3, 0, 2, 0, bytes)) << bytes;
  }
  expect_quiet();
}

TEST_F(PointToPoint, ARankTalksToItself) {
  const uint64_t sent = send(1, 1, 9, 2 * kChunk);
  const uint64_t got = receive(1, 1, 9, 2 * kChunk);
  const uint64_t gotten = get(1, 1, 33, 4 * kChunk);
  ASSERT_TRUE(run_until_all_ended(3));
  EXPECT_EQ(ended(1, sent) + ended(1, got) + ended(1, gotten), "OKOKOK");
  EXPECT_TRUE(same(1, 0, 1, 0, 2 * kChunk));
  EXPECT_TRUE(same(1, 0, 1, 4 * kChunk, 33));
  expect_quiet();
}

TEST_F(PointToPoint, AFenceIsOverWhenAllPutsBeforeItAre) {
  const uint64_t none = fence(0, PEAL_NO_RANK);
  cluster.settle();
  EXPECT_EQ(ended(0, none), "OK");
  const uint64_t first = put(0, 1, 20 * kChunk);
  const uint64_t second = put(0, 2, 2 * kChunk);
  const uint64_t of_one = fence(0, 2);
  const uint64_t of_all = fence(0, PEAL_NO_RANK);
  ASSERT_TRUE(run_until_ended(0, of_all));
  std::vector<uint64_t> order;
  for (const Completion& each : cluster.completions(0)) order.push_back(each.cookie);
  EXPECT_EQ(order, (std::vector<uint64_t>{none, second, of_one, first, of_all}));
  expect_quiet();
}

// A tenth of all frames is lost, a tenth comes twice; in the other half of the seeds some DMA is
// refused as well.
class OnABadWire : public PointToPoint, public testing::WithParamInterface<uint32_t> {};

TEST_P(OnABadWire, AllArrivesOnceAndInOrder) {
  Random random(GetParam());
  cluster.fate = bad_wire(random);
  constexpr size_t kEach = 2 * kChunk + 33;
  size_t posted = 0;
  for (uint32_t round = 0; round < 6; round++) {
    for (uint32_t rank = 0; rank < 4; rank++) {
      const uint32_t other = (rank + 1 + round % 4) % 4;
      const uint32_t source = (rank + 3 * (1 + round % 4)) % 4;
      const size_t bytes = round % 2 == 0 ? kEach : 100;
      (void)send(rank, other, round, bytes, round * kEach);
      (void)receive(rank, source, round, bytes, round * kEach);
      posted += 2;
    }
    if (GetParam() % 2 == 1) {
      cluster.bench(round % 4).port.refuse_dmas = {2, 3};
      cluster.bench((round + 1) % 4).port.fail_allocations = {3, 4};
    }
    ASSERT_TRUE(run_until_all_ended(posted));
  }
  expect_all(cluster, 12, "OK");
  for (uint32_t round = 0; round < 6; round++) {
    const size_t bytes = round % 2 == 0 ? kEach : 100;
    for (uint32_t rank = 0; rank < 4; rank++) {
      const uint32_t source = (rank + 3 * (1 + round % 4)) % 4;
      EXPECT_TRUE(same(source, round * kEach, rank, round * kEach, bytes)) << rank << " " << round;
    }
  }
  expect_quiet();
}

INSTANTIATE_TEST_SUITE_P(Seeds, OnABadWire, testing::Range(1u, 41u));

}  // namespace
}  // namespace peal::test
