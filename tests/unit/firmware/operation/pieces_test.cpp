// SPDX-License-Identifier: BSD-2-Clause
// Long blocks: how they are cut, how far the window goes, what of a piece is refused, and what is
// retained of it.
#include "firmware/operation/pieces.h"

#include <cstdio>

#include "firmware/base/patience.h"
#include "firmware/group/member.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kWindow = CONFIG_PIECE_WINDOW;
constexpr uint32_t kPieces = 4 * kWindow + 1;

TEST(PieceBytes, FitTheMtuAndTheImageForEveryGroup) {
  for (uint32_t ranks = 1; ranks <= CONFIG_GROUP_RANKS_MAX; ranks++) {
    const uint32_t bytes = piece_bytes_for(ranks);
    ASSERT_GT(bytes, 0u) << ranks;
    ASSERT_LE(bytes, static_cast<uint32_t>(CONFIG_MTU_BYTES));
    ASSERT_LE(uint64_t{bytes} * ranks, uint64_t{CONFIG_CHANNEL_BYTES} / (2 * kWindow));
    if (bytes != CONFIG_MTU_BYTES) {
      ASSERT_EQ(bytes % 8, 0u);
    }
  }
}

class Pieces : public CardTest {
 protected:
  static constexpr uint32_t kRanks = 4;
  static constexpr uint32_t kRank = 1;
  const uint32_t piece_bytes = piece_bytes_for(kRanks);
  const size_t block = size_t{kPieces - 1} * piece_bytes + 5;  // the last piece is 5 bytes
  const OperationShape shape = broadcast_shape(block);

  Pieces()
      : CardTest(BenchOptions{.index = kRank}),
        send(bench.add_memory("send", block)),
        receive(bench.add_memory("receive", block * kRanks)),
        member(bench.join(kRanks, kRank)),
        wire(member) {
    const auto own = pattern_block(0, kRank, 0, block);
    std::copy(own.begin(), own.end(), bench.port.bytes(send.region).begin());
  }
  void post() {
    bench.submit(allgather_entry(member, 0, 7, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, block, send.key,
                                 receive.key));
    bench.finish_all_dma();
  }
  void post_next() {
    bench.submit(allgather_entry(member, 1, 8, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, block, send.key,
                                 receive.key));
    bench.finish_all_dma();
  }
  [[nodiscard]] size_t length(uint32_t piece) const {
    return piece + 1 == kPieces ? 5 : piece_bytes;
  }
  [[nodiscard]] Frame data(uint32_t origin, uint32_t piece) const {
    return wire.hopping(shape, 0, piece, origin,
                        pattern_block(0, origin, uint64_t{piece} * piece_bytes, length(piece)));
  }
  void deliver_piece(uint32_t piece) {
    for (const uint32_t origin : {0u, 2u, 3u}) bench.deliver(data(origin, piece));
    bench.finish_all_dma();
  }
  // Numbers of the own pieces sent since the last call, to rank 2.
  std::string own_pieces_sent() {
    std::string numbers;
    for (const Frame& frame : bench.port.take_sent()) {
      const peal_wire_header& header = frame.header;
      if (header.type == PEAL_PACKET_DATA && header.origin == kRank && header.hop == 0) {
        numbers += std::to_string(header.piece) + " ";
      }
    }
    return numbers;
  }
  void expect_result() {
    const auto done = bench.port.take_completions();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(status_text(done[0].second.status), "OK");
    EXPECT_EQ(bench.port.bytes(receive.region), pattern_result(0, kRanks, block));
  }

  Memory send;
  Memory receive;
  Membership member;
  WireMaker wire;
};

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string numbers(uint32_t from, uint32_t to) {
  std::string text;
  for (uint32_t number = from; number < to; number++) text += std::to_string(number) + " ";
  return text;
}

TEST_F(Pieces, TheWindowOpensAsPiecesComplete) {
  post();
  EXPECT_EQ(own_pieces_sent(), numbers(0, kWindow));
  for (uint32_t piece = 0; piece < kPieces; piece++) {
    EXPECT_TRUE(bench.port.take_completions().empty());
    deliver_piece(piece);
    const uint32_t next = piece + kWindow;
    EXPECT_EQ(own_pieces_sent(), next < kPieces ? numbers(next, next + 1) : "") << piece;
  }
  expect_result();
}

