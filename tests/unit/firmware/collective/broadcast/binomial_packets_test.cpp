// SPDX-License-Identifier: BSD-2-Clause
// Broadcasts whose fragments wait for the host, and stay for late questions, in the packets that
// brought them: docs/decisions/0063.
#include "firmware/card.h"
#include "firmware/group/early.h"
#include "firmware/group/sent_blocks.h"
#include "tests/support/log_lines.h"
#include "tests/unit/firmware/collective/broadcast/binomial_fixture.h"

namespace peal::test {
namespace {

// What both have: a card that lets so many packets wait for the host, an eighth of what its port
// says, and may keep so many when it has sent them.
class BinomialPackets : public BinomialTest {
 protected:
  BinomialPackets(uint32_t wait, uint32_t sent_packets)
      : BinomialTest(
            6, 1, {.keeps_early = true, .told_buffers = 8 * wait, .sent_packets = sent_packets}) {}

  // How many transfers to and from the channel there were since the last call.
  uint32_t by_way_of_channel() {
    const std::string log = bench.take_log();
    return static_cast<uint32_t>(count_lines_that_begin(log, "dma_write channel") +
                                 count_lines_that_begin(log, "dma_read channel"));
  }
  // Rank 5, or another child, asks for one fragment; it is the right one, and sealed.
  void expect_repaired(uint64_t sequence, uint32_t root, size_t block, uint32_t piece,
                       uint32_t fragment, uint32_t asker = 5, uint32_t hop = 2) {
    bench.port.take_sent();
    bench.deliver(wire.nack(asker, binomial_shape(block, root), static_cast<uint32_t>(sequence),
                            piece, root, hop, uint64_t{1} << fragment));
    bench.finish_all_dma();
    const std::vector<Frame> sent = bench.port.take_sent();
    ASSERT_EQ(sent.size(), 1u) << fragment;
    const size_t offset = piece * kPiece + fragment * CONFIG_MTU_BYTES;
    const size_t bytes = std::min<size_t>(CONFIG_MTU_BYTES, block - offset);
    EXPECT_EQ(frame_text(sent[0]),
              "1>" + std::to_string(asker) + " DATA seq=" + std::to_string(sequence) +
                  " piece=" + std::to_string(piece) + " origin=" + std::to_string(root) +
                  " hop=" + std::to_string(hop) + " frag=" + std::to_string(fragment) +
                  " len=" + std::to_string(bytes) + " repair");
    EXPECT_TRUE(sent[0].payload == pattern_block(sequence, root, offset, bytes)) << fragment;
    Frame sealed = sent[0];
    seal(sealed);
    EXPECT_EQ(sent[0].header.payload_crc, sealed.header.payload_crc);
    EXPECT_EQ(sent[0].header.header_crc, sealed.header.header_crc);
  }
};

// --- before the host ---

constexpr uint32_t kRoom = 4;
static_assert(kRoom <= CONFIG_EARLY_PACKETS);

class BinomialEarly : public BinomialPackets {
 protected:
  static constexpr size_t kBytes = (kRoom + 3) * CONFIG_MTU_BYTES - 5;
  static_assert(kRoom + 3 <= kFragments);

  BinomialEarly() : BinomialPackets(kRoom, 0) {}

