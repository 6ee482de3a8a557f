// SPDX-License-Identifier: BSD-2-Clause
// Broadcasts longer than the channel: the window of 2W pieces, and the credits that move it.
#include <cinttypes>
#include <cstdio>

#include "tests/support/log_lines.h"
#include "tests/unit/firmware/collective/broadcast/binomial_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kCreditPieces = std::max(CONFIG_PIECE_WINDOW / 2, 1);

class BinomialLong : public BinomialTest {
 protected:
  static constexpr uint32_t kPieces = 2 * kPlaces + 1;
  static constexpr size_t kLong = kPieces * kPiece - 100;

  // What was sent since the last call but data: "2>1 ...", one per line.
  std::string others() {
    std::string text;
    for (const Frame& frame : bench.port.take_sent()) {
      if (frame.header.type != PEAL_PACKET_DATA) text += frame_text(frame) + "\n";
    }
    bench.take_log();
    return text;
  }
  // What was completed since the last call.
  std::string completed() { return lines_that_begin(bench.take_log(), "complete"); }
  // Pieces of which data was sent since the last call, as "0 1 2", and how many packets.
  std::string data_sent() {
    std::string text;
    uint32_t last = ~0u;
    size_t packets = 0;
    for (const Frame& frame : bench.port.take_sent()) {
      if (frame.header.type != PEAL_PACKET_DATA) continue;
      packets++;
      if (frame.header.piece != last) text += std::to_string(frame.header.piece) + " ";
      last = frame.header.piece;
    }
    bench.take_log();
    return text + "packets " + std::to_string(packets);
  }
  static std::string expected(uint32_t first, uint32_t last, size_t packets) {
    std::string text;
    for (uint32_t piece = first; piece <= last; piece++) text += std::to_string(piece) + " ";
    return text + "packets " + std::to_string(packets);
  }
  // A question of the leaf's below root 2, for these fragments.
  static std::string asked(uint32_t piece, uint64_t missing, uint32_t credit) {
    char text[32];
    std::snprintf(text, sizeof(text), "0x%" PRIx64, missing);
    return "1>3 NACK seq=0 piece=" + std::to_string(piece) + " origin=2 missing=" + text +
           " credit=" + std::to_string(credit) + "\n";
  }
  // Below root 2, until the root can send piece 2W + pieces.
  static std::string credits_of_the_leaf(uint32_t pieces) {
    std::string text;
    for (uint32_t credit = kCreditPieces; credit < pieces + kCreditPieces; credit += kCreditPieces)
      text += "1>3 SIGNAL seq=0 credit=" + std::to_string(credit) + " origin=2 hop=2\n";
    return text;
  }
  void credit_all(uint32_t pieces) {
    bench.deliver(credit(2, 1, kLong, 0, pieces));
    bench.deliver(credit(3, 1, kLong, 1, pieces));
    bench.deliver(credit(5, 1, kLong, 2, pieces));
    bench.finish_all_dma();
  }
};

// --- the root ---

TEST_F(BinomialLong, TheRootWaitsForEveryChildsCredit) {
  post(0, 1, kLong);
  bench.finish_all_dma();
  EXPECT_EQ(data_sent(), expected(0, kPlaces - 1, 3 * kPlaces * kFragments));
  bench.deliver(credit(2, 1, kLong, 0, 2));
  bench.deliver(credit(3, 1, kLong, 1, 1));
  bench.finish_all_dma();
  EXPECT_EQ(data_sent(), "packets 0");
  bench.deliver(credit(5, 1, kLong, 2, 3));
  bench.finish_all_dma();
  // One child of three has one piece only.
  EXPECT_EQ(data_sent(), expected(kPlaces, kPlaces, 3 * kFragments));
  bench.deliver(credit(3, 1, kLong, 1, 3));
  bench.finish_all_dma();
  EXPECT_EQ(data_sent(), expected(kPlaces + 1, kPlaces + 1, 3 * kFragments));
}

