// SPDX-License-Identifier: BSD-2-Clause
// The direct allgather: what is its own beside the direct all-to-all, whose machine it shares
// (alltoall/direct_test.cpp): one block for all, read once, kept once. As rank 1 of 8 sees it,
// whose peers are all but 4 and 6, and among a few real cards.
#include "firmware/collective/allgather/direct.h"

#include <array>

#include "firmware/operation/layout.h"
#include "tests/support/cluster.h"
#include "tests/support/log_lines.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kWindow = CONFIG_PIECE_WINDOW;

OperationShape shape(uint64_t block) {
  return {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_DIRECT, block};
}

BenchOptions with_tables(uint32_t packet_buffers = 0, bool keeps_early = false) {
  BenchOptions options;
  options.tables = true;
  options.keeps_early = keeps_early;
  if (packet_buffers > 0) options.packet_buffers = packet_buffers;
  return options;
}

class DirectOne : public GroupTest {
 protected:
  static constexpr size_t kMost = (2 * kWindow + 2) * CONFIG_MTU_BYTES;

  explicit DirectOne(const BenchOptions& options = with_tables())
      : GroupTest(8, 1, options),
        given(bench.add_memory("given", kMost, PEAL_ACCESS_READ)),
        result(bench.add_memory("result", kMost * 8)) {
    bench.take_log();
  }

  void post(size_t block = kBlock, bool in_place = false) {
    auto& bytes = bench.port.bytes(in_place ? result.region : given.region);
    const auto own = pattern_block(0, rank, 0, block);
    std::copy(own.begin(), own.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(in_place ? rank * block : 0));
    peal_submission entry = allgather_entry(member, 0, 100, PEAL_ALGORITHM_DIRECT, block,
                                            in_place ? 0 : given.key, result.key);
    if (in_place) entry.flags = PEAL_SUBMIT_IN_PLACE;
    bench.submit(entry);
  }
  // The user takes both buffers back.
  void scribble() {
    for (const Memory& memory : {given, result}) {
      auto& bytes = bench.port.bytes(memory.region);
      std::fill(bytes.begin(), bytes.end(), uint8_t{0x5c});
    }
  }
  [[nodiscard]] bool right(size_t block = kBlock) {
    const auto expected = pattern_result(0, ranks, block);
    return std::equal(expected.begin(), expected.end(), bench.port.bytes(result.region).begin());
  }
  [[nodiscard]] std::vector<uint8_t> part(uint32_t of, size_t block, uint32_t piece) const {
    const uint32_t most = piece_bytes_for(ranks);
    const size_t before = size_t{piece} * most;
    return pattern_block(0, of, before, std::min<size_t>(block - before, most));
  }
  void deliver(uint32_t sender, size_t block = kBlock, uint32_t piece = 0) {
    bench.deliver(wire.direct(sender, shape(block), 0, piece, part(sender, block, piece)));
  }
  void deliver_all(size_t block = kBlock, uint32_t piece = 0) {
    for (uint32_t sender = 0; sender < ranks; sender++) {
      if (sender != rank) deliver(sender, block, piece);
      bench.finish_all_dma();
    }
  }
  void nack(uint32_t asker, size_t block = kBlock, uint32_t piece = 0) {
    bench.take_log();
    bench.port.take_sent();
    bench.deliver(wire.nack(asker, shape(block), 0, piece, rank, 0));
  }
  // What the answer to a question carries.
  std::vector<uint8_t> repaired(uint32_t asker, size_t block, uint32_t piece) {
    nack(asker, block, piece);
    bench.finish_all_dma();
    const auto sent = bench.port.take_sent();
    return sent.size() == 1 ? sent[0].payload : std::vector<uint8_t>{};
  }

  Memory given;
  Memory result;
};

// A card of eight packets, which knows it.
class DirectOneOfEightPackets : public DirectOne {
 protected:
  DirectOneOfEightPackets() : DirectOne(with_tables(8, true)) {}
};

TEST_F(DirectOneOfEightPackets, HalfOfThePacketsAreLeftToWhatArrives) {
  for (const uint32_t sender : {0u, 2u, 3u, 5u, 7u}) deliver(sender);
  post();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "dma_read given"), "");
  bench.finish_dma(0);
  EXPECT_EQ(lines_that_begin(bench.take_log(), "dma_read given"), "dma_read given+0 64\n");
  while (bench.port.dma_count() > 0) {
    bench.finish_dma(0);
    bench.port.take_sent();
  }
}

