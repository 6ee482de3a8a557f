// SPDX-License-Identifier: BSD-2-Clause
// The direct all-to-all of long blocks: which pieces are open, what is kept of them and for how
// long, and where what comes early waits.
#include <set>

#include "firmware/operation/layout.h"
#include "tests/unit/firmware/collective/alltoall/direct_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kWindow = CONFIG_PIECE_WINDOW;
constexpr size_t kPiece = CONFIG_MTU_BYTES;

class DirectLong : public DirectTest {
 protected:
  using DirectTest::DirectTest;
  // As many pieces; the last is short.
  static size_t pieces(uint32_t count) { return (count - 1) * kPiece + 100; }
  // Everybody's pieces come, and the user takes the buffers back.
  void finish(size_t block, uint32_t count) {
    bench.finish_all_dma();
    for (uint32_t piece = 0; piece < count; piece++) deliver_all(block, piece);
    ASSERT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
    EXPECT_EQ(wrong(block), -1);
    scribble();
  }
  void expect_repaired(uint32_t asker, size_t block, uint32_t piece) {
    answer(asker, block, piece);
    const auto sent = bench.port.take_sent();
    ASSERT_EQ(sent.size(), 1u) << piece;
    EXPECT_EQ(sent[0].payload, own(asker, block, piece)) << piece;
    EXPECT_EQ(sent[0].header.flags, PEAL_PACKET_REPAIR) << piece;
  }
  // So many pieces of everybody's but this one's.
  void deliver_all_but(uint32_t late, size_t block, uint32_t count) {
    for (uint32_t piece = 0; piece < count; piece++) {
      for (uint32_t sender = 0; sender < ranks; sender++) {
        if (sender != rank && sender != late) bench.deliver(from(sender, block, piece));
      }
      bench.finish_all_dma();
    }
  }
  [[nodiscard]] uint32_t receiver_of(const Frame& frame) const {
    for (uint32_t to = 0; to < ranks; to++) {
      if (member.everybody[to].member == frame.header.member) return to;
    }
    return ranks;
  }
  static long questions(const std::string& log) {
    long asked = 0;
    for (size_t at = log.find(" NACK "); at != std::string::npos; at = log.find(" NACK ", at + 1)) {
      asked++;
    }
    return asked;
  }
  void say_late(uint32_t sender, size_t block) {
    bench.deliver(wire.not_yet(sender, direct_shape(block), 0, 0, sender, 0,
                               static_cast<uint32_t>(bench.now / 1000), PEAL_NOT_YET_LATE));
  }
  uint32_t data_sent() {
    uint32_t sent = 0;
    for (const Frame& frame : bench.port.take_sent()) {
      if (frame.header.type == PEAL_PACKET_DATA) sent = std::max(sent, frame.header.piece + 1);
    }
    return sent;
  }
};

TEST_F(DirectLong, PiecesAreAsLongAsTheFixtureThinks) { EXPECT_EQ(piece_bytes_for(ranks), kPiece); }

// Piece p + W is begun when the rank's piece p is here.
TEST_F(DirectLong, AWindowOfPiecesIsSent) {
  const size_t block = pieces(2 * kWindow + 1);
  post(block);
  bench.finish_all_dma();
  EXPECT_EQ(data_sent(), kWindow);
  for (uint32_t piece = 0; piece < 2 * kWindow + 1; piece++) {
    deliver_all(block, piece);
    EXPECT_EQ(data_sent(), piece < kWindow + 1 ? kWindow + 1 + piece : 0) << piece;
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(block), -1);
}

// Each pair goes on by itself: whoever is late has W pieces, the others everything.
TEST_F(DirectLong, ALateRankHoldsUpItsOwnPairAlone) {
  const uint32_t count = 2 * kWindow + 2;
  const size_t block = pieces(count);
  post(block);
  bench.finish_all_dma();
  deliver_all_but(4, block, count);
  std::vector<uint32_t> sent(ranks);
  for (const Frame& frame : bench.port.take_sent()) ++sent[receiver_of(frame)];
  for (uint32_t to = 0; to < ranks; to++) {
    EXPECT_EQ(sent[to], to == rank ? 0 : to == 4 ? kWindow : count) << to;
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 0u);
  for (uint32_t piece = 0; piece < count; piece++) {
    bench.deliver(from(4, block, piece));
    bench.finish_all_dma();
    const auto next = bench.port.take_sent();
    ASSERT_EQ(next.size(), piece + kWindow < count ? 1u : 0u) << piece;
    if (next.empty()) continue;
    EXPECT_EQ(receiver_of(next[0]), 4u);
    EXPECT_EQ(next[0].payload, own(4, block, piece + kWindow)) << piece;
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(block), -1);
}