TEST_F(Pieces, OutOfOrderWithinTheWindow) {
  post();
  for (uint32_t first = 0; first < kPieces; first += kWindow) {
    for (uint32_t i = kWindow; i-- > 0;) {
      if (first + i < kPieces) deliver_piece(first + i);
    }
    bench.port.take_sent();
  }
  expect_result();
}

// A peer may be W ahead of us, and we W ahead of it:
// 2W pieces from the first incomplete one on, no more.
TEST_F(Pieces, PiecesBeyondTheWindowAreRefused) {
  post();
  EXPECT_EQ(change(data(0, 2 * kWindow - 1)), "+1 sent_data, +1 forwarded, +1 received, +" +
                                                  std::to_string(piece_bytes) +
                                                  " dma_write_bytes, +1 dma_operations");
  bench.finish_all_dma();
  bench.take_log();
  EXPECT_EQ(change(data(0, 2 * kWindow)), "+1 drop_piece");
  EXPECT_EQ(change(data(0, kPieces - 1)), "+1 drop_piece");
  Frame beyond = data(0, kPieces - 1);
  beyond.header.piece = kPieces;
  seal(beyond);
  EXPECT_EQ(change(beyond), "+1 drop_piece");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Pieces, LengthsAreThoseOfThePiece) {
  post();
  for (uint32_t piece = 0; piece + 1 < kPieces - kWindow; piece++) deliver_piece(piece);
  bench.take_log();
  const uint32_t next = kPieces - kWindow - 1;
  const auto with_length = [&](uint32_t piece, size_t bytes) {
    return wire.hopping(shape, 0, piece, 0, std::vector<uint8_t>(bytes));
  };
  EXPECT_EQ(change(with_length(next, piece_bytes - 1)), "+1 drop_length");
  EXPECT_EQ(change(with_length(next, 5)), "+1 drop_length");
  EXPECT_EQ(change(with_length(kPieces - 1, piece_bytes)), "+1 drop_length");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Pieces, APieceOfLongAgoIsADuplicate) {
  post();
  for (uint32_t piece = 0; piece <= 2 * kWindow; piece++) deliver_piece(piece);
  bench.take_log();
  Frame old = wire.hopping(shape, 0, 0, 0, std::vector<uint8_t>(piece_bytes, 0x99));
  EXPECT_EQ(change(old), "+1 duplicate");
  EXPECT_EQ(bench.take_log(), "");
  for (uint32_t piece = 2 * kWindow + 1; piece < kPieces; piece++) deliver_piece(piece);
  expect_result();
}

// Rank 3 owes a block of every piece, rank 0 one of all but the first.
TEST_F(Pieces, EachNeighbourIsAskedForTheFirstPieceThatItOwes) {
  post();
  bench.take_log();
  for (uint32_t piece = 0; piece < kWindow; piece++) bench.deliver(data(2, piece));
  bench.deliver(data(0, 0));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>0 NACK seq=0 piece=1 origin=0\n"
            "send 1>3 NACK seq=0 piece=0 origin=3\n");
}