// The one block's pieces go at the pace of the slowest, rank 4, whose second one is missing. The
// others have sent all that they may and wait, as this rank does, which has been told that ranks
// are late.
class DirectOneHeldUp : public DirectOne {
 protected:
  static constexpr size_t kLong = 2 * kWindow * CONFIG_MTU_BYTES;
  const TimeNs soon = default_timeouts().nack_ns / 16;

  DirectOneHeldUp() {
    bench.card().members[0].patience.wait_ns = default_timeouts().dead_ns;
    post(kLong);
    bench.finish_all_dma();
    deliver_all(kLong, 0);
    for (uint32_t piece = 1; piece <= kWindow; piece++) {
      for (const uint32_t sender : {0u, 2u, 3u, 5u, 6u, 7u}) deliver(sender, kLong, piece);
      bench.finish_all_dma();
    }
    bench.advance(soon);
  }
  // The questions that one for this piece leads to.
  std::string asked_by(uint32_t asker, uint32_t piece) {
    nack(asker, kLong, piece);
    bench.advance(soon);
    return lines_with(bench.take_wire_log(), " NACK ");
  }
};

// Where packets are lost it asks when it is asked, once in a silence.
TEST_F(DirectOneHeldUp, IsAskedWhenOthersAsk) {
  bench.card().members[0].membership.losses = true;
  char expected[80];
  std::snprintf(expected, sizeof(expected), "send 1>4 NACK seq=0 piece=1 origin=4 missing=0x%x\n",
                (1u << kWindow) - 1);
  EXPECT_EQ(asked_by(5, kWindow + 1), expected);
  EXPECT_EQ(asked_by(6, kWindow + 1), "");
}

TEST_F(DirectOneHeldUp, IsLateWhereNothingIsLost) { EXPECT_EQ(asked_by(5, kWindow + 1), ""); }

TEST_F(DirectOne, TheBlockIsReadOnceForEverybodyAndKeptOnce) {
  post();
  EXPECT_EQ(bench.take_log(), "dma_read addresses+0 160\ndma_read given+0 64\n");
  bench.finish_all_dma();
  const std::string kept = "dma_write channel+" + kMtuText + " 64\n";
  EXPECT_EQ(bench.take_log(), kept +
                                  "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
                                  "send 1>3 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
                                  "send 1>4 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
                                  "send 1>5 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
                                  "send 1>6 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
                                  "send 1>7 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
                                  "send 1>0 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
                                  "dma_write result+64 64\n");
  for (const Frame& sent : bench.port.take_sent()) EXPECT_EQ(sent.payload, part(1, kBlock, 0));
  deliver_all();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_TRUE(right());
}

TEST_F(DirectOne, EverythingBeforeThePost) {
  deliver_all();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 7u);
  post();
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 7u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_TRUE(right());
  scribble();
  for (const uint32_t asker : {0u, 4u, 6u})
    EXPECT_EQ(repaired(asker, kBlock, 0), part(1, kBlock, 0));
}

// In place the own block lies where it belongs, and nothing is in the way of the others.
TEST_F(DirectOne, InPlaceTheOwnBlockIsOnlyKeptAndTheOthersLandAtOnce) {
  post(kBlock, true);
  bench.take_log();
  deliver(2);
  deliver(0);
  EXPECT_EQ(bench.take_log(), "dma_write result+128 64\ndma_write result+0 64\n");
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "dma_write result"), "");
  deliver_all();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_TRUE(right());
  scribble();
  EXPECT_EQ(repaired(4, kBlock, 0), part(1, kBlock, 0));
}

// The operation is not over yet, so the user's memory answers.
TEST_F(DirectOne, WhatIsOnItsWayIntoTheChannelIsRepairedFromTheUsersMemory) {
  post();
  bench.finish_dma();  // the addresses
  bench.finish_dma();  // the block
  nack(4);
  EXPECT_EQ(bench.take_log(), "dma_read given+0 64\n");
  bench.finish_all_dma();
  nack(4);
  EXPECT_EQ(bench.take_log(), "dma_read channel+" + kMtuText + " 64\n");
  bench.finish_all_dma();
  deliver_all();
  EXPECT_TRUE(right());
}

TEST_F(DirectOne, NothingIsReadOrSentBeforeThePost) {
  nack(4);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>4 NOT_YET seq=0 piece=0 origin=1 late\n");
}