// What a pair has passed is not asked for: its other rank has sent what comes W behind.
TEST_F(DirectLong, AQuestionForWhatTheAskerHasIsStale) {
  const uint32_t count = 2 * kWindow + 1;
  const size_t block = pieces(count);
  post(block);
  bench.finish_all_dma();
  for (uint32_t piece = 0; piece <= kWindow; piece++) {
    bench.deliver(from(4, block, piece));
    bench.finish_all_dma();
  }
  EXPECT_EQ(change(wire.nack(4, direct_shape(block), 0, 0, rank, 0)), "+1 drop_stale");
  bench.port.take_sent();
  expect_repaired(4, block, 1);
  expect_repaired(5, block, 0);
}

// All get a piece before anybody gets the next.
TEST_F(DirectLong, APieceGoesToAllBeforeTheNext) {
  post(pieces(kWindow));
  bench.finish_all_dma();
  std::vector<uint32_t> sent;
  std::vector<uint32_t> expected;
  for (const Frame& frame : bench.port.take_sent()) sent.push_back(frame.header.piece);
  for (uint32_t piece = 0; piece < kWindow; piece++) expected.insert(expected.end(), 7, piece);
  EXPECT_EQ(sent, expected);
}

TEST_F(DirectLong, PiecesBeyondTheWindowAreRefused) {
  const size_t block = pieces(2 * kWindow + 1);
  post(block);
  bench.finish_all_dma();
  EXPECT_EQ(change(from(4, block, 2 * kWindow)), "+1 drop_piece");
  EXPECT_EQ(change(from(4, block, 2 * kWindow - 1)),
            "+1 received, +" + std::to_string(kPiece) + " dma_write_bytes, +1 dma_operations");
  bench.finish_all_dma();
}

// While it runs the user's memory is the card's: pieces that all ranks will have when it is over
// are not copied.
TEST_F(DirectLong, OnlyTheLastPiecesAreKept) {
  const size_t block = pieces(kWindow + 1);
  post(block);
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(wire.nack(4, direct_shape(block), 0, 0, rank, 0));
  EXPECT_EQ(bench.take_log(),
            "dma_read given+" + std::to_string(4 * block) + " " + std::to_string(kPiece) + "\n");
  bench.port.take_sent();
  bench.finish_all_dma();
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, own(4, block, 0));
  EXPECT_EQ(sent[0].header.flags, PEAL_PACKET_REPAIR);
}

// The proof of the release policy, as a test: when all is over the last W pieces are repaired from
// the channel, of all ranks, and nobody needs those before.
TEST_F(DirectLong, WhatMayBeAskedForAfterTheEndLiesInTheChannel) {
  const uint32_t count = 2 * kWindow;
  const size_t block = pieces(count);
  post(block);
  finish(block, count);
  for (uint32_t piece = count - kWindow; piece < count; piece++) {
    for (const uint32_t asker : {0u, 2u, 3u, 4u, 5u, 6u, 7u}) expect_repaired(asker, block, piece);
  }
  EXPECT_EQ(change(wire.nack(4, direct_shape(block), 0, count - kWindow - 1, rank, 0)),
            "+1 drop_stale");
}

// In place every piece is kept, for the result overwrites it: as long as somebody may lack it.
TEST_F(DirectLong, InPlaceEveryPieceIsRepairedFromTheChannel) {
  const uint32_t count = 2 * kWindow;
  const size_t block = pieces(count);
  post_in_place(block);
  bench.finish_all_dma();
  for (uint32_t piece = 0; piece < count; piece++) {
    deliver_all(block, piece);
    bench.port.take_sent();
    if (piece + 1 == count) scribble();
    for (const uint32_t asker : {0u, 4u, 7u}) expect_repaired(asker, block, piece);
  }
  ASSERT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
}