// Nothing has come of anybody: they have their turns, one at a time.
TEST_F(Pieces, OfThoseThatSeemLateOneIsAskedAtATime) {
  post();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK seq=0 piece=0 origin=0\n");
  bench.advance(2 * default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
  bench.advance(4 * default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK seq=0 piece=0 origin=0\n");
}

// But where something of the operation was lost: what seems late may have been as well.
TEST_F(Pieces, WhereSomethingWasLostAllThatSeemLateAreAsked) {
  post();
  bench.deliver(WireMaker::numbered(wire.alive(0), 1));
  const std::string of_0 = "send 1>0 NACK seq=0 piece=0 origin=0";
  EXPECT_NE(bench.take_wire_log().find(of_0), std::string::npos);
  bench.advance(default_timeouts().nack_ns);
  const std::string log = bench.take_wire_log();
  EXPECT_NE(log.find(of_0), std::string::npos) << log;
  EXPECT_NE(log.find("send 1>3 NACK seq=0 piece=0 origin=3"), std::string::npos) << log;
}

// Who has stopped is asked in every look, and takes nobody's turn.
TEST_F(Pieces, WhoHasStoppedTakesNoTurnOfTheLate) {
  post();
  bench.deliver(data(0, 0));
  bench.finish_all_dma();
  bench.take_log();
  for (uint32_t look = 0; look < 3; look++) {
    bench.advance(default_timeouts().nack_ns << look);
    EXPECT_EQ(bench.take_wire_log(),
              "send 1>0 NACK seq=0 piece=1 origin=0\n"
              "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n");
  }
}

// Rank 0 has sent its third piece, so its first two are lost: one question names both.
TEST_F(Pieces, AQuestionNamesWhatWasSentOfLaterPieces) {
  post();
  for (uint32_t piece = 0; piece < kWindow; piece++) {
    for (const uint32_t origin : {2u, 3u}) bench.deliver(data(origin, piece));
  }
  bench.deliver(data(0, kWindow));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  const uint64_t all = (uint64_t{1} << kWindow) - 1;
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>0 NACK seq=0 piece=0 origin=0 missing=0x" + hex(all) + "\n");
}

// The same of two ranks, in places of their own: of rank 2 only the second piece is missing.
TEST_F(Pieces, AQuestionNamesBlocksByPieceAndRank) {
  post();
  for (uint32_t piece = 0; piece < kWindow; piece++) bench.deliver(data(0, piece));
  bench.deliver(data(2, 0));
  bench.deliver(data(3, 1));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  // Bit 0: rank 3's piece 0; bit 3: rank 2's piece 1.
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x9\n");
}

TEST_F(Pieces, WhatAQuestionNamesOfSeveralPiecesIsSentAgain) {
  post();
  for (uint32_t piece = 0; piece < kWindow; piece++) bench.deliver(data(0, piece));
  bench.finish_all_dma();
  bench.port.take_sent();
  // Rank 3 gets the blocks of ranks 1 and 0 by way of this one.
  bench.deliver(wire.nack(3, shape, 0, 0, kRank, 1, 0x9));
  bench.finish_all_dma();
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].header.flags, PEAL_PACKET_REPAIR);
  EXPECT_EQ(sent[0].header.piece, 0u);
  EXPECT_EQ(sent[0].header.origin, 1u);
  EXPECT_EQ(sent[1].header.piece, 1u);
  EXPECT_EQ(sent[1].header.origin, 0u);
  EXPECT_EQ(sent[1].payload, pattern_block(0, 0, piece_bytes, piece_bytes));
}

// Of the window, no further than the last piece, and only behind those of all ranks over the hop.
TEST_F(Pieces, AQuestionForWhatCannotBeNamedIsRefused) {
  post();
  bench.take_log();
  EXPECT_EQ(change(wire.nack(2, shape, 0, 0, kRank, 0, uint64_t{1} << kWindow)),
            "+1 drop_fragment");
  EXPECT_EQ(change(wire.nack(3, shape, 0, 0, kRank, 1, uint64_t{1} << (2 * kWindow))),
            "+1 drop_fragment");
  EXPECT_EQ(change(wire.nack(3, shape, 0, 0, 0, 1, 0x2)), "+1 drop_fragment");
  EXPECT_EQ(change(wire.nack(2, shape, 0, 2 * kWindow - 1, kRank, 0, 0x2)), "+1 drop_piece");
  EXPECT_EQ(bench.take_log(), "");
  for (uint32_t piece = 0; piece < kPieces; piece++) deliver_piece(piece);
  bench.take_log();
  EXPECT_EQ(change(wire.nack(2, shape, 0, kPieces - 1, kRank, 0, 0x2)), "+1 drop_piece");
  EXPECT_EQ(bench.take_log(), "");
}