TEST_F(BinomialLong, TheRootCompletesWhenAllIsSentAndNotBefore) {
  post(0, 1, kLong);
  bench.finish_all_dma();
  credit_all(kPlaces);
  bench.port.take_sent();
  EXPECT_EQ(completed(), "");
  credit_all(kPlaces + 1);
  std::vector<Frame> sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 3 * kFragments);
  EXPECT_EQ(sent.back().payload.size(), CONFIG_MTU_BYTES - 100u);
  EXPECT_EQ(completed(), "complete ctx0 cookie=100 OK\n");
  // What comes later changes nothing.
  EXPECT_EQ(change(credit(2, 1, kLong, 0, kPieces)), "+1 duplicate");
  overwrite();
  // The last pieces are kept until the operation is recycled; the first have given up their places.
  bench.deliver(question(3, 1, kLong, 1, kPieces - kPlaces, kAllFragments));
  bench.finish_all_dma();
  sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), kFragments);
  for (uint32_t i = 0; i < kFragments; i++) {
    EXPECT_TRUE(
        sent[i].payload ==
        pattern_block(0, 1, (kPieces - kPlaces) * kPiece + i * CONFIG_MTU_BYTES, CONFIG_MTU_BYTES));
  }
  EXPECT_EQ(change(question(3, 1, kLong, 1, kPieces - kPlaces - 1, 1)), "+1 drop_stale");
  EXPECT_EQ(others(), "");
}

// All but these are repaired from the user's memory, as long as that is the card's.
TEST_F(BinomialLong, OnlyTheLastPiecesGoToTheChannel) {
  const auto kept = [&] { return count_lines_that_begin(bench.take_log(), "dma_write channel"); };
  post(0, 1, kLong);
  bench.finish_all_dma();
  EXPECT_EQ(kept(), 0);
  credit_all(kPlaces);
  credit_all(kPlaces + 1);
  EXPECT_EQ(kept(), kPlaces * kFragments);
  // A relay as well.
  post(1, 0, kLong);
  for (uint32_t piece = 0; piece < kPieces; piece++) {
    deliver_piece(1, 0, kLong, piece);
    EXPECT_EQ(kept(), piece < kPieces - kPlaces ? 0 : kFragments) << piece;
    for (const uint32_t hop : {1u, 2u}) {
      bench.deliver(wire.credit(1 + (1 << hop), binomial_shape(kLong, 0), 1, hop, piece + 1));
    }
  }
  EXPECT_EQ(wrong_byte_of(1, 0, kLong), -1);
}

TEST_F(BinomialLong, WhereTheUsersMemoryMayNotBeReadAllGoesToTheChannel) {
  const Memory hidden = bench.add_memory("hidden", kLong, PEAL_ACCESS_WRITE);
  bench.submit(broadcast_entry(member, 0, 100, 0, kLong, 0, hidden.key));
  bench.deliver(packet(0, 0, kLong));
  bench.finish_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "dma_write channel"),
            "dma_write channel+0 " + std::to_string(CONFIG_MTU_BYTES) + "\n");
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(question(5, 0, kLong, 2, 0, 1));
  EXPECT_EQ(bench.take_log(), "dma_read channel+0 " + std::to_string(CONFIG_MTU_BYTES) + "\n");
}

TEST_F(BinomialLong, WhatIsNotKeptIsRepairedFromTheUsersMemory) {
  const std::string mtu = std::to_string(CONFIG_MTU_BYTES);
  post(0, 1, kLong);
  bench.finish_all_dma();
  bench.take_log();
  bench.port.take_sent();
  bench.deliver(question(3, 1, kLong, 1, 1, 0b100));
  EXPECT_EQ(bench.take_log(),
            "dma_read source+" + std::to_string(kPiece + 2 * CONFIG_MTU_BYTES) + " " + mtu + "\n");
  bench.finish_all_dma();
  const std::vector<Frame> sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(frame_text(sent[0]),
            "1>3 DATA seq=0 piece=1 origin=1 hop=1 frag=2 len=" + mtu + " repair");
  EXPECT_TRUE(sent[0].payload ==
              pattern_block(0, 1, kPiece + 2 * CONFIG_MTU_BYTES, CONFIG_MTU_BYTES));
}

