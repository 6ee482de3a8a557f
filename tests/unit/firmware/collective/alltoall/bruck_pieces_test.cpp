// SPDX-License-Identifier: BSD-2-Clause
// Bruck's all-to-all of long blocks, piece by piece through the channel: how far it runs ahead,
// what waits for the bytes in the channel, what is retained there, and what faults end.
#include "firmware/collective/alltoall/bruck.h"

#include "firmware/group/inquiry.h"
#include "firmware/operation/layout.h"
#include "tests/support/log_lines.h"
#include "tests/unit/firmware/collective/alltoall/bruck_fixture.h"

namespace peal::test {
namespace {

// Rank 1 of 4 again, with blocks of more pieces than a channel has images: each of them a packet's
// payload, but for the last.
class BruckPieces : public BruckTest {
 protected:
  static constexpr uint32_t kPieces = 4 * kWindow + 1;
  static constexpr uint32_t kTail = 40;
  static constexpr size_t kPiece = CONFIG_MTU_BYTES;
  static constexpr size_t kLong = (kPieces - 1) * kPiece + kTail;

  BruckPieces() : BruckTest(4, 1, kLong) {
    EXPECT_EQ(piece_bytes_for(4 + 2 * 2), kPiece);
    bench.port.log_dma = false;
  }
  [[nodiscard]] static size_t length(uint32_t piece) {
    return piece + 1 == kPieces ? kTail : kPiece;
  }
  [[nodiscard]] static uint32_t fragments(uint32_t piece) { return piece + 1 == kPieces ? 1 : 2; }
  [[nodiscard]] std::vector<uint8_t> fragment_of(uint32_t sender, uint32_t piece, uint32_t k,
                                                 uint32_t fragment) const {
    const auto all = lot(sender, k, 0, piece * kPiece, length(piece));
    if (fragments(piece) == 1) return all;
    const auto first = all.begin() + static_cast<long>(fragment * kPiece);
    return {first, first + static_cast<long>(kPiece)};
  }
  [[nodiscard]] Frame part(uint32_t piece, uint32_t k, uint32_t fragment) const {
    return wire.bruck(bruck_shape(kLong), 0, piece, k, fragment,
                      fragment_of(above(k), piece, k, fragment));
  }
  void deliver_step(uint32_t piece, uint32_t k) {
    for (uint32_t fragment = 0; fragment < fragments(piece); fragment++)
      bench.deliver(part(piece, k, fragment));
    bench.finish_all_dma();
  }
  void deliver_piece(uint32_t piece) {
    deliver_step(piece, 0);
    deliver_step(piece, 1);
  }
  // What was sent since the last call: every packet compared, "piece.step.fragment" of each.
  std::string sent() {
    std::string text;
    for (const Frame& frame : bench.port.take_sent()) {
      const auto& header = frame.header;
      if (header.type != PEAL_PACKET_DATA) continue;
      text += std::to_string(header.piece) + "." + std::to_string(header.hop) + "." +
              std::to_string(header.fragment) + " ";
      EXPECT_EQ(frame.payload, fragment_of(rank, header.piece, header.hop, header.fragment))
          << text;
    }
    bench.take_log();
    return text;
  }
  // "p.k.0 p.k.1 "
  static std::string step_text(uint32_t piece, uint32_t k) {
    std::string text;
    for (uint32_t fragment = 0; fragment < fragments(piece); fragment++)
      text +=
          std::to_string(piece) + "." + std::to_string(k) + "." + std::to_string(fragment) + " ";
    return text;
  }
  void post_long() {
    post(0, kLong);
    bench.finish_all_dma();
  }
  void finish() {
    for (uint32_t piece = 0; piece < kPieces; piece++) {
      deliver_piece(piece);
      sent();
    }
  }
};

TEST_F(BruckPieces, GoAsFarAsTheWindow) {
  post_long();
  std::string expected;
  for (uint32_t piece = 0; piece < kWindow; piece++) expected += step_text(piece, 0);
  EXPECT_EQ(sent(), expected);
  for (uint32_t piece = 0; piece < kPieces; piece++) {
    deliver_step(piece, 0);
    EXPECT_EQ(sent(), step_text(piece, 1));
    deliver_step(piece, 1);
    EXPECT_EQ(sent(), piece + kWindow < kPieces ? step_text(piece + kWindow, 0) : "");
    ASSERT_EQ(bench.port.take_completions().size(), piece + 1 == kPieces ? 1u : 0u);
  }
  EXPECT_EQ(wrong_byte(0, kLong), -1);
}

// Who is asked for a step that waits for others' asks them, for the only piece: of several more is
// on its way. (Where packets are lost, and ranks are known to be late.)
class BruckAskedFor : public BruckPieces, public ::testing::WithParamInterface<size_t> {};

INSTANTIATE_TEST_SUITE_P(Pieces, BruckAskedFor, ::testing::Values(1, 2));

TEST_P(BruckAskedFor, ForTheOnlyPiece) {
  const size_t block = GetParam() * kPiece;
  note_loss(bench.card(), bench.card().members[0]);
  bench.card().members[0].patience.wait_ns = default_timeouts().dead_ns;
  post(0, block);
  bench.finish_all_dma();
  bench.advance(default_timeouts().nack_ns);
  bench.take_log();
  EXPECT_NE(answer(below(1), 1, block).find("NOT_YET"), std::string::npos);
  bench.advance(2);
  const std::string asked = lines_with(bench.take_wire_log(), " NACK ");
  EXPECT_EQ(asked.empty(), GetParam() != 1) << asked;
}

TEST_F(BruckPieces, InPlaceNothingIsWrittenOverWhatIsStillToBeRead) {
  put(result, 0, kLong);
  post_in_place(0, kLong);
  bench.finish_all_dma();
  std::string expected;
  for (uint32_t piece = 0; piece < kWindow; piece++) expected += step_text(piece, 0);
  EXPECT_EQ(sent(), expected);
  for (uint32_t piece = 0; piece < kPieces; piece++) {
    deliver_piece(piece);
    expected = step_text(piece, 1);
    if (piece + kWindow < kPieces) expected += step_text(piece + kWindow, 0);
    EXPECT_EQ(sent(), expected);
  }
  ASSERT_EQ(bench.port.take_completions().size(), 1u);
  EXPECT_EQ(wrong_byte(0, kLong), -1);
}

// A peer may be W pieces ahead of us, which is W more than we are; nobody is further.
TEST_F(BruckPieces, EarlyPiecesWaitInTheChannelAndThoseBeyondTheWindowAreRefused) {
  for (uint32_t piece = 0; piece < 2 * kWindow; piece++) deliver_piece(piece);
  EXPECT_EQ(change(part(2 * kWindow, 0, 0)), "+1 drop_piece");
  EXPECT_EQ(change(part(0, 1, 1)), "+1 duplicate");
  EXPECT_EQ(sent(), "");
  post_long();
  std::string expected;
  for (uint32_t piece = 0; piece < kWindow; piece++)
    expected += step_text(piece, 0) + step_text(piece, 1);
  EXPECT_EQ(sent().substr(0, expected.size()), expected);
  for (uint32_t piece = 2 * kWindow; piece < kPieces; piece++) deliver_piece(piece);
  ASSERT_EQ(bench.port.take_completions().size(), 1u);
  EXPECT_EQ(wrong_byte(0, kLong), -1);
}

TEST_F(BruckPieces, StepsThatWereSentAreRetainedForThePiecesThatMayBeAskedFor) {
  post_long();
  finish();
  ASSERT_EQ(bench.port.take_completions().size(), 1u);
  scribble();
  for (uint32_t piece = kPieces - 2 * kWindow; piece < kPieces; piece++) {
    const uint64_t all = (uint64_t{1} << fragments(piece)) - 1;
    answer(0, 0, kLong, piece, all);
    EXPECT_EQ(sent(), step_text(piece, 0));
    answer(3, 1, kLong, piece, all);
    EXPECT_EQ(sent(), step_text(piece, 1));
  }
  EXPECT_EQ(change(wire.nack(0, bruck_shape(kLong), 0, 0, 0, 0, 3)), "+1 drop_stale");
  EXPECT_EQ(change(part(kPieces - 1, 0, 0)), "+1 duplicate");
}

// Which of it were sent already says whether it may be asked for.
TEST_F(BruckPieces, OfAStepThatIsBeingSentOnlyWhatHasGoneIsRepaired) {
  post(0, kLong);
  while (bench.port.dma_count() > 0 && bench.counter(PEAL_COUNTER_SENT_DATA) == 0) {
    if (bench.port.dma(0).write) bench.port.fail_allocations = {1, 1};
    bench.finish_dma();
  }
  ASSERT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 1u);
  bench.port.fail_allocations = {};
  bench.port.take_sent();
  bench.deliver(wire.nack(0, bruck_shape(kLong), 0, 0, 0, 0, 2));
  bench.take_log();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NOT_YET), 1u);
  bench.deliver(wire.nack(0, bruck_shape(kLong), 0, 0, 0, 0, 3));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_REPAIR), 1u);
}