// Each piece is read once; of those that nobody can ask for after the end nothing is kept.
TEST_F(DirectOne, ALongBlockIsReadOnceAndItsLastPiecesAreKept) {
  const uint32_t count = 2 * kWindow;
  const size_t block = (count - 1) * CONFIG_MTU_BYTES + 100;
  post(block);
  bench.finish_all_dma();
  for (uint32_t piece = 0; piece < count; piece++) deliver_all(block, piece);
  ASSERT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_TRUE(right(block));
  // A table of addresses; own pieces in, out, and the last of them kept; seven others' out.
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_OPERATIONS), 1 + 2 * count + kWindow + 7 * count);
  scribble();
  for (uint32_t piece = kWindow; piece < count; piece++) {
    for (const uint32_t asker : {0u, 4u, 7u})
      EXPECT_EQ(repaired(asker, block, piece), part(1, block, piece)) << piece;
  }
  EXPECT_EQ(repaired(4, block, kWindow - 1), std::vector<uint8_t>{});
}

class DirectOneLate : public DirectOne {
 protected:
  using Sent = std::array<uint32_t, 2>;  // pieces that went to rank 4, and to another
  static constexpr uint32_t kCount = 2 * kWindow + 2;
  static constexpr size_t kLong = kCount * CONFIG_MTU_BYTES;

  explicit DirectOneLate(const BenchOptions& options = with_tables()) : DirectOne(options) {}

  // Of all but rank 4.
  void deliver_others(uint32_t piece) {
    for (const uint32_t sender : {0u, 2u, 3u, 5u, 6u, 7u}) {
      deliver(sender, kLong, piece);
      bench.finish_all_dma();
    }
  }
  Sent sent_to_4_and_5() {
    Sent sent = {};
    for (const Frame& frame : bench.port.take_sent()) {
      if (frame.header.member == member.everybody[4].member) ++sent[0];
      if (frame.header.member == member.everybody[5].member) ++sent[1];
    }
    return sent;
  }
  // Rank 4 sends what it has not, then the others.
  void deliver_rest(uint32_t others_from) {
    for (uint32_t piece = 1; piece < kCount; piece++) deliver(4, kLong, piece);
    bench.finish_all_dma();
    for (uint32_t piece = others_from; piece < kCount; piece++) deliver_others(piece);
    EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
    EXPECT_TRUE(right(kLong));
  }
  uint64_t reads() { return bench.counter(PEAL_COUNTER_DMA_READ_BYTES) / CONFIG_MTU_BYTES; }
};

// The others read for themselves; it gets what it lacks by reads of its own, one for each piece.
TEST_F(DirectOneLate, WhoHasNotComeIsNotWaitedFor) {
  post(kLong);
  bench.finish_all_dma();
  for (uint32_t piece = 0; piece < kCount; piece++) deliver_others(piece);
  EXPECT_EQ(sent_to_4_and_5(), (Sent{kWindow, kCount}));
  EXPECT_EQ(reads(), kCount);
  for (uint32_t piece = 0; piece < kCount; piece++) {
    deliver(4, kLong, piece);
    bench.finish_all_dma();
  }
  EXPECT_EQ(sent_to_4_and_5(), (Sent{kCount - kWindow, 0}));
  EXPECT_EQ(reads(), kCount + kCount - kWindow);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_TRUE(right(kLong));
}

// What has begun to come is waited for: else everybody would be read for alone.
TEST_F(DirectOneLate, WhoHasComeIsWaitedFor) {
  post(kLong);
  bench.finish_all_dma();
  deliver(4, kLong, 0);
  for (uint32_t piece = 0; piece < kWindow + 1; piece++) deliver_others(piece);
  EXPECT_EQ(sent_to_4_and_5(), (Sent{kWindow + 1, kWindow + 1}));
  deliver_rest(kWindow + 1);
  EXPECT_EQ(sent_to_4_and_5(), (Sent{kCount - kWindow - 1, kCount - kWindow - 1}));
  EXPECT_EQ(reads(), kCount);
}