// A relay's is the card's as long as it reads there.
TEST_F(BinomialLong, AnOperationWaitsForItsRepairsFromTheUsersMemory) {
  constexpr size_t kBytes = (kPlaces + 1) * kPiece;
  post(0, 0, kBytes);
  for (uint32_t piece = 0; piece < kPlaces; piece++) deliver_piece(0, 0, kBytes, piece);
  bench.take_log();
  bench.deliver(question(5, 0, kBytes, 2, 0, 1));
  EXPECT_EQ(bench.take_log(), "dma_read target+0 " + std::to_string(CONFIG_MTU_BYTES) + "\n");
  bench.deliver(credit(3, 0, kBytes, 1, 1));
  bench.deliver(credit(5, 0, kBytes, 2, 1));
  bench.port.take_sent();
  for (uint32_t fragment = 0; fragment < kFragments; fragment++) {
    bench.deliver(packet(0, 0, kBytes, kPlaces, fragment));
    for (int write = 0; write < 2; write++) bench.finish_dma(1);
  }
  EXPECT_EQ(completed(), "");
  bench.finish_all_dma();
  EXPECT_EQ(completed(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte_of(0, 0, kBytes), -1);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_REPAIR), 1u);
}

TEST_F(BinomialLong, AQuestionForWhatIsOnItsWayToTheUserIsKept) {
  post(0, 0, kLong);
  bench.deliver(packet(0, 0, kLong));
  bench.take_log();
  bench.deliver(question(5, 0, kLong, 2, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>5 NOT_YET seq=0 piece=0 origin=0\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "dma_read target+0 " + std::to_string(CONFIG_MTU_BYTES) + "\n");
  bench.port.take_sent();
  bench.finish_all_dma();
  const std::vector<Frame> sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].payload == pattern_block(0, 0, 0, CONFIG_MTU_BYTES));
}

TEST_F(BinomialLong, CreditsRepeatedAndOutOfOrder) {
  post(0, 1, kLong);
  bench.finish_all_dma();
  for (const auto& [sender, hop] : {std::pair{2u, 0u}, {3u, 1u}, {5u, 2u}}) {
    EXPECT_EQ(change(credit(sender, 1, kLong, hop, 2)),
              sender == 5 ? "+1 received, +" + std::to_string(8 * CONFIG_MTU_BYTES) +
                                " dma_read_bytes, +8 dma_operations"
                          : "+1 received");
    EXPECT_EQ(change(credit(sender, 1, kLong, hop, 2)), "+1 duplicate");
    EXPECT_EQ(change(credit(sender, 1, kLong, hop, 1)), "+1 duplicate");
    EXPECT_EQ(change(credit(sender, 1, kLong, hop, 0)), "+1 duplicate");
  }
  bench.finish_all_dma();
  EXPECT_EQ(data_sent(), expected(0, kPlaces + 1, 3 * (kPlaces + 2) * kFragments));
}

TEST_F(BinomialLong, ForgedCreditsChangeNothing) {
  post(0, 1, kLong);
  bench.finish_all_dma();
  bench.port.take_sent();
  // Of what has not been sent; beyond the operation; from no child, or by another's hop.
  EXPECT_EQ(change(credit(2, 1, kLong, 0, kPlaces + 1)), "+1 drop_piece");
  EXPECT_EQ(change(credit(2, 1, kLong, 0, kPieces + 1)), "+1 drop_piece");
  EXPECT_EQ(change(credit(2, 1, kLong, 0, ~0u)), "+1 drop_piece");
  EXPECT_EQ(change(credit(2, 1, kLong, 1, 1)), "+1 drop_hop");
  EXPECT_EQ(change(credit(0, 1, kLong, 0, 1)), "+1 drop_hop");
  EXPECT_EQ(change(credit(2, 1, kLong, 3, 1)), "+1 drop_hop");
  EXPECT_EQ(change(credit(2, 1, kLong, 255, 1)), "+1 drop_hop");
  Frame another_root = credit(2, 1, kLong, 0, 1);
  another_root.header.origin = 0;
  seal(another_root);
  EXPECT_EQ(change(another_root), "+1 drop_signature");
  bench.deliver(credit(3, 1, kLong, 1, 1));
  bench.deliver(credit(5, 1, kLong, 2, 1));
  bench.finish_all_dma();
  EXPECT_EQ(data_sent(), "packets 0");
}

