// SPDX-License-Identifier: BSD-2-Clause
// Alltoallv whose ranks exchange different numbers of pieces: each pair its own, at its own pace.
#include "firmware/collective/alltoallv/direct.h"

#include "firmware/group/member.h"
#include "tests/unit/firmware/collective/alltoallv/parts_fixture.h"

namespace peal::test {
namespace {

class LongAlltoallv : public PartsTest {
 protected:
  static constexpr uint32_t kPieces = 2 * CONFIG_PIECE_WINDOW + 2;

  LongAlltoallv() : PartsTest(PEAL_OPERATION_ALLTOALLV) {
    set_all(40);
    set_length(rank, 2, kPieces * kPiece - 5);  // we have much for rank 2, which has little for us
  }
  // Packets sent so far, by rank.
  std::map<uint32_t, std::vector<Frame>> sent() {
    std::map<uint32_t, std::vector<Frame>> by_rank;
    for (Frame& frame : bench.port.take_sent())
      by_rank[frame.header.destination[5]].push_back(frame);
    return by_rank;
  }
};

TEST_F(LongAlltoallv, OnlyThePairWithMoreExchangesMore) {
  post();
  bench.finish_all_dma();
  deliver_all();
  for (uint32_t piece = 1; piece < kPieces; piece++) {
    EXPECT_EQ(done(), 0u) << piece;
    bench.deliver(from(2, piece));  // empty
    bench.finish_all_dma();
  }
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
  const auto all = sent();
  for (const auto& [to, packets] : all) {
    ASSERT_EQ(packets.size(), to == 2 ? kPieces : 1u) << to;
    for (uint32_t piece = 0; piece < packets.size(); piece++)
      EXPECT_EQ(packets[piece].payload, own(to, piece)) << to << " piece " << piece;
  }
  EXPECT_EQ(all.size(), 7u);
}

// It leaves at once, while what is before it is read: that is not lost, unless packets are.
TEST_F(LongAlltoallv, AnEmptyPieceSaysNothingOfThoseBeforeItWhereNothingIsLost) {
  set_length(2, rank, kPiece - 5);
  Member& own = *find_member(bench.card(), member.handle());
  post();
  bench.finish_all_dma();
  bench.deliver(from(2, 1));
  EXPECT_TRUE(own.patience.lossless);
  EXPECT_EQ(own.operations[0].inquiry.doubts, 0u);
  bench.deliver(from(2));
  bench.finish_all_dma();
  EXPECT_TRUE(own.patience.lossless);
}

TEST_F(LongAlltoallv, AnEmptyPieceShowsALossWherePacketsAreLost) {
  set_length(2, rank, kPiece - 5);
  Member& own = *find_member(bench.card(), member.handle());
  own.membership.losses = true;
  post();
  bench.finish_all_dma();
  bench.deliver(from(2, 1));
  EXPECT_NE(own.operations[0].inquiry.doubts, 0u);
}

TEST_F(LongAlltoallv, OneWithBytesShowsThatThoseBeforeItAreLost) {
  set_length(2, rank, 2 * kPiece - 5);
  post();
  bench.finish_all_dma();
  bench.deliver(from(2, 1));
  EXPECT_FALSE(find_member(bench.card(), member.handle())->patience.lossless);
}

// Rank 4 has not got its only piece, when this rank has long used the piece's record again.
TEST_F(LongAlltoallv, WhoIsFarBehindIsStillAnswered) {
  post();
  bench.finish_all_dma();
  deliver_all();
  for (uint32_t piece = 1; piece + 1 < kPieces; piece++) bench.deliver(from(2, piece));
  bench.finish_all_dma();
  for (const bool over : {false, true}) {
    EXPECT_EQ(ask(4), "send 1>4 DATA seq=0 piece=0 origin=1 hop=0 len=40 repair\n") << over;
    EXPECT_EQ(bench.port.take_sent().at(0).payload, own(4)) << over;
    bench.deliver(from(2, kPieces - 1));
    bench.finish_all_dma();
    EXPECT_EQ(done(), 1u);
    scribble();
  }
  // Of rank 2's the last W are there, and no more.
  for (uint32_t piece = 0; piece < kPieces; piece++) {
    const bool kept = piece + CONFIG_PIECE_WINDOW >= kPieces;
    const std::string repair = ask(2, piece);
    EXPECT_EQ(repair.empty(), !kept) << piece << repair;
    if (!kept) continue;
    EXPECT_EQ(bench.port.take_sent().at(0).payload, own(2, piece)) << piece;
  }
}

// While it runs, the user's memory answers for what is not kept.
TEST_F(LongAlltoallv, ThePartnersPiecesAreRepairedFromTheUsersMemory) {
  post();
  bench.finish_all_dma();
  for (uint32_t piece = 0; piece < CONFIG_PIECE_WINDOW; piece++) {
    EXPECT_EQ(ask(2, piece), "send 1>2 DATA seq=0 piece=" + std::to_string(piece) +
                                 " origin=1 hop=0 len=" + std::to_string(kPiece) + " repair\n");
    EXPECT_EQ(bench.port.take_sent().at(0).payload, own(2, piece));
  }
  // Beyond the window; and what they do not exchange.
  EXPECT_EQ(ask(2, CONFIG_PIECE_WINDOW),
            "send 1>2 NOT_YET seq=0 piece=" + std::to_string(CONFIG_PIECE_WINDOW) + " origin=1\n");
  EXPECT_EQ(change(wire.nack(4, shape(), 0, 1, rank, 0)), "+1 drop_stale");
}

// In silence nobody is asked for what he does not owe.
TEST_F(LongAlltoallv, OnlyWhatIsExchangedIsAskedFor) {
  post();
  bench.finish_all_dma();
  for (const uint32_t sender : {0u, 3u, 5u, 6u, 7u}) bench.deliver(from(sender));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  const uint64_t window = (uint64_t{1} << CONFIG_PIECE_WINDOW) - 1;
  char missing[16];
  std::snprintf(missing, sizeof(missing), "0x%llx", static_cast<unsigned long long>(window));
  EXPECT_EQ(bench.take_log(),
            "send 1>4 NACK seq=0 piece=0 origin=4 missing=0x1\n"
            "send 1>2 NACK seq=0 piece=0 origin=2 missing=" +
                std::string(missing) + "\n");
}

// Early blocks of a rank that is ahead, up to the window: through the channel.
TEST_F(LongAlltoallv, AsManyAsTheWindowComeEarly) {
  lengths[{2, rank}] = kPieces * kPiece - 5;
  for (uint32_t piece = 0; piece < CONFIG_PIECE_WINDOW; piece++) {
    bench.deliver(from(2, piece));
    bench.finish_all_dma();
  }
  deliver_all();
  post();
  bench.finish_all_dma();
  for (uint32_t piece = CONFIG_PIECE_WINDOW; piece < kPieces; piece++) {
    bench.deliver(from(2, piece));
    bench.finish_all_dma();
  }
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
}

class Allgatherv : public PartsTest {
 protected:
  static constexpr uint32_t kPieces = CONFIG_PIECE_WINDOW + 2;