// A rank that is W ahead has what was kept for it, so its block may wait in that place; what was
// kept for others stays.
TEST_F(DirectLong, EarlyBlocksTakeThePlaceOfWhatTheirSenderHas) {
  const uint32_t count = 2 * kWindow;
  const size_t block = pieces(count);
  post_in_place(block);
  bench.finish_all_dma();
  for (uint32_t piece = 0; piece < kWindow; piece++) {
    for (const uint32_t sender : {0u, 2u, 4u, 5u, 6u, 7u})
      bench.deliver(from(sender, block, piece));
    bench.finish_all_dma();
  }
  // All but rank 3 are W ahead; the last piece is short, its neighbours' places are not.
  for (uint32_t piece = kWindow; piece < count; piece++) {
    for (const uint32_t sender : {0u, 2u, 4u, 5u, 6u, 7u}) {
      bench.deliver(from(sender, block, piece));
      bench.finish_all_dma();
    }
  }
  for (uint32_t piece = 0; piece < kWindow; piece++) expect_repaired(3, block, piece);
  for (uint32_t piece = 0; piece < count; piece++) {
    bench.deliver(from(3, block, piece));
    bench.finish_all_dma();
  }
  ASSERT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(block), -1);
}

// What comes before its place is free waits in its packet.
class DirectEarly : public DirectLong {
 protected:
  DirectEarly() : DirectLong(true) {}
};

TEST_F(DirectEarly, InPlaceABlockWaitsUntilWhatLayThereIsKept) {
  post_in_place(kBlock);
  const size_t reads = bench.port.dma_count();
  bench.deliver(from(0));
  bench.deliver(from(4));
  EXPECT_EQ(bench.port.dma_count(), reads);
  bench.finish_all_dma();
  for (const uint32_t sender : {2u, 3u, 5u, 6u, 7u}) bench.deliver(from(sender));
  bench.finish_all_dma();
  ASSERT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(), -1);
  for (const uint32_t asker : {0u, 4u}) expect_repaired(asker, kBlock, 0);
}

// A rank is ahead: its piece waits for the own one of that number, which waits for all of the first
// piece, of which a block waits behind it.
TEST_F(DirectEarly, NobodyWaitsForTheOneThatCameFirst) {
  const uint32_t count = kWindow + 1;
  const size_t block = pieces(count);
  post_in_place(block);
  bench.deliver(from(0, block, kWindow));
  for (const uint32_t sender : {0u, 2u}) bench.deliver(from(sender, block, 0));
  bench.finish_all_dma();
  for (const uint32_t sender : {3u, 4u, 5u, 6u, 7u}) bench.deliver(from(sender, block, 0));
  bench.finish_all_dma();
  for (uint32_t piece = 1; piece < count; piece++) deliver_all(block, piece);
  ASSERT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(block), -1);
}

TEST_F(DirectEarly, BeforeThePostAllWaits) {
  deliver_all();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_WRITE_BYTES), 0u);
  post();
  bench.finish_all_dma();
  ASSERT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(), -1);
}

// What is asked of a rank is one question, a bit for each piece of the window.
TEST_F(DirectLong, OneQuestionNamesAllPiecesOfTheWindow) {
  const uint32_t count = 2 * kWindow;
  const size_t block = pieces(count);
  post(block);
  bench.finish_all_dma();
  deliver_all_but(4, block, count);
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  char expected[80];
  std::snprintf(expected, sizeof(expected), "send 1>4 NACK seq=0 piece=0 origin=4 missing=0x%x\n",
                (1u << kWindow) - 1);
  EXPECT_EQ(bench.take_log(), expected);
  answer(0, block, kWindow, (1u << kWindow) - 1);
  EXPECT_EQ(bench.port.take_sent().size(), kWindow);
}