  void deliver(uint32_t fragment, uint32_t root = 0, size_t bytes = kBytes) {
    bench.deliver(packet(0, root, bytes, 0, fragment));
  }
};

TEST_F(BinomialEarly, AFragmentWaitsInThePacketThatBroughtIt) {
  deliver(1);
  EXPECT_EQ(bench.take_log(), "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 frag=1 len=" + kMtuText +
                                  "\n"
                                  "send 1>5 DATA seq=0 piece=0 origin=0 hop=2 frag=1 len=" +
                                  kMtuText + "\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 1u);
  EXPECT_EQ(card_holds(bench.card()).packets, 1u);
  post(0, 0, kBytes);
  EXPECT_EQ(bench.take_log(), "dma_write target+" + kMtuText + " " + kMtuText + "\n");
}

// What finds no room goes through the channel, and what comes behind the post straight to the user.
TEST_F(BinomialEarly, WhatFindsNoRoomGoesThroughTheChannel) {
  for (uint32_t fragment = kRoom + 2; fragment > 0; fragment--) deliver(fragment);
  bench.finish_all_dma();
  EXPECT_EQ(by_way_of_channel(), 2u);
  EXPECT_EQ(card_holds(bench.card()).packets, kRoom);
  post(0, 0, kBytes);
  bench.finish_all_dma();
  EXPECT_EQ(wrong_byte_of(0, 0, kBytes), 0);  // the first is missing
  deliver(0);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte_of(0, 0, kBytes), -1);
  expect_staying(0);
}

TEST_F(BinomialEarly, APieceIsDoneWhenNothingOfItWaits) {
  const size_t block = 2 * CONFIG_MTU_BYTES;
  for (const uint32_t fragment : {0u, 1u}) deliver(fragment, 2, block);
  bench.card().dma_in_use = CONFIG_DMA_RECORDS - 1;  // as if others had them
  post(0, 2, block);
  EXPECT_EQ(bench.port.dma_count(), 1u);
  bench.card().dma_in_use = CONFIG_DMA_RECORDS + 1;
  bench.finish_dma();
  EXPECT_EQ(bench.port.dma_count(), 0u);
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"), "");
  bench.card().dma_in_use = 0;
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte_of(0, 2, block), -1);
}

// Those below do not wait for this rank's host.
TEST_F(BinomialEarly, WhatWaitsIsRepairedFromItsPacket) {
  for (const uint32_t fragment : {3u, 0u, kRoom + 2}) deliver(fragment);
  bench.take_log();
  for (int twice = 0; twice < 2; twice++) {
    for (const uint32_t fragment : {0u, 3u, kRoom + 2}) expect_repaired(0, 0, kBytes, 0, fragment);
  }
  expect_repaired(0, 0, kBytes, 0, 3, 3, 1);
  EXPECT_EQ(by_way_of_channel(), 0u);
  bench.deliver(question(5, 0, kBytes, 2, 0, 0b10));
  EXPECT_EQ(bench.take_log(), "send 1>5 NOT_YET seq=0 piece=0 origin=0\n");
  post(0, 0, kBytes);
  bench.finish_all_dma();
}

TEST_F(BinomialEarly, ALateHostCreditsWhatWaitedWhenItIsThere) {
  constexpr size_t kLong = (kPlaces + 1) * kPiece;
  for (uint32_t piece = 0; piece < kPlaces; piece++) deliver_piece(0, 2, kLong, piece);
  EXPECT_EQ(lines_that_begin(bench.take_log(), "send"), "");
  post(0, 2, kLong);
  EXPECT_EQ(lines_that_begin(bench.take_log(), "send"), "");
  bench.finish_all_dma();
  EXPECT_NE(lines_that_begin(bench.take_log(), "send 1>3 SIGNAL"), "");
  deliver_piece(0, 2, kLong, kPlaces);
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte_of(0, 2, kLong), -1);
  expect_staying(0);
}

// On its way to the user it is in no packet. The first pieces of a long block are kept nowhere
// else, and who asks gets them from where they lie then.
TEST_F(BinomialEarly, AQuestionForWhatIsOnItsWayIsAnsweredFromTheUsersMemory) {
  constexpr size_t kLong = (kPlaces + 1) * kPiece;
  deliver(0, 0, kLong);
  post(0, 0, kLong);
  bench.deliver(question(5, 0, kLong, 2, 0, 1));
  bench.take_log();
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "dma_read target+0 " + kMtuText + "\n");
  bench.finish_all_dma();
  expect_repaired(0, 0, kLong, 0, 0);
}

TEST_F(BinomialEarly, ADuplicateOfWhatWaitsIsDropped) {
  const auto data = packet(0, 0, kBytes, 0, 1);
  bench.deliver(data);
  EXPECT_EQ(change(data), "+1 duplicate");
  EXPECT_EQ(card_holds(bench.card()).packets, 1u);
  post(0, 0, kBytes);
  bench.finish_all_dma();
}

TEST_F(BinomialEarly, WhatWaitsIsLetGoWhenRanksDisagree) {
  for (const uint32_t fragment : {0u, 2u}) deliver(fragment);
  post(0, 0, kBytes + 1);
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=100 MISMATCH rank=0\n");
  expect_staying(0);
}