TEST_F(BruckPieces, AFirstStepWaitsForAllOwnBlocksInTheChannel) {
  post(0, kLong);
  const uint32_t blocks = 4;
  uint32_t written = 0;
  while (written < blocks) {
    EXPECT_EQ(sent(), "");
    const HeldDma& first = bench.port.dma(0);
    EXPECT_TRUE(first.write || first.bytes == kPiece);
    if (first.write && first.host.offset < CONFIG_CHANNEL_BYTES / (2 * kWindow)) written++;
    EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 0u);
    bench.finish_dma();
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 2u);
  bench.finish_all_dma();
}

TEST_F(BruckPieces, TheNextStepWaitsForTheBytesInTheChannel) {
  post_long();
  sent();
  const uint64_t before = bench.counter(PEAL_COUNTER_SENT_DATA);
  bench.deliver(part(0, 0, 0));
  bench.deliver(part(0, 0, 1));
  ASSERT_EQ(bench.port.dma_count(), 2u);
  bench.finish_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), before);
  bench.finish_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), before + 2);
  bench.finish_all_dma();
  EXPECT_EQ(sent(), step_text(0, 1));
}

// Nor is a piece's result taken from the channel before its last bytes are in it.
TEST_F(BruckPieces, TheResultWaitsForTheBytesInTheChannel) {
  post_long();
  deliver_step(0, 0);
  sent();
  bench.port.log_dma = true;
  bench.deliver(part(0, 1, 0));
  bench.deliver(part(0, 1, 1));
  const std::string log = bench.take_log();
  EXPECT_EQ(log, "dma_write channel+" + std::to_string(2 * CONFIG_MTU_BYTES) + " " + kMtuText +
                     "\n"
                     "dma_write channel+" +
                     std::to_string(3 * CONFIG_MTU_BYTES) + " " + kMtuText + "\n");
  bench.finish_all_dma();
  std::string written;
  for (const uint32_t from : {1u, 2u, 3u, 0u})
    written += "dma_write result+" + std::to_string(from * kLong) + " " + kMtuText + "\n";
  EXPECT_EQ(lines_that_begin(bench.take_log(), "dma_write result"), written);
}