// It is the slowest then: the others need its block as well.
TEST_F(DirectOneLate, WhoComesLateIsWaitedFor) {
  post(kLong);
  bench.finish_all_dma();
  for (uint32_t piece = 0; piece < kWindow; piece++) deliver_others(piece);
  sent_to_4_and_5();
  deliver(4, kLong, 0);
  bench.finish_all_dma();
  EXPECT_EQ(sent_to_4_and_5(), (Sent{1, 0}));
  deliver_others(kWindow);
  EXPECT_EQ(sent_to_4_and_5(), (Sent{0, 0}));
  deliver_rest(kWindow + 1);
}

// A card that knows how many packets it has keeps what it has read for who comes late, as many as a
// sixteenth of these.
class DirectAtHand : public DirectOneLate, public ::testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr uint32_t kPackets = 16;  // for each that may stay
  static constexpr uint32_t kLate = kCount - kWindow;

  DirectAtHand() : DirectOneLate(with_tables(kPackets * GetParam(), true)) {}

  // Rank 4 has got W pieces, the others all; of what it lacks so many lie on the card.
  [[nodiscard]] static uint32_t stay() { return std::min(GetParam(), kLate); }
  void give_to_all_but_4() {
    post(kLong);
    bench.finish_all_dma();
    for (uint32_t piece = 0; piece < kCount; piece++) {
      deliver_others(piece);
      bench.port.take_sent();
    }
    EXPECT_EQ(bench.port.packets_unsent(), stay());
  }
};
INSTANTIATE_TEST_SUITE_P(OfPackets, DirectAtHand,
                         ::testing::Range(1u, uint32_t{CONFIG_PACKET_BUFFERS} / 16 + 1));

TEST_P(DirectAtHand, WhoComesLateGetsWhatWasReadForTheOthers) {
  give_to_all_but_4();
  EXPECT_EQ(reads(), kCount);
  std::vector<uint8_t> got;
  for (uint32_t piece = 0; piece < kCount; piece++) {
    deliver(4, kLong, piece);
    bench.finish_all_dma();
    for (const Frame& frame : bench.port.take_sent()) {
      EXPECT_EQ(frame.header.member, member.everybody[4].member);
      EXPECT_EQ(frame.header.payload_crc,
                reference_crc32c(frame.payload.data(), frame.payload.size()));
      got.insert(got.end(), frame.payload.begin(), frame.payload.end());
    }
  }
  EXPECT_EQ(got, pattern_block(0, rank, size_t{kWindow} * CONFIG_MTU_BYTES,
                               size_t{kLate} * CONFIG_MTU_BYTES));
  EXPECT_EQ(reads(), kCount + kLate - stay());
  EXPECT_EQ(bench.port.packets_unsent(), 0u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_TRUE(right(kLong));
}

TEST_P(DirectAtHand, WithoutPacketsToSendItInItWaits) {
  give_to_all_but_4();
  bench.port.fail_allocations = {0, kAlways};
  deliver(4, kLong, 0);
  bench.finish_all_dma();
  EXPECT_EQ(sent_to_4_and_5(), (Sent{0, 0}));
  EXPECT_EQ(bench.port.packets_unsent(), stay());
  bench.port.fail_allocations = {};
  bench.advance_to_deadline();
  bench.finish_all_dma();
  EXPECT_EQ(sent_to_4_and_5(), (Sent{1, 0}));
  for (uint32_t piece = 1; piece < kCount; piece++) deliver(4, kLong, piece);
  bench.finish_all_dma();
  bench.port.take_sent();
  EXPECT_EQ(reads(), kCount + kLate - stay());
  EXPECT_EQ(bench.port.packets_unsent(), 0u);
}

TEST_P(DirectAtHand, WhoGotNoPacketGetsItFromThere) {
  post(kLong);
  bench.finish_all_dma();
  for (uint32_t piece = 0; piece + 1 < kWindow; piece++) deliver_others(piece);
  bench.port.take_sent();
  bench.take_log();
  // To read the next pieces into, and hardly any to send them in.
  bench.port.fail_allocations = {3, kAlways};
  deliver_others(kWindow - 1);
  auto sent = bench.port.take_sent();
  EXPECT_LT(sent.size(), 6u);
  bench.port.fail_allocations = {};
  bench.advance_to_deadline();
  bench.finish_all_dma();
  for (Frame& frame : bench.port.take_sent()) sent.push_back(std::move(frame));
  const auto is_that = [](const Frame& frame) { return frame.header.piece == kWindow; };
  EXPECT_EQ(std::count_if(sent.begin(), sent.end(), is_that), 6);
  const std::string read =
      "dma_read given+" + std::to_string(kWindow * CONFIG_MTU_BYTES) + " " + kMtuText + "\n";
  EXPECT_EQ(lines_that_begin(bench.take_log(), read), read);
  for (uint32_t piece = 0; piece < kCount; piece++) {
    deliver(4, kLong, piece);
    if (piece >= kWindow) deliver_others(piece);
    bench.advance_to_deadline();
    bench.finish_all_dma();
    bench.port.take_sent();
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_TRUE(right(kLong));
}

// The first W go to all at once, so that who lacks one of them is not late.
TEST_P(DirectAtHand, OfTheFirstPiecesNothingStays) {
  // To read them into, and hardly any to send them in.
  bench.port.fail_allocations = {kWindow + 2, kAlways};
  post(kLong);
  bench.finish_all_dma();
  const size_t sent = bench.port.take_sent().size();
  EXPECT_GT(sent, 0u);
  EXPECT_LT(sent, size_t{kWindow} * 7);
  EXPECT_EQ(bench.port.packets_unsent(), 0u);
  bench.port.fail_allocations = {};
  for (uint32_t piece = 0; piece < kCount; piece++) {
    bench.advance_to_deadline();
    bench.finish_all_dma();
    deliver(4, kLong, piece);
    deliver_others(piece);
    bench.finish_all_dma();
    bench.port.take_sent();
  }
  bench.advance_to_deadline();
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_TRUE(right(kLong));
}

// Refused, or its host gone: nobody will want it.
TEST_P(DirectAtHand, WhatNobodyWantsIsLetGo) {
  give_to_all_but_4();
  bench.deliver(wire.direct(4, shape(kLong - 1), 0, 0, part(4, kLong, 0)));
  bench.finish_all_dma();
  bench.port.take_sent();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=100 MISMATCH rank=4\n");
  EXPECT_EQ(bench.port.packets_unsent(), 0u);
}

TEST_P(DirectAtHand, WhoseHostIsGoneKeepsNothing) {
  give_to_all_but_4();
  card_close_context(bench.card(), bench.context(), bench.now);
  bench.finish_all_dma();
  bench.port.take_sent();
  EXPECT_EQ(bench.port.packets_unsent(), 0u);
}

TEST_F(DirectOne, NoBytes) {
  post(0);
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 7u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_OPERATIONS), 1u);  // the addresses
  deliver_all(0);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
}