  Allgatherv() : PartsTest(PEAL_OPERATION_ALLGATHERV) {
    for (uint32_t from = 0; from < ranks; from++) set_length(from, 0, from * 30);
    set_length(rank, 0, kPieces * kPiece - 5);
  }
};

TEST_F(Allgatherv, APieceIsReadOnceForAll) {
  post();
  bench.finish_all_dma();
  const auto before = bench.counter(PEAL_COUNTER_DMA_READ_BYTES);
  for (uint32_t piece = 0; piece < kPieces; piece++) deliver_all(piece);
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 7u * kPieces);
  EXPECT_LE(before, bench.counter(PEAL_COUNTER_DMA_READ_BYTES));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_READ_BYTES),
            length(rank, 0) + 8 * sizeof(peal_part) + 8 * sizeof(peal_peer_address));
}

TEST_F(Allgatherv, InPlaceEarlyAndAskedForAfterTheEnd) {
  deliver_all();
  post(0, true);
  bench.finish_all_dma();
  for (uint32_t piece = 1; piece < kPieces; piece++) deliver_all(piece);
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
  scribble();
  for (const uint32_t asker : {0u, 4u}) {
    for (uint32_t piece = kPieces - CONFIG_PIECE_WINDOW; piece < kPieces; piece++) {
      ask(asker, piece);
      EXPECT_EQ(bench.port.take_sent().at(0).payload, own(asker, piece)) << asker << " " << piece;
    }
  }
}

// A rank with less than others: its empty packets are kept apart from its block.
TEST_F(Allgatherv, WhoHasLessRepairsWithEmptyPackets) {
  set_length(rank, 0, 20);
  set_length(4, 0, kPieces * kPiece);
  post();
  bench.finish_all_dma();
  deliver_all();
  for (uint32_t piece = 1; piece < kPieces; piece++) bench.deliver(from(4, piece));
  bench.finish_all_dma();
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
  scribble();
  EXPECT_EQ(ask(0), "send 1>0 DATA seq=0 piece=0 origin=1 hop=0 len=20 repair\n");
  EXPECT_EQ(ask(4, kPieces - 1), "send 1>4 DATA seq=0 piece=" + std::to_string(kPieces - 1) +
                                     " origin=1 hop=0 len=0 repair\n");
}

}  // namespace
}  // namespace peal::test