// Ranks 0, 4 and 6 have sent nothing, and rank 3 one piece. Those three would say the same: one of
// them is asked at a time, and by turns.
TEST_F(DirectLong, OfThoseThatSeemLateOneIsAskedAtATime) {
  const uint32_t count = kWindow;
  const size_t block = pieces(count);
  post(block);
  bench.finish_all_dma();
  for (uint32_t piece = 0; piece < count; piece++) {
    for (const uint32_t sender : {2u, 5u, 7u}) bench.deliver(from(sender, block, piece));
    bench.finish_all_dma();
  }
  bench.deliver(from(3, block));
  bench.finish_all_dma();
  bench.take_log();
  std::set<std::string> asked;
  TimeNs interval = default_timeouts().nack_ns;
  for (uint32_t look = 1; look <= 3; look++) {
    bench.advance(interval);
    interval *= 2;
    const std::string log = bench.take_log();
    EXPECT_NE(log.find("send 1>3 NACK seq=0 piece=1 origin=3"), std::string::npos) << log;
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
    for (const char* late : {"origin=0", "origin=4", "origin=6"}) {
      if (log.find(late) != std::string::npos) asked.insert(late);
    }
    EXPECT_EQ(asked.size(), look) << log;
  }
}

// Nothing has come of anybody, of several pieces: one has said why, and so lateness it is. What has
// begun is asked for as if nobody had ever been late.
TEST_F(DirectLong, WhoSeemsLateHasAPatienceOfItsOwn) {
  const TimeNs nack_ns = default_timeouts().nack_ns;
  const size_t block = pieces(kWindow);
  post(block);
  bench.finish_all_dma();
  bench.advance(nack_ns);
  const std::string first = bench.take_log();
  EXPECT_NE(first.find("send 1>7 NACK seq=0 piece=0 origin=7"), std::string::npos) << first;
  EXPECT_EQ(questions(first), 1) << first;
  say_late(7, block);
  bench.advance(7 * nack_ns);
  EXPECT_EQ(questions(bench.take_log()), 0);
  bench.deliver(from(3, block));
  bench.finish_all_dma();
  bench.advance(2 * nack_ns);
  const std::string begun = bench.take_log();
  EXPECT_NE(begun.find("send 1>3 NACK seq=0 piece=1 origin=3"), std::string::npos) << begun;
  EXPECT_EQ(questions(begun), 1) << begun;
  bench.advance(24 * nack_ns);
  const std::string late = bench.take_log();
  EXPECT_NE(late.find("piece=0"), std::string::npos) << late;
}

// A packet of the operation behind it shows that all of the first window was lost: lateness it is
// not, however late others are for the operation before.
TEST_F(DirectLong, WhatAnEdgeShowsToBeLostIsAskedForWhoeverIsLate) {
  const size_t block = pieces(kWindow);
  bench.card().members[0].late_patience.wait_ns = default_timeouts().dead_ns;
  for (uint64_t i = 0; i < 3; i++) AlltoallTest::post(i, block);
  bench.finish_all_dma();
  uint8_t number = 0;
  for (uint32_t piece = 0; piece < kWindow; piece++) {
    bench.deliver(WireMaker::numbered(from(3, block, piece), ++number));
  }
  bench.finish_all_dma();
  bench.take_log();
  number = static_cast<uint8_t>(number + kWindow + 1);
  const Frame next =
      wire.direct(3, direct_shape(block), 2, 0, pattern_between(2, 3, rank, 0, CONFIG_MTU_BYTES));
  bench.deliver(WireMaker::numbered(next, number));
  const std::string log = bench.take_log();
  EXPECT_NE(log.find("send 1>3 NACK seq=1 piece=0 origin=3"), std::string::npos) << log;
}

// Whoever is late for one operation is late for the next.
TEST_F(DirectLong, WhoSeemsLateIsAskedByTheOldestOperation) {
  const TimeNs nack_ns = default_timeouts().nack_ns;
  const size_t block = pieces(kWindow);
  post(block);
  AlltoallTest::post(1, block);
  bench.finish_all_dma();
  bench.advance(nack_ns);
  say_late(7, block);
  bench.take_log();
  for (int i = 0; i < 40; i++) bench.advance(nack_ns);
  const std::string log = bench.take_log();
  EXPECT_NE(log.find("NACK seq=0 "), std::string::npos) << log;
  EXPECT_EQ(log.find("NACK seq=1 "), std::string::npos) << log;
}

}  // namespace
}  // namespace peal::test