TEST_F(DirectOne, AFaultOfTheUsersMemoryIsToldToAll) {
  bench.port.fault_dmas = {1, 1};
  post();
  bench.take_log();
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 0u);
}

class DirectOneOfFewBuffers : public DirectOne {
 protected:
  DirectOneOfFewBuffers() : DirectOne(with_tables(4)) {}
};

// One packet is read into, three are sent. Then there is but one left, which is read into and sent.
TEST_F(DirectOneOfFewBuffers, WhoeverGotNoPacketGetsItByAnotherRead) {
  post();
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>3 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>4 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>5 DATA seq=0 piece=0 origin=1 hop=0 len=64\n");
  bench.port.take_sent();
  bench.advance(default_timeouts().nack_ns / 2);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>6 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>7 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>0 DATA seq=0 piece=0 origin=1 hop=0 len=64\n");
}

class DirectCluster : public Cluster {
 public:
  explicit DirectCluster(uint32_t ranks, uint32_t packet_buffers = 0)
      : Cluster(ranks, with_tables(packet_buffers)) {}
  void post_all(uint64_t sequence, size_t block, bool in_place = false) {
    for (uint32_t rank = 0; rank < ranks(); rank++)
      allgather(rank, sequence, PEAL_ALGORITHM_DIRECT, block, in_place);
  }
  void expect_right(uint64_t sequence, size_t block) {
    for (uint32_t rank = 0; rank < ranks(); rank++)
      ASSERT_EQ(check_result(rank, sequence, block), "") << "blocks of " << block;
  }
  void expect_all(size_t count, const std::string& status) {
    for (uint32_t rank = 0; rank < ranks(); rank++) {
      ASSERT_EQ(completions(rank).size(), count) << "rank " << rank;
      for (const Completion& completion : completions(rank))
        EXPECT_EQ(status_text(completion.status), status) << "rank " << rank;
    }
    EXPECT_EQ(problems(), "");
  }
};

// As many as a card of this profile remembers addresses of, if that is not too many for a test.
constexpr uint32_t kMany = CONFIG_REMEMBERED_ADDRESSES < 40 ? CONFIG_REMEMBERED_ADDRESSES : 40;

