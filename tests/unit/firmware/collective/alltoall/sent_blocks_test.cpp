// SPDX-License-Identifier: BSD-2-Clause
// Blocks for one rank that stay in the packets that they were read into: what is repaired from
// there, and for how long they stay.
#include "firmware/group/sent_blocks.h"

#include "firmware/card.h"
#include "tests/support/log_lines.h"
#include "tests/unit/firmware/collective/alltoall/direct_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kWindow = CONFIG_PIECE_WINDOW;
constexpr uint32_t kOthers = 7;

// The card may keep as many as the parameter says.
class SentBlocks : public DirectTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  SentBlocks() : DirectTest(false, GetParam()) {}

  static uint32_t stay(uint32_t blocks) { return std::min(blocks, share_of_sent(GetParam())); }
  // How many writes to the channel there were since the last call.
  uint32_t kept_in_channel() {
    return static_cast<uint32_t>(count_lines_that_begin(bench.take_log(), "dma_write channel"));
  }
  void expect_gone_with_the_host() {
    expect_staying(stay(kOthers));
    card_close_context(bench.card(), bench.context(), bench.now);
    bench.finish_all_dma();
    expect_staying(0);
  }
  void expect_repaired(uint32_t asker, size_t block, uint32_t piece) {
    answer(asker, block, piece);
    const auto sent = bench.port.take_sent();
    ASSERT_EQ(sent.size(), 1u) << asker << " " << piece;
    EXPECT_EQ(sent[0].payload, own(asker, block, piece)) << asker << " " << piece;
    EXPECT_EQ(sent[0].header.flags, PEAL_PACKET_REPAIR) << asker << " " << piece;
    EXPECT_EQ(sent[0].header.member, member.everybody[asker].member);
    Frame sealed = sent[0];
    seal(sealed);
    EXPECT_EQ(sent[0].header.payload_crc, sealed.header.payload_crc);
  }
  void expect_all_repaired(size_t block, uint32_t piece) {
    for (uint32_t asker = 0; asker < ranks; asker++)
      if (asker != rank) expect_repaired(asker, block, piece);
  }
};

INSTANTIATE_TEST_SUITE_P(OfPackets, SentBlocks,
                         ::testing::Values(1, 4, kOthers, CONFIG_SENT_BLOCKS,
                                           2 * CONFIG_SENT_BLOCKS));

TEST_P(SentBlocks, GoToTheChannelWhereThereIsNoRoom) {
  post();
  bench.finish_all_dma();
  EXPECT_EQ(kept_in_channel(), kOthers - stay(kOthers));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), kOthers);
  deliver_all();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(), -1);
  expect_staying(stay(kOthers));
}

// Wherever they lie, and as often as they are asked for.
TEST_P(SentBlocks, AreRepairedWhenTheUsersMemoryIsTheUsersAgain) {
  post();
  bench.finish_all_dma();
  deliver_all();
  scribble();
  for (int twice = 0; twice < 2; twice++) expect_all_repaired(kBlock, 0);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_REPAIR), 2 * kOthers);
  expect_staying(stay(kOthers));
}

// From a packet there is nothing to wait for.
TEST_P(SentBlocks, ARepairFromThereIsNoTransfer) {
  post();
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(wire.nack(2, direct_shape(kBlock), 0, 0, rank, 0));  // who was first
  EXPECT_EQ(bench.take_log(), "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64 repair\n");
}

TEST_P(SentBlocks, TheLastPiecesStayAndNoOthers) {
  const uint32_t count = kWindow + 2;
  const size_t block = (count - 1) * CONFIG_MTU_BYTES + 100;
  post(block);
  bench.finish_all_dma();
  for (uint32_t piece = 0; piece < count; piece++) deliver_all(block, piece);
  ASSERT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(block), -1);
  EXPECT_EQ(kept_in_channel(), kWindow * kOthers - stay(kWindow * kOthers));
  scribble();
  for (uint32_t piece = count - kWindow; piece < count; piece++) expect_all_repaired(block, piece);
  EXPECT_EQ(change(wire.nack(4, direct_shape(block), 0, count - kWindow - 1, rank, 0)),
            "+1 drop_stale");
  expect_staying(stay(kWindow * kOthers));
}

// Images are taken in turn there, and packets would not be.
TEST_P(SentBlocks, InPlaceAllGoToTheChannel) {
  post_in_place();
  bench.finish_all_dma();
  EXPECT_EQ(kept_in_channel(), kOthers);
  deliver_all();
  expect_staying(0);
}