TEST_F(BinomialLong, ACreditThatComesWithAQuestionCounts) {
  post(0, 1, kLong);
  bench.finish_all_dma();
  bench.port.take_sent();
  bench.take_log();
  bench.deliver(credit(2, 1, kLong, 0, 1));
  bench.deliver(credit(5, 1, kLong, 2, 1));
  bench.deliver(question(3, 1, kLong, 1, kPlaces, kAllFragments, 1));
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 NOT_YET seq=0 piece=4 origin=1\n");
  bench.finish_all_dma();
  EXPECT_EQ(data_sent(), expected(kPlaces, kPlaces, 3 * kFragments));
}

// Not all at once: other operations need packets and DMA records too.
TEST_F(BinomialLong, TheRootReadsAFewPacketsAtATime) {
  post(0, 1, kLong);
  EXPECT_EQ(bench.port.dma_count(), 8u);
  bench.finish_dma();
  EXPECT_EQ(bench.port.dma_count(), 8u);  // nothing to keep of the first pieces
  bench.finish_all_dma();
}

// --- a relay ---

TEST_F(BinomialLong, PiecesBeyondTheCreditsAreRefused) {
  post(0, 0, kLong);
  for (uint32_t piece = 0; piece < kPlaces; piece++) deliver_piece(0, 0, kLong, piece);
  EXPECT_EQ(others(), "");
  // It has them, but those below have not: their places may not be used again.
  EXPECT_EQ(change(packet(0, 0, kLong, kPlaces)), "+1 drop_piece");
  bench.deliver(credit(3, 0, kLong, 1, 1));
  EXPECT_EQ(change(packet(0, 0, kLong, kPlaces)), "+1 drop_piece");
  bench.deliver(credit(5, 0, kLong, 2, 1));
  EXPECT_EQ(change(packet(0, 0, kLong, kPlaces)), "+2 sent_data, +2 forwarded, +1 received, +" +
                                                      std::to_string(CONFIG_MTU_BYTES) +
                                                      " dma_write_bytes, +1 dma_operations");
  EXPECT_EQ(change(packet(0, 0, kLong, kPlaces + 1)), "+1 drop_piece");
  bench.finish_all_dma();
}

TEST_F(BinomialLong, ARelayCreditsWhatAllBelowHave) {
  post(0, 0, kLong);
  for (uint32_t piece = 0; piece < kPlaces; piece++) deliver_piece(0, 0, kLong, piece);
  EXPECT_EQ(others(), "");
  bench.deliver(credit(3, 0, kLong, 1, 3));
  EXPECT_EQ(others(), "");
  bench.deliver(credit(5, 0, kLong, 2, 1));
  EXPECT_EQ(others(), "1>0 SIGNAL seq=0 credit=1 origin=0 hop=0\n");
  bench.deliver(credit(5, 0, kLong, 2, 4));
  EXPECT_EQ(others(), "1>0 SIGNAL seq=0 credit=3 origin=0 hop=0\n");
}

TEST_F(BinomialLong, ARelayCreditsWhatItHasItself) {
  post(0, 0, kLong);
  for (const uint32_t piece : {1u, 2u}) deliver_piece(0, 0, kLong, piece);
  bench.deliver(packet(0, 0, kLong, 0, 0));
  // Nobody below can have what has not come here.
  EXPECT_EQ(change(credit(3, 0, kLong, 1, 1)), "+1 drop_piece");
  EXPECT_EQ(change(credit(3, 0, kLong, 1, 3)), "+1 drop_piece");
  for (uint32_t fragment = 1; fragment < kFragments; fragment++)
    bench.deliver(packet(0, 0, kLong, 0, fragment));
  // Arrived, but not in memory.
  bench.deliver(credit(3, 0, kLong, 1, 3));
  bench.deliver(credit(5, 0, kLong, 2, 3));
  EXPECT_EQ(others(), "");
  bench.finish_all_dma();
  EXPECT_EQ(others(), "1>0 SIGNAL seq=0 credit=3 origin=0 hop=0\n");
}

// --- a leaf ---

TEST_F(BinomialLong, ALeafCreditsEveryPieceAsLongAsTheRootNeedsIt) {
  post(0, 2, kLong);
  std::string all;
  for (uint32_t piece = 0; piece < kPieces; piece++) {
    deliver_piece(0, 2, kLong, piece);
    all += others();
  }
  EXPECT_EQ(all, credits_of_the_leaf(kPieces - kPlaces));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_SIGNAL),
            (kPieces - kPlaces + kCreditPieces - 1) / kCreditPieces);
  EXPECT_EQ(wrong_byte_of(0, 2, kLong), -1);
}