// Who asks for the piece behind the window has had all of the first: what lacks of that is lost. Of
// the second one it may lack something itself.
TEST_F(Pieces, WhoIsAskedForWhatItMayNotBeginAsks) {
  const TimeNs least_ns = default_timeouts().nack_ns / kPatienceLeast;
  const Frame question = wire.nack(2, shape, 0, kWindow, kRank, 0);
  const std::string not_yet = "send 1>2 NOT_YET seq=0 piece=" + std::to_string(kWindow) + " ";
  post();
  for (uint32_t piece = 0; piece < kWindow; piece++) {
    for (const uint32_t origin : {2u, 3u}) bench.deliver(data(origin, piece));
  }
  bench.finish_all_dma();
  bench.take_log();
  // It may be on its way, or in this card's queue.
  bench.deliver(question);
  EXPECT_EQ(bench.take_wire_log().rfind(not_yet, 0), 0u);
  bench.now += least_ns;
  bench.card().behind_ns = least_ns + 1;
  bench.deliver(question);
  EXPECT_EQ(bench.take_wire_log().rfind(not_yet, 0), 0u);
  bench.card().behind_ns = 0;
  bench.deliver(question);
  const std::string log = bench.take_wire_log();
  EXPECT_EQ(log.rfind("send 1>0 NACK seq=0 piece=0 origin=0\n" + not_yet, 0), 0u) << log;
  // Not again as soon, and whoever says "not yet" has lost nothing of another operation.
  bench.deliver(wire.not_yet(0, shape, 0, 0, 0, 0, static_cast<uint32_t>(bench.now / 1000)));
  bench.now += default_timeouts().nack_ns - 1;
  bench.deliver(question);
  EXPECT_EQ(bench.take_wire_log().rfind(not_yet, 0), 0u);
  bench.now += 1;
  bench.deliver(question);
  EXPECT_EQ(bench.take_wire_log().rfind("send 1>0 NACK seq=0 piece=0 origin=0\n", 0), 0u);
  EXPECT_TRUE(find_member(bench.card(), member.handle())->patience.lossless);
}

// Nobody before the post, nor for a piece that is being begun.
TEST_F(Pieces, WhoIsAskedForWhatItHasNotBegunDoesNotAsk) {
  bench.deliver(data(2, 0));
  bench.finish_all_dma();
  bench.now += default_timeouts().nack_ns / kPatienceLeast;
  bench.take_log();
  bench.deliver(wire.nack(2, shape, 0, kWindow, kRank, 0));
  EXPECT_EQ(bench.take_wire_log().find("NACK"), std::string::npos);
  bench.port.fail_allocations = {0, 100};
  post();
  bench.port.fail_allocations = {};
  bench.now += default_timeouts().nack_ns / kPatienceLeast;
  bench.take_log();
  bench.deliver(wire.nack(2, shape, 0, kWindow - 1, kRank, 0));
  EXPECT_EQ(bench.take_wire_log().find("NACK"), std::string::npos);
}