// Rank 3 owes step 1 of every piece, rank 2 step 0 of all but the first.
TEST_F(BruckPieces, EachNeighbourIsAskedForTheFirstPieceThatItOwes) {
  post_long();
  deliver_step(0, 0);
  if (kWindow > 1) bench.deliver(part(1, 0, 1));
  bench.finish_all_dma();
  bench.take_log();
  bench.port.take_sent();
  bench.advance(default_timeouts().nack_ns);
  std::string expected = "send 1>3 NACK seq=0 piece=0 step=1 missing=0x3\n";
  if (kWindow > 1) expected += "send 1>2 NACK seq=0 piece=1 step=0 missing=0x1\n";
  EXPECT_EQ(bench.take_wire_log(), expected);
}

// Whoever owes several pieces has most likely not begun, or sends them one after the other.
TEST_F(BruckPieces, ANeighbourIsAskedForOnePieceAtATime) {
  post_long();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>2 NACK seq=0 piece=0 step=0 missing=0x3\n");
}

class BruckPiecesFault : public BruckPieces, public ::testing::WithParamInterface<uint32_t> {
 protected:
  void expect_fault() {
    const auto done = bench.port.take_completions();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(status_text(done[0].second.status), "DMA_FAULT");
    EXPECT_EQ(done[0].second.failed_rank, 1u);
  }
};

// Own blocks: from the user, and into the channel.
class BruckOwnFault : public BruckPiecesFault {};
INSTANTIATE_TEST_SUITE_P(Transfers, BruckOwnFault, ::testing::Range(0u, 8u * CONFIG_PIECE_WINDOW));

TEST_P(BruckOwnFault, EndsTheOperationByName) {
  bench.port.fault_dmas = {GetParam(), 1};
  post_long();
  expect_fault();
}

// What came into the channel, four blocks from there and to the user.
class BruckResultFault : public BruckPiecesFault {};
INSTANTIATE_TEST_SUITE_P(Transfers, BruckResultFault, ::testing::Range(0u, 9u));

TEST_P(BruckResultFault, EndsTheOperationByName) {
  post_long();
  deliver_step(0, 0);
  bench.deliver(part(0, 1, 0));
  bench.finish_all_dma();
  ASSERT_EQ(bench.port.take_completions().size(), 0u);
  bench.port.fault_dmas = {GetParam(), 1};
  bench.deliver(part(0, 1, 1));
  bench.finish_all_dma();
  expect_fault();
}

// A packet that could not be filled is lost like any other, and asked for.
TEST_F(BruckPieces, APacketThatCannotBeReadIsLost) {
  bench.port.fault_dmas = {8 * kWindow, 1};
  post_long();
  std::string text = step_text(0, 0);
  for (uint32_t piece = 1; piece < kWindow; piece++) text += step_text(piece, 0);
  EXPECT_EQ(sent(), text.substr(text.find(' ') + 1));
  answer(0, 0, kLong, 0, 1);
  EXPECT_EQ(sent(), "0.0.0 ");
}

}  // namespace
}  // namespace peal::test
