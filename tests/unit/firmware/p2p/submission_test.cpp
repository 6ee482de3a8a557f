// SPDX-License-Identifier: BSD-2-Clause
// Entries of the submission ring that cannot be carried out, and how what is under way ends when
// its group or its host does.
#include "firmware/p2p/submission.h"

#include "tests/unit/firmware/p2p/p2p_fixture.h"

namespace peal::test {
namespace {

class Submissions : public PointToPoint {
 protected:
  // How an entry ends that differs from a good one by this.
  template <typename Spoil>
  std::string with(peal_operation operation, Spoil spoil) {
    peal_submission made = entry(0, operation, 1, operation == PEAL_OPERATION_FENCE ? 0 : 64);
    const bool sends = operation == PEAL_OPERATION_SEND || operation == PEAL_OPERATION_PUT;
    const bool receives = operation == PEAL_OPERATION_RECEIVE || operation == PEAL_OPERATION_GET;
    if (sends) made.send_key = from[0].key;
    if (receives) made.receive_key = to[0].key;
    if (operation == PEAL_OPERATION_PUT) made.receive_key = to[1].key;
    if (operation == PEAL_OPERATION_GET) made.send_key = from[1].key;
    spoil(made);
    cluster.bench(0).submit(made);
    cluster.settle();
    const std::string status = ended(0, made.cookie);
    return status.empty() ? "runs" : status;
  }
};

TEST_F(Submissions, EveryFieldIsChecked) {
  using S = peal_submission;
  for (const auto operation : {PEAL_OPERATION_SEND, PEAL_OPERATION_RECEIVE, PEAL_OPERATION_PUT,
                               PEAL_OPERATION_GET, PEAL_OPERATION_FENCE}) {
    EXPECT_EQ(with(operation, [](S& e) { e.member ^= 0x10000; }), "BAD_GROUP");
    EXPECT_EQ(with(operation, [](S& e) { e.algorithm = PEAL_ALGORITHM_DIRECT; }), "BAD_ALGORITHM");
    EXPECT_EQ(with(operation, [](S& e) { e.flags = PEAL_SUBMIT_IN_PLACE; }), "BAD_FLAGS");
    EXPECT_EQ(with(operation, [](S& e) { e.flags = 4; }), "BAD_FLAGS");
    EXPECT_EQ(with(operation, [](S& e) { e.reserved[2] = 1; }), "BAD_FLAGS");
    EXPECT_EQ(with(operation, [](S& e) { e.root = 4; }), "BAD_RANK");
  }
  for (const auto operation : {PEAL_OPERATION_SEND, PEAL_OPERATION_PUT}) {
    EXPECT_EQ(with(operation, [](S& e) { e.send_key ^= 0x10000; }), "BAD_KEY");
    EXPECT_EQ(with(operation, [](S& e) { e.send_offset = kMemoryBytes; }), "BAD_BOUNDS");
    EXPECT_EQ(with(operation, [](S& e) { e.block_bytes = ~uint64_t{0}; }), "BAD_BOUNDS");
    EXPECT_EQ(with(operation, [](S& e) { e.flags = PEAL_SUBMIT_ANY_TAG; }), "BAD_FLAGS");
  }
  for (const auto operation : {PEAL_OPERATION_RECEIVE, PEAL_OPERATION_GET}) {
    EXPECT_EQ(with(operation, [](S& e) { e.receive_key ^= 0x10000; }), "BAD_KEY");
    EXPECT_EQ(with(operation, [](S& e) { e.receive_offset = ~uint64_t{0}; }), "BAD_BOUNDS");
  }
  for (const auto operation : {PEAL_OPERATION_PUT, PEAL_OPERATION_GET, PEAL_OPERATION_FENCE}) {
    EXPECT_EQ(with(operation, [](S& e) { e.sequence = 1; }), "BAD_SEQUENCE");
  }
  EXPECT_EQ(with(PEAL_OPERATION_RECEIVE,
                 [](S& e) {
                   e.flags = PEAL_SUBMIT_ANY_TAG;
                   e.sequence = 1;
                 }),
            "BAD_SEQUENCE");
  EXPECT_EQ(with(PEAL_OPERATION_SEND, [](S& e) { e.receive_key = 1; }), "BAD_KEY");
  EXPECT_EQ(with(PEAL_OPERATION_RECEIVE, [](S& e) { e.send_offset = 1; }), "BAD_KEY");
  EXPECT_EQ(with(PEAL_OPERATION_FENCE, [](S& e) { e.block_bytes = 1; }), "BAD_LENGTH");
  EXPECT_EQ(with(PEAL_OPERATION_SEND, [](S& e) { e.root = PEAL_NO_RANK; }), "BAD_RANK");
  EXPECT_EQ(cluster.trace().size(), 0u);
  expect_quiet();
}

TEST_F(Submissions, WhatHasNoRecordIsRefusedByName) {
  std::vector<uint64_t> posted;
  for (uint32_t i = 0; i < p2p::kRequests - p2p::kServices; i++)
    posted.push_back(receive(0, 1, i, 8));
  const uint64_t more = receive(0, 1, 99, 8);
  EXPECT_EQ(cluster.bench(0).counter(PEAL_COUNTER_NO_P2P_REQUEST), 1u);
  cluster.settle();
  EXPECT_EQ(ended(0, more), "TOO_MANY");
  // Others' gets are served all the same.
  const uint64_t got = get(1, 0, 100);
  ASSERT_TRUE(run_until_ended(1, got));
  EXPECT_EQ(ended(1, got), "OK");
  for (uint32_t i = 0; i < posted.size(); i++) (void)send(1, 0, i, 8);
  ASSERT_TRUE(run_until_ended(0, posted.back()));
  ASSERT_TRUE(run_until_all_ended(2 * posted.size() + 2));
  expect_quiet();
}

// --- ends ---

// The host knows its requests by cookie and sequence, whatever became of them.
TEST_F(Submissions, ACompletionHasTheEntrysSequence) {
  std::map<uint64_t, uint64_t> wanted;  // by cookie
  const auto posted = [&](uint64_t cookie, uint64_t sequence) { wanted[cookie] = sequence; };
  posted(send(0, 1, 7, 100), 7);
  posted(receive(0, 1, 8, 100), 8);
  posted(receive(0, 1, 0, 200, 300, true), 0);
  posted(receive(0, 1, 9, 10), 9);  // for a message that is longer
  posted(put(0, 1, 3 * kChunk), 0);
  posted(get(0, 1, 100), 0);
  posted(fence(0, PEAL_NO_RANK), 0);
  (void)receive(1, 0, 7, 100);
  for (const uint64_t tag : {8, 99, 9}) (void)send(1, 0, tag, 50);
  ASSERT_TRUE(run_until_all_ended(wanted.size() + 4));
  peal_submission refused = entry(0, PEAL_OPERATION_SEND, 4, 0);
  refused.sequence = 10;
  posted(post(0, refused), 10);
  posted(receive(0, 2, 11, 100), 11);  // ends with the rank
  cluster.silence(2);
  posted(put(0, 2, 100), 0);
  ASSERT_TRUE(run_until_all_ended(wanted.size() + 4));
  posted(send(0, 1, 12, 100), 12);  // in a group that is over
  posted(receive(0, 1, 13, 100), 13);
  cluster.settle();
  for (const auto& [cookie, sequence] : wanted) {
    ASSERT_NE(completion(0, cookie), nullptr) << cookie;
    EXPECT_EQ(completion(0, cookie)->sequence, sequence) << ended(0, cookie);
  }
}

// Whose key, bounds or access it was; of the own memory nobody is named.
TEST_F(Submissions, WhoseMemoryCouldNotBeUsedIsNamed) {
  to[3].key ^= 0x10000;
  const uint64_t theirs = put(0, 3, 100);
  const uint64_t beyond = get(0, 2, 100, 0, kMemoryBytes);
  const uint64_t own = put(0, 3, 100, kMemoryBytes);
  // Of two packets the second would begin at the beginning.
  const uint64_t around = put(0, 2, 2 * kChunk, 0, ~uint64_t{0} - kChunk + 1);
  ASSERT_TRUE(run_until_all_ended(4));
  EXPECT_EQ(ended(0, around), "BAD_BOUNDS");
  EXPECT_EQ(completion(0, around)->failed_rank, 2u);
  EXPECT_EQ(ended(0, theirs), "BAD_KEY");
  EXPECT_EQ(completion(0, theirs)->failed_rank, 3u);
  EXPECT_EQ(ended(0, beyond), "BAD_BOUNDS");
  EXPECT_EQ(completion(0, beyond)->failed_rank, 2u);
  EXPECT_EQ(ended(0, own), "BAD_BOUNDS");
  EXPECT_EQ(completion(0, own)->failed_rank, PEAL_NO_RANK);
  expect_quiet();
}

TEST_F(Submissions, ADeadRankIsNamedInAllThatIsPending) {
  cluster.silence(1);
  const uint64_t to_it = put(0, 1, 5 * kChunk);
  const uint64_t of_it = receive(0, 1, 1, 8);
  const uint64_t of_another = receive(0, 2, 1, 8);
  const uint64_t elsewhere = receive(3, 2, 1, 8);
  ASSERT_TRUE(run_until_ended(0, to_it));
  for (const uint64_t cookie : {to_it, of_it, of_another}) {
    EXPECT_EQ(ended(0, cookie), "PEER_DEAD");
    EXPECT_EQ(completion(0, cookie)->failed_rank, 1u);
  }
  ASSERT_TRUE(run_until_ended(3, elsewhere));
  EXPECT_EQ(ended(3, elsewhere), "PEER_DEAD");
  const uint64_t later = put(0, 2, 8);
  cluster.settle();
  EXPECT_EQ(ended(0, later), "PEER_DEAD");
  for (const uint32_t rank : {0u, 2u, 3u}) {
    EXPECT_EQ(cluster.bench(rank).card().p2p.connections_used, 0u) << rank;
    EXPECT_EQ(cluster.bench(rank).card().p2p.requests_used, 0u) << rank;
    EXPECT_EQ(cluster.bench(rank).problems(), "");
  }
}

// Nothing is under way to it: what is awaited is its message, or its receive.
TEST_F(Submissions, ARankThatFallsSilentIsMissedByWhoWaitsForIt) {
  const uint64_t awaited = receive(0, 2, 1, 8);
  cluster.settle();
  cluster.silence(2);
  ASSERT_TRUE(run_until_ended(0, awaited));
  EXPECT_EQ(ended(0, awaited), "PEER_DEAD");
  EXPECT_EQ(completion(0, awaited)->failed_rank, 2u);
}

TEST_F(Submissions, ARankThatFallsSilentBeforeItReceivesIsMissedByItsSender) {
  const uint64_t announced = send(3, 2, 2, 9 * kChunk);
  cluster.settle();
  cluster.silence(2);
  ASSERT_TRUE(run_until_ended(3, announced));
  EXPECT_EQ(ended(3, announced), "PEER_DEAD");
  EXPECT_EQ(completion(3, announced)->failed_rank, 2u);
}

// One that is only late is asked now and then whether it lives, and waited for.
TEST_F(Submissions, ALateRankIsWaitedFor) {
  const uint64_t awaited = receive(0, 1, 1, 8);
  ASSERT_FALSE(run_until_ended(0, awaited, 5'000'000'000));
  EXPECT_GT(cluster.bench(0).counter(PEAL_COUNTER_SENT_LIVENESS), 0u);
  EXPECT_EQ(cluster.bench(0).counter(PEAL_COUNTER_PEERS_DEAD), 0u);
  (void)send(1, 0, 1, 8);
  ASSERT_TRUE(run_until_ended(0, awaited));
  EXPECT_EQ(ended(0, awaited), "OK");
  expect_quiet();
}

// The memory of a context that is closed is touched no more, wherever it was in what it did.
TEST_F(Submissions, AClosedContextIsLeftInPeace) {
  const uint64_t incoming = put(0, 1, 30 * kChunk);
  (void)send(1, 2, 1, 30 * kChunk);
  (void)receive(2, 1, 1, 30 * kChunk);
  (void)get(1, 3, 30 * kChunk);
  for (uint32_t turn = 0; turn < 3; turn++) {  // part of the way
    for (uint32_t rank = 0; rank < 4; rank++) cluster.bench(rank).finish_all_dma();
    (void)cluster.run_until([] { return true; }, 0);
  }
  CardBench& bench = cluster.bench(1);
  card_close_context(bench.card(), bench.context(), bench.now);
  bench.finish_all_dma();
  ASSERT_TRUE(card_context_quiet(bench.card(), bench.context()));
  bench.port.remove_region(from[1].region);
  bench.port.remove_region(to[1].region);
  ASSERT_TRUE(run_until_ended(0, incoming));
  EXPECT_TRUE(ended(0, incoming) == "PEER_DEAD" || ended(0, incoming) == "OK");
  (void)cluster.run_until([] { return false; }, 3'000'000'000);
  EXPECT_EQ(cluster.problems(), "");
}

TEST_F(Submissions, ADestroyEndsWhatIsPending) {
  const uint64_t pending = receive(0, 1, 1, 8);
  const uint64_t announced = send(2, 3, 1, 9 * kChunk);
  cluster.settle();
  for (uint32_t rank = 0; rank < 4; rank++) cluster.destroy(rank, 0);
  ASSERT_TRUE(run_until_ended(0, pending));
  ASSERT_TRUE(run_until_ended(2, announced));
  EXPECT_EQ(ended(0, pending), "CLOSED");
  EXPECT_EQ(ended(2, announced), "CLOSED");
  cluster.settle();
  for (uint32_t rank = 0; rank < 4; rank++) {
    EXPECT_EQ(cluster.bench(rank).card().p2p.connections_used, 0u);
    RegionId channels = 0;
    EXPECT_TRUE(card_channel_released(cluster.bench(rank).card(), &channels)) << rank;
  }
  EXPECT_EQ(cluster.problems(), "");
}

}  // namespace
}  // namespace peal::test