TEST_F(BinomialEarly, WhatWaitsIsLetGoWhenOneOfItCannotBeWritten) {
  for (const uint32_t fragment : {0u, 2u, 3u}) deliver(fragment);
  bench.port.fault_dmas = {1, 1};
  post(0, 0, kBytes);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
  expect_staying(0);
}

TEST_F(BinomialEarly, WhatWaitsIsLetGoWhenTheGroupDies) {
  for (const uint32_t fragment : {0u, 2u}) deliver(fragment);
  bench.deliver(wire.death(0, 4));
  expect_staying(0);
}

TEST_F(BinomialEarly, WhatWaitsIsLetGoWhenTheHostIsGone) {
  deliver(0);
  deliver(2);
  EXPECT_EQ(card_holds(bench.card()).packets, 2u);
  card_close_context(bench.card(), bench.context(), bench.now);
  bench.finish_all_dma();
  expect_staying(0);
}

// --- for late questions ---

// The card may keep as many as the parameter says.
class BinomialSent : public BinomialPackets, public ::testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr uint32_t kSome = 5;
  static constexpr size_t kBytes = kSome * CONFIG_MTU_BYTES - 9;
  static_assert(kSome <= kFragments && kSome <= CONFIG_EARLY_PACKETS);

  BinomialSent() : BinomialPackets(kSome, GetParam()) {}

  static uint32_t stay(uint32_t fragments) {
    return std::min(fragments, share_of_sent(GetParam()));
  }
  void play(uint64_t sequence, uint32_t root, size_t bytes = kBytes) {
    post(sequence, root, bytes);
    if (root != rank) deliver_piece(sequence, root, bytes, 0);
    bench.finish_all_dma();
  }
  void expect_all_repaired(uint64_t sequence, uint32_t root) {
    for (uint32_t fragment = 0; fragment < kSome; fragment++) {
      expect_repaired(sequence, root, kBytes, 0, fragment);
      expect_repaired(sequence, root, kBytes, 0, fragment, 3, 1);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(OfPackets, BinomialSent,
                         ::testing::Values(0, 1, 4, CONFIG_SENT_BLOCKS, 2 * CONFIG_SENT_BLOCKS));

TEST_P(BinomialSent, WhatWasSentOrPassedOnStays) {
  play(0, 1);
  EXPECT_EQ(by_way_of_channel(), kSome - stay(kSome));
  expect_staying(stay(kSome));
  play(1, 0);
  EXPECT_EQ(by_way_of_channel(), 2 * kSome - stay(2 * kSome) - (kSome - stay(kSome)));
  expect_staying(stay(2 * kSome));
}

TEST_P(BinomialSent, IsLetGoWhenTheGroupDies) {
  play(0, 1);
  bench.deliver(wire.death(2, 4));
  expect_staying(0);
}

TEST_P(BinomialSent, IsRepairedWhenTheUsersMemoryIsTheUsersAgain) {
  for (const uint32_t root : {0u, 1u}) {
    play(root, root);
    EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
              "complete ctx0 cookie=" + std::to_string(100 + root) + " OK\n");
    if (root != rank) {
      EXPECT_EQ(wrong_byte_of(root, root, kBytes), -1);
    }
    overwrite();
    for (int twice = 0; twice < 2; twice++) expect_all_repaired(root, root);
  }
  expect_staying(stay(2 * kSome));
}

// From a packet there is nothing to wait for.
TEST_P(BinomialSent, ARepairFromThereIsNoTransfer) {
  play(0, 1);
  by_way_of_channel();
  expect_repaired(0, 1, kBytes, 0, 0);
  EXPECT_EQ(by_way_of_channel(), GetParam() == 0 ? 1u : 0u);
}

TEST_P(BinomialSent, ALeafKeepsNothing) {
  play(0, 5);
  EXPECT_EQ(by_way_of_channel(), 0u);
  expect_staying(0);
}

// What waited for the host stays like all others.
TEST_P(BinomialSent, WhatWasEarlyStays) {
  for (uint32_t fragment = 0; fragment < kSome; fragment++)
    bench.deliver(packet(0, 0, kBytes, 0, fragment));
  expect_all_repaired(0, 0);
  post(0, 0, kBytes);
  bench.finish_all_dma();
  EXPECT_EQ(wrong_byte_of(0, 0, kBytes), -1);
  overwrite();
  expect_all_repaired(0, 0);
  expect_staying(stay(kSome));
}

// On its way to the user it neither waits nor stays; who asks gets it from where it lies then.
TEST_P(BinomialSent, AQuestionForWhatIsOnItsWayIsKept) {
  bench.deliver(packet(0, 0, kBlock));
  post(0, 0, kBlock);
  bench.take_log();
  bench.deliver(question(5, 0, kBlock, 2, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>5 NOT_YET seq=0 piece=0 origin=0\n");
  bench.port.take_sent();
  bench.finish_all_dma();
  EXPECT_EQ(by_way_of_channel(), GetParam() == 0 ? 2u : 0u);
  const std::vector<Frame> sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].payload == pattern_block(0, 0, 0, kBlock));
}

TEST_P(BinomialSent, TheLastPiecesStayAndNoOthers) {
  constexpr uint32_t kPieces = kPlaces + 2;
  constexpr size_t kLong = (kPieces - 1) * kPiece + 100;
  constexpr uint32_t kLast = static_cast<uint32_t>((kPlaces - 1) * kFragments) + 1;
  post(0, 0, kLong);
  for (uint32_t piece = 0; piece < kPieces; piece++) {
    deliver_piece(0, 0, kLong, piece);
    for (const uint32_t hop : {1u, 2u}) {
      bench.deliver(wire.credit(1 + (1 << hop), binomial_shape(kLong, 0), 0, hop, piece + 1));
    }
  }
  EXPECT_EQ(by_way_of_channel(), kLast - stay(kLast));
  EXPECT_EQ(wrong_byte_of(0, 0, kLong), -1);
  overwrite();
  for (uint32_t piece = kPieces - kPlaces; piece < kPieces; piece++) {
    const auto fragments = piece + 1 == kPieces ? 1 : static_cast<uint32_t>(kFragments);
    for (const uint32_t fragment : {0u, fragments - 1}) {
      expect_repaired(0, 0, kLong, piece, fragment);
    }
  }
  expect_staying(stay(kLast));
}

// Of memory that may only be written the first pieces have no other place than the channel, and
// theirs is taken in turn there.
TEST_P(BinomialSent, WhereTheUsersMemoryMayNotBeReadTheFirstPiecesGoToTheChannel) {
  constexpr size_t kLong = (kPlaces + 1) * kPiece;
  const Memory hidden = bench.add_memory("hidden", kLong, PEAL_ACCESS_WRITE);
  bench.submit(broadcast_entry(member, 0, 100, 0, kLong, 0, hidden.key));
  bench.take_log();
  deliver_piece(0, 0, kLong, 0);
  EXPECT_EQ(by_way_of_channel(), kFragments);
  expect_staying(0);
  expect_repaired(0, 0, kLong, 0, 1);
  bench.take_log();
  deliver_piece(0, 0, kLong, 1);
  EXPECT_EQ(by_way_of_channel(), kFragments - stay(kFragments));
}

// And the next ones have room again.
TEST_P(BinomialSent, IsLetGoWithItsEpoch) {
  constexpr uint64_t kEpochs = 2;
  for (uint64_t sequence = 0; sequence < kEpochs * kEpoch; sequence++) {
    play(sequence, sequence % 2 == 0 ? 1 : 0, kBlock);
    const auto in_epoch = static_cast<uint32_t>(sequence % kEpoch) + 1;
    expect_staying(stay(in_epoch));
    if (in_epoch != kEpoch) continue;
    deliver_recycling(sequence / kEpoch);
    expect_staying(0);
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), kEpochs * kEpoch);
}

TEST_P(BinomialSent, IsLetGoWhenTheHostIsGone) {
  play(0, 1);
  expect_staying(stay(kSome));
  card_close_context(bench.card(), bench.context(), bench.now);
  bench.finish_all_dma();
  expect_staying(0);
}

TEST_P(BinomialSent, WithoutAPacketForItARepairComesLater) {
  play(0, 1);
  bench.port.take_sent();
  bench.take_log();
  bench.port.fail_allocations = {0, kAlways};
  bench.deliver(question(5, 1, kBytes, 2, 0, 1));
  EXPECT_EQ(bench.take_log(), "");
  bench.port.fail_allocations = {};
  expect_repaired(0, 1, kBytes, 0, 0);
}

}  // namespace
}  // namespace peal::test