class DirectAllgather : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, DirectAllgather, ::testing::Values(1, 2, 3, 5, 6, 8, 13, kMany));

TEST_P(DirectAllgather, IsRightForEveryLengthAndBuffersAreFreeAtOnce) {
  DirectCluster cluster(GetParam());
  const size_t mtu = CONFIG_MTU_BYTES;
  uint64_t sequence = 0;
  for (const size_t block : {size_t{0}, size_t{1}, size_t{1000}, mtu, mtu + 1, 5 * mtu + 17}) {
    for (const bool in_place : {false, true}) {
      cluster.post_all(sequence, block, in_place);
      ASSERT_TRUE(cluster.run_until_completions(sequence + 1)) << block;
      cluster.expect_right(sequence++, block);
    }
  }
  cluster.expect_all(sequence, "OK");
}

TEST_P(DirectAllgather, IsRightWhenRanksComeOneAfterTheOther) {
  for (const size_t block : {size_t{40}, size_t{3 * CONFIG_MTU_BYTES}}) {
    DirectCluster cluster(GetParam());
    for (uint32_t rank = cluster.ranks(); rank-- > 0;) {
      cluster.allgather(rank, 0, PEAL_ALGORITHM_DIRECT, block, block > 40);
      cluster.settle();
    }
    ASSERT_TRUE(cluster.run_until_completions(1));
    cluster.expect_all(1, "OK");
    cluster.expect_right(0, block);
  }
}

// A tenth of the frames lost, a tenth doubled; K deep; send buffers overwritten at completion.
TEST_P(DirectAllgather, SurvivesLossAndRepetition) {
  DirectCluster cluster(GetParam());
  uint64_t state = 88172645463325252u;
  cluster.fate = [&](const Frame&) -> uint32_t {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const uint64_t draw = (state >> 33) % 10;
    return draw == 0 ? 0 : draw == 1 ? 2 : 1;
  };
  const auto length = [](uint64_t sequence) {
    return sequence % 3 == 0 ? size_t{90} : (sequence % 3) * CONFIG_MTU_BYTES + 11;
  };
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS + 2; sequence++) {
    cluster.post_all(sequence, length(sequence), sequence % 2 == 0);
    if (sequence + 1 < CONFIG_CHANNELS) continue;
    ASSERT_TRUE(cluster.run_until_completions(sequence + 2 - CONFIG_CHANNELS)) << sequence;
  }
  ASSERT_TRUE(cluster.run_until_completions(CONFIG_CHANNELS + 2));
  cluster.expect_all(CONFIG_CHANNELS + 2, "OK");
  for (uint64_t sequence = 2; sequence < CONFIG_CHANNELS + 2; sequence++)
    cluster.expect_right(sequence, length(sequence));
}

TEST(DirectAllgatherPackets, OneForEachRankAndNoneMore) {
  for (const uint32_t ranks : {2u, 6u, 8u, 13u}) {
    DirectCluster cluster(ranks);
    cluster.post_all(0, 16);
    EXPECT_FALSE(cluster.run_until([] { return false; }, 10'000'000'000));
    cluster.expect_all(1, "OK");
    EXPECT_EQ(cluster.trace().size(), size_t{ranks} * (ranks - 1));
  }
}

TEST(DirectAllgatherPackets, FewPacketBuffersAreBackPressureOnly) {
  DirectCluster cluster(8, 8);
  for (uint64_t sequence = 0; sequence < 3; sequence++) cluster.post_all(sequence, 3000);
  ASSERT_TRUE(cluster.run_until_completions(3));
  cluster.expect_all(3, "OK");
  for (uint64_t sequence = 0; sequence < 3; sequence++) cluster.expect_right(sequence, 3000);
  EXPECT_GT(cluster.total(PEAL_COUNTER_NO_PACKET), 0u);
}

TEST(DirectAllgatherEnds, DisagreementIsToldToAll) {
  DirectCluster cluster(8);
  for (uint32_t rank = 0; rank < 8; rank++)
    cluster.allgather(rank, 0, PEAL_ALGORITHM_DIRECT, rank == 3 ? 72 : 64);
  ASSERT_TRUE(cluster.run_until_completions(1));
  cluster.expect_all(1, "MISMATCH");
}

}  // namespace
}  // namespace peal::test