TEST_F(BinomialLong, WhatFitsTheWindowNeedsNoCredit) {
  post(0, 2, kPlaces * kPiece);
  for (uint32_t piece = 0; piece < kPlaces; piece++) {
    deliver_piece(0, 2, kPlaces * kPiece, piece);
    EXPECT_EQ(others(), "") << piece;
  }
  EXPECT_EQ(wrong_byte_of(0, 2, kPlaces * kPiece), -1);
}

TEST_F(BinomialLong, ALateHostHoldsUpTheWindow) {
  for (uint32_t piece = 0; piece < kPlaces; piece++) deliver_piece(0, 2, kLong, piece);
  EXPECT_EQ(others(), "");
  EXPECT_EQ(change(packet(0, 2, kLong, kPlaces)), "+1 drop_piece");
  // It has no reason to ask for anything.
  bench.advance(20 * default_timeouts().nack_max_ns);
  EXPECT_EQ(others(), "");
  post(0, 2, kLong);
  bench.finish_all_dma();
  EXPECT_EQ(others(), credits_of_the_leaf(kPlaces));
  for (uint32_t piece = kPlaces; piece < kPieces; piece++) deliver_piece(0, 2, kLong, piece);
  EXPECT_EQ(wrong_byte_of(0, 2, kLong), -1);
}

TEST_F(BinomialLong, ALostCreditGoesWithTheNextQuestion) {
  post(0, 2, kLong);
  for (uint32_t piece = 0; piece < kPlaces; piece++) deliver_piece(0, 2, kLong, piece);
  EXPECT_NE(others(), "");  // all of them lost
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(others(), asked(kPlaces, kAllFragments, kPlaces));
}

TEST_F(BinomialLong, NoPacketForACreditIsTriedAgain) {
  post(0, 2, kLong);
  for (uint32_t fragment = 0; fragment < kFragments; fragment++)
    bench.deliver(packet(0, 2, kLong, 0, fragment));
  bench.port.fail_allocations = {0, kAlways};
  bench.finish_all_dma();
  bench.port.fail_allocations = {};
  EXPECT_EQ(others(), "");
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  EXPECT_EQ(others(), "1>3 SIGNAL seq=0 credit=1 origin=2 hop=2\n");
}

// The parent asks for the credit that holds it up: it is said again, or why not.
TEST_F(BinomialLong, ACreditIsSaidAgainToWhoAsks) {
  for (uint32_t piece = 0; piece < kPlaces; piece++) deliver_piece(0, 2, kLong, piece);
  bench.deliver(question(3, 2, kLong, 2, 0, 0));
  EXPECT_EQ(others(), "1>3 NOT_YET seq=0 piece=0 origin=2 late\n");
  post(0, 2, kLong);
  bench.finish_all_dma();
  EXPECT_EQ(others(), credits_of_the_leaf(kPlaces));
  const auto before = bench.counters();
  bench.deliver(question(3, 2, kLong, 2, 0, 0));
  EXPECT_EQ(others(),
            "1>3 SIGNAL seq=0 credit=" + std::to_string(kPlaces) + " origin=2 hop=2 repair\n");
  EXPECT_EQ(bench.counter_changes(before), "+1 sent_repair, +1 received");
  bench.deliver(question(3, 2, kLong, 2, kPlaces, 0));
  EXPECT_EQ(others(), "1>3 NOT_YET seq=0 piece=" + std::to_string(kPlaces) + " origin=2\n");
  EXPECT_EQ(change(question(3, 2, kLong, 2, 0, 1)), "+1 drop_fragment");
  EXPECT_EQ(change(question(3, 2, kLong, 2, kPieces, 0)), "+1 drop_piece");
  EXPECT_EQ(change(question(3, 2, kLong, 1, 0, 0)), "+1 drop_hop");
  EXPECT_EQ(others(), "");
}

TEST_F(BinomialLong, TheRootAsksForTheCreditsThatHoldItUp) {
  post(0, 1, kLong);
  bench.finish_all_dma();
  bench.deliver(credit(3, 1, kLong, 1, 1));
  others();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(others(),
            "1>2 NACK seq=0 piece=0 origin=1 missing=0x0 credit=0\n"
            "1>5 NACK seq=0 piece=0 origin=1 missing=0x0 credit=0\n");
}

