// SPDX-License-Identifier: BSD-2-Clause
// Which receive takes which message, and what becomes of those that do not fit.
#include "firmware/p2p/matching.h"

#include "tests/unit/firmware/p2p/p2p_fixture.h"

namespace peal::test {
namespace {

TEST_F(PointToPoint, TagsChooseAndOrderDecides) {
  (void)send(0, 1, 1, 10, 100);
  (void)send(0, 1, 2, 20, 200);
  (void)send(0, 1, 1, 30, 300);
  cluster.settle();
  const uint64_t second = receive(1, 0, 2, 64, 0);
  const uint64_t first = receive(1, 0, 1, 64, 64);
  const uint64_t any = receive(1, 0, 0, 64, 128, true);
  ASSERT_TRUE(run_until_all_ended(6));
  EXPECT_EQ(completion(1, second)->bytes, 20u);
  EXPECT_EQ(completion(1, first)->bytes, 10u);
  EXPECT_EQ(completion(1, any)->bytes, 30u);
  EXPECT_EQ(completion(1, any)->tag, 1u);
  EXPECT_TRUE(same(0, 200, 1, 0, 20));
  EXPECT_TRUE(same(0, 100, 1, 64, 10));
  EXPECT_TRUE(same(0, 300, 1, 128, 30));
  expect_quiet();
}

TEST_F(PointToPoint, PostedReceivesAreTakenInTheirOrder) {
  const uint64_t any = receive(1, 0, 0, 64, 0, true);
  const uint64_t of_tag = receive(1, 0, 7, 64, 64);
  const uint64_t of_another = receive(1, 2, 7, 64, 128);
  (void)send(0, 1, 7, 5, 10);
  (void)send(0, 1, 7, 6, 20);
  (void)send(2, 1, 7, 7, 30);
  ASSERT_TRUE(run_until_all_ended(6));
  EXPECT_EQ(completion(1, any)->bytes, 5u);
  EXPECT_EQ(completion(1, of_tag)->bytes, 6u);
  EXPECT_EQ(completion(1, of_another)->bytes, 7u);
  expect_quiet();
}

TEST_F(PointToPoint, ALongerMessageIsTruncatedOnBothSides) {
  for (const size_t bytes : {size_t{100}, 5 * kChunk}) {
    const uint64_t sent = send(0, 1, 1, bytes);
    const uint64_t got = receive(1, 0, 1, bytes - 1);
    const uint64_t next = send(0, 1, 2, 50);
    const uint64_t its = receive(1, 0, 2, 50, 512);
    ASSERT_TRUE(run_until_ended(0, next));
    ASSERT_TRUE(run_until_ended(1, its));
    EXPECT_EQ(ended(0, sent), "TRUNCATED");
    EXPECT_EQ(ended(1, got), "TRUNCATED");
    EXPECT_EQ(completion(1, got)->bytes, bytes);
    EXPECT_EQ(ended(1, its), "OK");
    EXPECT_EQ(untouched(1, 0, 512), 512u);
  }
  expect_quiet();
}

// For want of a receive no byte is sent twice, however long it takes.
TEST_F(PointToPoint, AMessageWithoutAReceiveIsNotRepeated) {
  const uint64_t cookie = send(0, 1, 1, 20 * kChunk);
  const uint64_t small = send(0, 1, 2, 100);
  ASSERT_FALSE(run_until_ended(0, cookie, 1'000'000'000));
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_P2P), 2u) << "two announcements";
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_P2P_AGAIN), 0u);
  EXPECT_LE(cluster.total(PEAL_COUNTER_SENT_P2P_CONTROL), 8u);
  (void)receive(1, 0, 2, 100);
  (void)receive(1, 0, 1, 20 * kChunk, 128);
  ASSERT_TRUE(run_until_ended(0, cookie));
  ASSERT_TRUE(run_until_ended(0, small));
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_P2P_AGAIN), 0u);
  EXPECT_EQ(cluster.total(PEAL_COUNTER_SENT_P2P), 2u + 2u + 20u) << "READY, DONE, and the bytes";
  EXPECT_TRUE(same(0, 0, 1, 128, 20 * kChunk));
  expect_quiet();
}