// And the next ones have room again.
TEST_P(SentBlocks, AreLetGoWithTheirEpoch) {
  constexpr uint64_t kEpochs = 3;
  for (uint64_t sequence = 0; sequence < kEpochs * kEpoch; sequence++) {
    AlltoallTest::post(sequence, kBlock);
    bench.finish_all_dma();
    for (uint32_t sender = 0; sender < ranks; sender++) {
      if (sender == rank) continue;
      bench.deliver(wire.direct(sender, direct_shape(kBlock), static_cast<uint32_t>(sequence), 0,
                                pattern_between(sequence, sender, rank, 0, kBlock)));
      bench.finish_all_dma();
    }
    const auto in_epoch = static_cast<uint32_t>(sequence % kEpoch) + 1;
    expect_staying(stay(in_epoch * kOthers));
    if (in_epoch != kEpoch) continue;
    deliver_recycling(sequence / kEpoch);
    expect_staying(0);
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), kEpochs * kEpoch);
}

TEST_P(SentBlocks, AreLetGoWhenTheOperationIsRefused) {
  post();
  bench.finish_all_dma();
  expect_staying(stay(kOthers));
  bench.deliver(
      wire.direct(4, direct_shape(kBlock + 8), 0, 0, pattern_between(0, 4, rank, 0, kBlock + 8)));
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=100 MISMATCH rank=4\n");
  expect_staying(0);
}

TEST_P(SentBlocks, AreLetGoWhenTheHostIsGone) {
  post();
  bench.finish_all_dma();
  expect_gone_with_the_host();
}

TEST_P(SentBlocks, OfWhatIsOverAreLetGoWhenTheHostIsGone) {
  post();
  bench.finish_all_dma();
  deliver_all();
  expect_gone_with_the_host();
}

// Nobody is answered any more, though its host may stay for long.
TEST_P(SentBlocks, OfWhatIsOverAreLetGoWhenTheGroupDies) {
  post();
  bench.finish_all_dma();
  deliver_all();
  expect_staying(stay(kOthers));
  bench.deliver(wire.death(2, 4));
  expect_staying(0);
}

TEST_P(SentBlocks, AreLetGoWithTheGroup) {
  post();
  bench.finish_all_dma();
  deliver_all();
  expect_staying(stay(kOthers));
  bench.submit(destroy_entry(member, 1, 9));
  for (uint32_t round = 0; (1u << round) < ranks; round++)
    bench.deliver(wire.signal(behind(round), kDestroyShape, 1, round));
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete ctx0 cookie=9"),
            "complete ctx0 cookie=9 OK\n");
  expect_staying(0);
}

TEST_P(SentBlocks, WithoutAPacketForItARepairComesLater) {
  post();
  bench.finish_all_dma();
  deliver_all();
  bench.port.fail_allocations = {0, kAlways};
  // Not even for the answer that it was sent.
  EXPECT_EQ(answer(2), "");
  bench.port.fail_allocations = {};
  expect_repaired(2, kBlock, 0);
}

// They are repairs of the card like any others, and whoever asks beyond these hears that, too.
TEST_P(SentBlocks, RepairsFromThereAreBounded) {
  post();
  bench.finish_all_dma();
  uint32_t repaired = 0;
  for (uint32_t asked = 0; asked < 1000; asked++) {
    const std::string log = answer(2);
    if (log == "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64 repair\n") {
      repaired++;
    } else {
      ASSERT_EQ(log, "send 1>2 NOT_YET seq=0 piece=0 origin=1 sent\n") << asked;
    }
  }
  EXPECT_EQ(repaired + bench.counter(PEAL_COUNTER_HELD_BACK_REPAIR), 1000u);
  EXPECT_GT(bench.counter(PEAL_COUNTER_HELD_BACK_REPAIR), 0u);
}

// What stays is besides the half that own blocks leave to what arrives.
class SentOfFewPackets : public AlltoallTest {
 protected:
  static constexpr uint32_t kPackets = 32;
  SentOfFewPackets()
      : AlltoallTest(PEAL_ALGORITHM_DIRECT, 8, 1, kBlock,
                     {.packet_buffers = kPackets,
                      .tables = true,
                      .keeps_early = true,
                      .sent_packets = kPackets / 2}) {}
};

TEST_F(SentOfFewPackets, OwnBlocksDoNotWaitForThose) {
  for (uint64_t sequence = 0; sequence < kEpoch; sequence++) {
    post(sequence, kBlock);
    while (bench.port.dma_count() > 0) {
      bench.finish_dma(0);
      bench.port.take_sent();
    }
    for (uint32_t sender = 0; sender < ranks; sender++) {
      if (sender == rank) continue;
      bench.deliver(wire.direct(sender, direct_shape(kBlock), static_cast<uint32_t>(sequence), 0,
                                pattern_between(sequence, sender, rank, 0, kBlock)));
      bench.finish_all_dma();
    }
  }
  EXPECT_EQ(card_holds(bench.card()).sent_blocks, share_of_sent(kPackets / 2));
  post(kEpoch, kBlock);
  EXPECT_EQ(bench.port.dma_count(), 8u);
}

}  // namespace
}  // namespace peal::test