// Nothing has come of anybody, of two pieces: one has said why, and so lateness it is.
TEST_F(Pieces, WhatSeemsLateHasAPatienceOfItsOwn) {
  const TimeNs nack_ns = default_timeouts().nack_ns;
  post();
  bench.advance(nack_ns);
  bench.deliver(wire.not_yet(0, shape, 0, 0, 0, 0, static_cast<uint32_t>(bench.now / 1000),
                             PEAL_NOT_YET_LATE));
  bench.take_log();
  bench.advance(7 * nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.advance(24 * nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK seq=0 piece=0 origin=0\n");
}

// Where packets are lost those of who seems late may have been: a repair that was wanted, once that
// patience has been tried, halves it.
TEST_F(Pieces, AWantedRepairShortensThePatienceWithTheLate) {
  Member& own = *find_member(bench.card(), member.handle());
  own.late_patience.lossless = false;  // what the first one does is another matter
  post();
  bench.advance(default_timeouts().nack_ns);
  const TimeNs before_ns = own.late_patience.wait_ns;
  bench.deliver(wire.not_yet(0, shape, 0, 0, 0, 0, static_cast<uint32_t>(bench.now / 1000),
                             PEAL_NOT_YET_LATE));
  EXPECT_EQ(own.late_patience.wait_ns, 8 * before_ns);
  bench.advance(8 * before_ns);
  Frame repair = data(3, 0);
  WireMaker::make_repair(repair);
  bench.deliver(repair);
  EXPECT_EQ(own.late_patience.wait_ns, 4 * before_ns);
  bench.finish_all_dma();
}

// Rank 2 has sent the first of its two: the second is asked for as if nobody had ever been late.
TEST_F(Pieces, WhatHasBegunIsAskedForWhoeverIsLate) {
  const TimeNs nack_ns = default_timeouts().nack_ns;
  post();
  bench.advance(nack_ns);
  bench.deliver(wire.not_yet(0, shape, 0, 0, 0, 0, static_cast<uint32_t>(bench.now / 1000),
                             PEAL_NOT_YET_LATE));
  bench.deliver(data(2, 0));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(nack_ns - 1);
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.advance(1);
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 NACK seq=0 piece=1 origin=3 missing=0x3\n");
}

// A doubt asks for it without waiting for as long as lateness has lasted: that it is late teaches
// the patience that was waited for.
TEST_F(Pieces, WhatADoubtAsksForSaysNothingOfHowLateTheLateAre) {
  const TimeNs nack_ns = default_timeouts().nack_ns;
  Member& own = *find_member(bench.card(), member.handle());
  own.patience.lossless = false;  // what the first loss does is another matter
  post();
  bench.deliver(WireMaker::numbered(wire.alive(0), 1));  // asked for at once, and not answered
  const TimeNs late_ns = own.late_patience.wait_ns;
  const TimeNs patience_ns = own.patience.wait_ns;
  bench.now += nack_ns;
  bench.take_log();
  bench.advance(0);
  EXPECT_NE(bench.take_wire_log().find("send 1>0 NACK"), std::string::npos);
  bench.deliver(wire.not_yet(0, shape, 0, 0, 0, 0, static_cast<uint32_t>(bench.now / 1000),
                             PEAL_NOT_YET_LATE));
  EXPECT_EQ(own.late_patience.wait_ns, late_ns);
  EXPECT_GT(own.patience.wait_ns, patience_ns);
}

// --- who says that others are late ---

// Rank 3 asks for rank 0's block, of which nothing has come here either.
class LateForOthers : public Pieces {
 protected:
  const std::string waits = "send 1>3 NOT_YET seq=1 piece=0 origin=0\n";
  const std::string late = "send 1>3 NOT_YET seq=1 piece=0 origin=0 late\n";

  // Rank 0 was late for the operation before.
  void learn_lateness() {
    bench.advance(default_timeouts().nack_ns);
    bench.deliver(wire.not_yet(0, shape, 0, 0, 0, 0, static_cast<uint32_t>(bench.now / 1000),
                               PEAL_NOT_YET_LATE));
  }
  std::string answer() {
    bench.take_log();
    bench.deliver(wire.nack(3, shape, 1, 0, 0, 1));
    return bench.take_wire_log();
  }
};

TEST_F(LateForOthers, WhoKnowsNothingOfItWaitsAsWell) {
  post();
  post_next();
  EXPECT_EQ(answer(), waits);
}

TEST_F(LateForOthers, WhoHasLearnedThatRanksAreLateSaysSo) {
  post();
  post_next();
  learn_lateness();
  EXPECT_EQ(answer(), late);
}

// By questions of any kind.
TEST_F(LateForOthers, WhoHasLearnedPatienceSaysSo) {
  post();
  post_next();
  Member& own = *find_member(bench.card(), member.handle());
  own.patience.wait_ns = own.late_patience.wait_ns = default_timeouts().nack_ns + 1;
  EXPECT_EQ(answer(), late);
  own.patience.wait_ns = own.late_patience.wait_ns = default_timeouts().nack_ns;
  EXPECT_EQ(answer(), waits);
}

TEST_F(LateForOthers, WhoHasBegunIsNotLate) {
  post();
  post_next();
  learn_lateness();
  bench.deliver(wire.hopping(shape, 1, 1, 0, pattern_block(0, 0, piece_bytes, piece_bytes)));
  bench.finish_all_dma();
  EXPECT_EQ(answer(), waits);
}

TEST_F(LateForOthers, WhereSomethingOfTheOperationWasLostItMayBeLost) {
  post();
  post_next();
  learn_lateness();
  bench.deliver(WireMaker::numbered(wire.alive(0), 1));
  bench.deliver(wire.not_yet(0, shape, 0, 0, 0, 0, 0));  // so it is the second one's, or no one's
  EXPECT_EQ(answer(), waits);
}

// Whoever is late for one operation is late for the next.
TEST_F(Pieces, WhatSeemsLateIsAskedForByTheOldestOperation) {
  const TimeNs nack_ns = default_timeouts().nack_ns;
  post();
  post_next();
  bench.advance(nack_ns);
  bench.deliver(wire.not_yet(0, shape, 0, 0, 0, 0, static_cast<uint32_t>(bench.now / 1000),
                             PEAL_NOT_YET_LATE));
  bench.take_log();
  for (int i = 0; i < 40; i++) bench.advance(nack_ns);
  const std::string log = bench.take_wire_log();
  EXPECT_NE(log.find("NACK seq=0 "), std::string::npos) << log;
  EXPECT_EQ(log.find("NACK seq=1 "), std::string::npos) << log;
}

// Where nobody is known to be late it may be lost.
TEST_F(Pieces, WhereNobodyIsLateEachOperationAsks) {
  const TimeNs nack_ns = default_timeouts().nack_ns;
  post();
  post_next();
  bench.advance(nack_ns);
  bench.deliver(wire.not_yet(3, shape, 0, 0, 3, 1, static_cast<uint32_t>(bench.now / 1000),
                             PEAL_NOT_YET_WAITS));
  bench.take_log();
  bench.card().members[0].patience.wait_ns = nack_ns;  // whatever that has taught
  bench.advance(2 * nack_ns);
  const std::string log = bench.take_wire_log();
  EXPECT_NE(log.find("NACK seq=0 "), std::string::npos) << log;
  EXPECT_NE(log.find("NACK seq=1 "), std::string::npos) << log;
}

// What may still be asked for is kept: the own blocks of the last 2W pieces, whatever the user does
// to his buffer.
TEST_F(Pieces, TheLastPiecesAreRetainedAfterCompletion) {
  post();
  for (uint32_t piece = 0; piece < kPieces; piece++) deliver_piece(piece);
  expect_result();
  auto& user = bench.port.bytes(send.region);
  std::fill(user.begin(), user.end(), uint8_t{0x5c});
  bench.port.take_sent();
  for (uint32_t piece = kPieces - 2 * kWindow; piece < kPieces; piece++) {
    bench.deliver(wire.nack(2, shape, 0, piece, kRank, 0));
    bench.finish_all_dma();
    const auto sent = bench.port.take_sent();
    ASSERT_EQ(sent.size(), 1u) << piece;
    EXPECT_EQ(sent[0].header.type, PEAL_PACKET_DATA);
    EXPECT_EQ(sent[0].payload,
              pattern_block(0, kRank, uint64_t{piece} * piece_bytes, length(piece)));
  }
}

// Early pieces wait in the channel, also more of them than the window of a late host.
TEST_F(Pieces, EarlyPiecesWaitInTheChannel) {
  for (uint32_t piece = 0; piece < kWindow; piece++) deliver_piece(piece);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 3u * kWindow);
  post();
  for (uint32_t piece = kWindow; piece < kPieces; piece++) deliver_piece(piece);
  expect_result();
}

// Who has not posted knows only of what it has heard.
TEST_F(Pieces, BeforeThePostOnlyPiecesThatWereHeardOfAreAskedFor) {
  bench.deliver(data(2, 1));
  bench.finish_all_dma();
  bench.deliver(wire.nack(3, shape, 0, 1, 0, 1));
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  bench.advance(2 * default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>0 NACK seq=0 piece=1 origin=0\n"
            "send 1>3 NACK seq=0 piece=1 origin=3\n");
}

// The place of a piece that everybody has serves a later one: a late question is not about that.
TEST_F(Pieces, AQuestionOfLongAgoMakesNoDebt) {
  post();
  deliver_piece(0);
  bench.deliver(data(2, 2 * kWindow));  // in the place of piece 0
  bench.finish_all_dma();
  bench.take_log();
  EXPECT_EQ(change(wire.nack(3, shape, 0, 0, 0, 1)), "+1 drop_stale");
  EXPECT_EQ(bench.take_log(), "");
}

// All blocks of a piece have come, but do not all lie there: the window stays where it is.
TEST_F(Pieces, TheWindowWaitsForTheBytes) {
  post();
  own_pieces_sent();
  bench.take_log();
  for (const uint32_t origin : {0u, 2u, 3u}) bench.deliver(data(origin, 0));
  const std::string length = std::to_string(piece_bytes) + "\n";
  EXPECT_EQ(bench.take_log(), "dma_write receive+0 " + length +
                                  "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=" + length +
                                  "dma_write receive+" + std::to_string(2 * block) + " " + length +
                                  "dma_write receive+" + std::to_string(3 * block) + " " + length);
  bench.finish_all_dma();
  EXPECT_EQ(own_pieces_sent(), std::to_string(kWindow) + " ");
}

// Of the first piece nothing has come early, of the second something.
TEST_F(Pieces, EarlyDataBehindAHole) {
  bench.deliver(data(2, 1));
  bench.finish_all_dma();
  post();
  for (uint32_t piece = 0; piece < kPieces; piece++) deliver_piece(piece);
  expect_result();
}

// Early data lies in the channel, and there is no packet to carry it on: nothing will arrive that
// could bring the mover back.
TEST_F(Pieces, AMoverWithoutPacketsIsTriedAgainSoon) {
  deliver_piece(0);
  bench.port.fail_allocations = {kWindow, 1};  // the mover's; the own pieces find some
  bench.submit(allgather_entry(member, 0, 7, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, block, send.key,
                               receive.key));
  ASSERT_EQ(bench.port.dma_count(), size_t{kWindow});
  bench.port.fail_allocations = {0, kAlways};
  bench.finish_all_dma();
  bench.port.fail_allocations = {};
  EXPECT_EQ(own_pieces_sent(), "");
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  bench.finish_all_dma();
  EXPECT_EQ(own_pieces_sent(), std::to_string(kWindow) + " ");
}

// What was early is on its way into the channel still, and then out of it; what comes after the
// post takes no such way round.
TEST_F(Pieces, WhatComesWhileTheMoverIsAtWorkGoesStraightToTheUser) {
  bench.deliver(data(2, 0));
  bench.submit(allgather_entry(member, 0, 7, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, block, send.key,
                               receive.key));
  bench.take_log();
  bench.deliver(data(3, 0));
  EXPECT_EQ(bench.take_log(), "dma_write receive+" + std::to_string(3 * block) + " " +
                                  std::to_string(piece_bytes) + "\n");
  bench.finish_all_dma();
  bench.deliver(data(0, 0));
  bench.finish_all_dma();
  for (uint32_t piece = 1; piece < kPieces; piece++) deliver_piece(piece);
  expect_result();
}

// All of a piece has come, but a block of it lies in the channel still: its place is not free.
TEST_F(Pieces, TheWindowWaitsForTheMover) {
  deliver_piece(0);
  bench.port.fail_allocations = {kWindow + 2, kAlways};  // the mover's last
  post();
  bench.take_log();
  bench.port.fail_allocations = {1, kAlways};
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  EXPECT_EQ(bench.take_log(), "dma_read channel+" + std::to_string(3 * piece_bytes) + " " +
                                  std::to_string(piece_bytes) + "\n");
  bench.port.fail_allocations = {};
  bench.finish_all_dma();
  for (uint32_t piece = 1; piece < kPieces; piece++) deliver_piece(piece);
  expect_result();
}

// Two pieces came early. One of them is with the user, the mover is at the other: whoever waits for
// the own third does not wait for that.
TEST_F(Pieces, TheWindowDoesNotWaitForTheMoversNextPiece) {
  static_assert(kWindow >= 2 && kPieces > kWindow);
  deliver_piece(0);
  deliver_piece(1);
  bench.port.fail_allocations = {kWindow + 3, kAlways};  // the mover's of piece 1
  post();
  EXPECT_EQ(bench.port.dma_count(), 0u);
  bench.port.fail_allocations = {1, kAlways};
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  ASSERT_EQ(bench.port.dma_count(), 1u);
  bench.port.fail_allocations = {};
  bench.port.take_sent();
  bench.finish_dma(0);
  EXPECT_EQ(own_pieces_sent(), numbers(kWindow, kWindow + 1));
  bench.finish_all_dma();
  for (uint32_t piece = 2; piece < kPieces; piece++) deliver_piece(piece);
  expect_result();
}

}  // namespace
}  // namespace peal::test