// The receiver has room for some; the others wait at their sender, which asks ever more seldom.
TEST_F(PointToPoint, MoreMessagesThanThereIsRoomForWaitAtTheirSender) {
  constexpr uint32_t kMessages = p2p::kPlaces + 4;
  std::vector<uint64_t> sent;
  for (uint32_t i = 0; i < kMessages; i++) sent.push_back(send(0, 1, 1, 40, i * 40));
  ASSERT_FALSE(run_until_ended(0, sent[0], 1'000'000'000));
  EXPECT_EQ(cluster.bench(1).counter(PEAL_COUNTER_P2P_UNEXPECTED), p2p::kPlaces);
  EXPECT_LE(cluster.total(PEAL_COUNTER_SENT_P2P_CONTROL), 142 + p2p::kPlaces);
  for (uint32_t i = 0; i < kMessages; i++) (void)receive(1, 0, 1, 40, i * 40);
  ASSERT_TRUE(run_until_all_ended(2 * kMessages));
  EXPECT_TRUE(same(0, 0, 1, 0, kMessages * 40));
  expect_quiet();
}

TEST_F(PointToPoint, WhatCannotBeReadOrWrittenEndsBothSides) {
  cluster.bench(0).port.fault_dmas = {3, 1};
  const uint64_t sent = send(0, 1, 1, 9 * kChunk);
  const uint64_t got = receive(1, 0, 1, 9 * kChunk);
  ASSERT_TRUE(run_until_all_ended(2));
  EXPECT_EQ(ended(0, sent), "DMA_FAULT");
  EXPECT_EQ(completion(0, sent)->failed_rank, PEAL_NO_RANK);  // its own memory
  EXPECT_EQ(ended(1, got), "DMA_FAULT");
  EXPECT_EQ(completion(1, got)->failed_rank, 0u);
  cluster.bench(1).port.fault_dmas = {3, 1};
  const uint64_t second = send(0, 1, 1, 9 * kChunk);
  const uint64_t its = receive(1, 0, 1, 9 * kChunk);
  const uint64_t after = put(0, 1, 10);
  ASSERT_TRUE(run_until_all_ended(5));
  EXPECT_EQ(ended(0, second), "DMA_FAULT");
  EXPECT_EQ(completion(0, second)->failed_rank, 1u);
  EXPECT_EQ(ended(1, its), "DMA_FAULT");
  EXPECT_EQ(completion(1, its)->failed_rank, PEAL_NO_RANK);
  EXPECT_EQ(ended(0, after), "OK");
  cluster.bench(2).port.fault_dmas = {1, 1};
  const uint64_t gotten = get(0, 2, 9 * kChunk);
  ASSERT_TRUE(run_until_ended(0, gotten));
  EXPECT_EQ(ended(0, gotten), "DMA_FAULT");
  EXPECT_EQ(completion(0, gotten)->failed_rank, 2u);
  expect_quiet();
}

TEST_F(PointToPoint, WhatIsEmptyLooksAtNoMemory) {
  to[1].key ^= 0x10000;
  from[1].key ^= 0x10000;
  const uint64_t nothing_put = put(0, 1, 0);
  const uint64_t nothing_got = get(0, 1, 0);
  ASSERT_TRUE(run_until_all_ended(2));
  EXPECT_EQ(ended(0, nothing_put), "OK");
  EXPECT_EQ(ended(0, nothing_got), "OK");
  EXPECT_EQ(completion(0, nothing_got)->bytes, 0u);
  expect_quiet();
}

TEST_F(PointToPoint, AWrongKeyIsNamedAndChangesNothing) {
  peal_submission wrong = entry(0, PEAL_OPERATION_PUT, 1, 9 * kChunk);
  wrong.send_key = from[0].key;
  wrong.receive_key = to[1].key ^ 0x30000;
  const uint64_t key = post(0, wrong);
  wrong = entry(0, PEAL_OPERATION_PUT, 1, 9 * kChunk);
  wrong.send_key = from[0].key;
  wrong.receive_key = to[1].key;
  wrong.receive_offset = kMemoryBytes - 8 * kChunk;
  const uint64_t bounds = post(0, wrong);
  wrong = entry(0, PEAL_OPERATION_GET, 1, 8);
  wrong.receive_key = to[0].key;
  wrong.send_key = 12;
  const uint64_t got = post(0, wrong);
  const uint64_t good = put(0, 1, 64);
  ASSERT_TRUE(run_until_all_ended(4));
  EXPECT_EQ(ended(0, key), "BAD_KEY");
  EXPECT_EQ(ended(0, bounds), "BAD_BOUNDS");
  EXPECT_EQ(ended(0, got), "BAD_KEY");
  EXPECT_EQ(ended(0, good), "OK");
  EXPECT_EQ(untouched(1, 64, 1000), 1000u);
  EXPECT_EQ(untouched(0, 0, 64), 64u);
  expect_quiet();
}

}  // namespace
}  // namespace peal::test