// A child's packet is numbered: that one before it is lost shows at once.
TEST_F(BinomialLong, ALostCreditIsAskedForAsSoonAsItShows) {
  post(0, 1, kLong);
  bench.finish_all_dma();
  bench.deliver(credit(2, 1, kLong, 0, 1));
  bench.deliver(credit(3, 1, kLong, 1, 1));
  others();
  bench.deliver(WireMaker::numbered(wire.alive(5), 1));
  EXPECT_EQ(others(), "1>5 NACK seq=0 piece=0 origin=1 missing=0x0 credit=0\n");
}

// --- questions ---

// A packet of another operation, or the answer to a probe: nothing of this one is behind it.
TEST_F(BinomialLong, AGapThatAnotherOperationShowsMayBeTheEnd) {
  const size_t block = 3 * CONFIG_MTU_BYTES;
  post(0, 2, block);
  bench.deliver(WireMaker::numbered(packet(0, 2, block, 0, 0), 1));
  bench.deliver(WireMaker::numbered(packet(0, 2, block, 0, 1), 2));
  bench.finish_all_dma();
  EXPECT_EQ(others(), "");
  bench.deliver(WireMaker::numbered(packet(1, 2, 8), 4));
  EXPECT_EQ(others(), "1>3 NACK seq=0 piece=0 origin=2 missing=0x4 credit=0\n");
  bench.finish_all_dma();
}

// Packets are numbered: at a gap what is missing before the last that came is asked for at once, be
// it the end of another piece; what is behind it is on its way.
TEST_F(BinomialLong, AGapIsAskedForAtOnce) {
  const auto numbered = [&](uint32_t piece, uint32_t fragment, uint32_t edge) {
    return WireMaker::numbered(packet(0, 2, kLong, piece, fragment), static_cast<uint8_t>(edge));
  };
  post(0, 2, kLong);
  for (uint32_t fragment = 0; fragment + 1 < kFragments; fragment++)
    bench.deliver(numbered(0, fragment, 1 + fragment));
  bench.finish_all_dma();
  EXPECT_EQ(others(), "");
  bench.deliver(numbered(1, 1, kFragments + 2));
  EXPECT_EQ(others(), asked(0, uint64_t{1} << (kFragments - 1), 0) + asked(1, 0b1, 0));
  bench.finish_all_dma();
}

TEST_F(BinomialLong, EveryPieceThatHasBegunIsAskedFor) {
  post(0, 2, kLong);
  for (const uint32_t fragment : {0u, 1u}) bench.deliver(packet(0, 2, kLong, 0, fragment));
  for (const uint32_t fragment : {3u, 5u}) bench.deliver(packet(0, 2, kLong, 2, fragment));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(others(), asked(0, kAllFragments & ~uint64_t{0b11}, 0) +
                          asked(2, kAllFragments & ~uint64_t{0b101000}, 0));
}

// --- death ---

// Nobody asks a leaf for anything: who waits for its credit must find out that its card is dead.
TEST_F(BinomialLong, WhoOwesACreditAndIsSilentIsDead) {
  post(0, 1, kLong);
  bench.finish_all_dma();
  bench.deliver(credit(2, 1, kLong, 0, 1));
  bench.deliver(credit(3, 1, kLong, 1, 1));
  bench.port.take_sent();
  bench.take_log();
  const CardTimeouts timeouts = default_timeouts();
  const TimeNs limit = bench.now + timeouts.nack_max_ns + 2 * timeouts.dead_ns;
  std::string log;
  while (bench.now < limit && log.find("complete") == std::string::npos) {
    if (!bench.advance_to_deadline()) break;
    log += bench.take_wire_log();
  }
  EXPECT_EQ(distinct_lines(log),
            "send 1>5 NACK seq=0 piece=0 origin=1 missing=0x0 credit=0\n"
            "send 1>5 PROBE\n"
            "send 1>2 DEATH rank=5\n"
            "send 1>0 DEATH rank=5\n"
            "send 1>3 DEATH rank=5\n"
            "send 1>5 DEATH rank=5\n"
            "complete ctx0 cookie=100 PEER_DEAD rank=5\n");
}

}  // namespace
}  // namespace peal::test
