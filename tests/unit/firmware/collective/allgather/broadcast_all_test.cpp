// SPDX-License-Identifier: BSD-2-Clause
// The all-to-all broadcast as one rank sees it: whom it sends its own block, whom it forwards
// others' to, what it refuses, and what lies in the user's memory at the end.
#include "firmware/collective/allgather/broadcast_all.h"

#include "firmware/operation/layout.h"
#include "tests/support/log_lines.h"
#include "tests/unit/bad_fields.h"

namespace peal::test {
namespace {

class Broadcast : public GroupTest {
 protected:
  static std::string data(uint32_t to, uint64_t sequence, uint32_t origin, uint32_t hop,
                          size_t block) {
    return "send 1>" + std::to_string(to) + " DATA seq=" + std::to_string(sequence) +
           " piece=0 origin=" + std::to_string(origin) + " hop=" + std::to_string(hop) +
           " len=" + std::to_string(block) + "\n";
  }
  // The log when the own block goes, and when rank 0's goes on.
  static std::string sent(uint64_t sequence, size_t block) {
    return data(2, sequence, 1, 0, block) + data(3, sequence, 1, 1, block);
  }
  static std::string forwarded(uint64_t sequence, size_t block) {
    return data(3, sequence, 0, 1, block);
  }
};

// Rank 1 of 4. Trees: from 0: 0>1>3, 0>2; from 2: 2>3>1, 2>0; from 3: 3>0>2, 3>1.
TEST_F(Broadcast, InOrder) {
  post_broadcast(0, kBlock);
  EXPECT_EQ(bench.take_log(), "dma_read send+0 64\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>3 DATA seq=0 piece=0 origin=1 hop=1 len=64\n");
  bench.deliver(block_of(0, 0, kBlock));
  bench.deliver(block_of(2, 0, kBlock));
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=64\n");
  bench.deliver(block_of(3, 0, kBlock));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

TEST_F(Broadcast, CompletesOnlyWhenTheBytesAreInMemory) {
  post_broadcast(0, kBlock);
  while (bench.port.dma_count() > 0) bench.finish_dma();
  for (const uint32_t origin : {0u, 2u, 3u}) bench.deliver(block_of(origin, 0, kBlock));
  EXPECT_GT(bench.port.dma_count(), 0u);
  while (bench.port.dma_count() > 0) {
    EXPECT_EQ(bench.take_log(),
              "dma_read send+0 64\n"
              "dma_write channel.short+64 64\n"
              "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
              "send 1>3 DATA seq=0 piece=0 origin=1 hop=1 len=64\n"
              "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=64\n"
              "dma_write receive+0 256\n");
    EXPECT_NE(wrong_byte(0, kBlock), -1);
    bench.finish_dma();
  }
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
}

TEST_F(Broadcast, OthersFirst) {
  for (const uint32_t origin : {3u, 2u, 0u}) bench.deliver(block_of(origin, 0, kBlock));
  bench.finish_all_dma();
  // Forwarded before the host has posted: the subtree does not wait for this rank.
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=64\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 3u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_FORWARDED), 1u);
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>3 DATA seq=0 piece=0 origin=1 hop=1 len=64\n"
            "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

// A block too large for staging goes straight to the user or, before the post, through the channel.
TEST_F(Broadcast, LargeBlocksEarlyAndLate) {
  const size_t block = CONFIG_MTU_BYTES;
  ASSERT_GE(CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW) / 4, block) << "one piece per block";
  bench.deliver(block_of(3, 0, block));
  bench.deliver(block_of(0, 0, block));
  post_broadcast(0, block);
  bench.finish_all_dma();
  bench.deliver(block_of(2, 0, block));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            forwarded(0, block) + sent(0, block) + "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, block), -1);
}

TEST_F(Broadcast, EarlyDataStillOnItsWayIntoTheChannelWhenTheHostPosts) {
  const size_t block = CONFIG_MTU_BYTES;
  bench.deliver(block_of(3, 0, block));
  bench.deliver(block_of(0, 0, block));
  post_broadcast(0, block);
  bench.deliver(block_of(2, 0, block));
  // Last started first finished.
  while (bench.port.dma_count() > 0) bench.finish_dma(bench.port.dma_count() - 1);
  EXPECT_EQ(bench.take_wire_log(),
            forwarded(0, block) + sent(0, block) + "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, block), -1);
}

// All blocks have come and no DMA is under way, but early ones still lie in the channel, for want
// of a packet to carry them on.
TEST_F(Broadcast, WhatTheMoverHasNotCopiedIsNotComplete) {
  const size_t block = 2 * CONFIG_MTU_BYTES;  // in pieces, so that no staging gathers it
  const uint32_t piece = piece_bytes_for(ranks);
  uint32_t pieces = 0;
  for (size_t offset = 0; offset < block; offset += piece, pieces++) {
    const size_t bytes = std::min<size_t>(piece, block - offset);
    for (uint32_t origin = 0; origin < ranks; origin++) {
      if (origin == rank) continue;
      bench.deliver(wire.hopping(broadcast_shape(block), 0, pieces, origin,
                                 pattern_block(0, origin, offset, bytes)));
    }
  }
  bench.finish_all_dma();
  bench.take_log();
  const uint32_t open = std::min<uint32_t>(pieces, CONFIG_PIECE_WINDOW);
  bench.port.fail_allocations = {open, 1};  // the mover's; the own pieces find theirs
  post_broadcast(0, block);
  ASSERT_EQ(bench.port.dma_count(), open);
  bench.port.fail_allocations = {0, kAlways};
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.port.fail_allocations = {};
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, block), -1);
}

TEST_F(Broadcast, InPlaceTakesTheOwnBlockFromTheReceiveBuffer) {
  for (const size_t block : {kBlock, size_t{CONFIG_MTU_BYTES}}) {
    const uint64_t sequence = block == kBlock ? 0 : 1;
    auto& bytes = bench.port.bytes(receive.region);
    std::fill(bytes.begin(), bytes.end(), uint8_t{0});
    const auto own = pattern_block(sequence, rank, 0, block);
    std::copy(own.begin(), own.end(), bytes.begin() + static_cast<std::ptrdiff_t>(rank * block));
    peal_submission entry =
        allgather_entry(member, sequence, 100 + sequence, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST,
                        block, 0, receive.key);
    entry.flags = PEAL_SUBMIT_IN_PLACE;
    bench.submit(entry);
    bench.finish_all_dma();
    deliver_others(sequence, block);
    EXPECT_EQ(bench.take_wire_log(), sent(sequence, block) + forwarded(sequence, block) +
                                         "complete ctx0 cookie=" + std::to_string(100 + sequence) +
                                         " OK\n");
    EXPECT_EQ(wrong_byte(sequence, block), -1);
  }
}

TEST_F(Broadcast, OddLengthsAndOffsets) {
  uint64_t sequence = 0;
  for (const size_t block : {size_t{1}, size_t{7}, size_t{63}}) {
    if (sequence == kEpoch) break;  // recycling is not played here
    auto& bytes = bench.port.bytes(receive.region);
    std::fill(bytes.begin(), bytes.end(), uint8_t{0xee});
    const auto own = pattern_block(sequence, rank, 0, block);
    std::copy(own.begin(), own.end(), bench.port.bytes(send.region).begin() + 3);
    peal_submission entry = allgather_entry(
        member, sequence, 7, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, block, send.key, receive.key);
    entry.send_offset = 3;
    entry.receive_offset = 5;
    bench.submit(entry);
    bench.finish_all_dma();
    deliver_others(sequence, block);
    const auto expected = pattern_result(sequence, ranks, block);
    for (size_t i = 0; i < expected.size() + 10; i++) {
      const bool inside = i >= 5 && i < 5 + expected.size();
      ASSERT_EQ(bytes[i], inside ? expected[i - 5] : 0xee) << block << " byte " << i;
    }
    sequence++;
  }
}

TEST_F(Broadcast, NoBytesIsABarrierOfSorts) {
  post_broadcast(0, 0);
  EXPECT_EQ(bench.take_log(),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=0\n"
            "send 1>3 DATA seq=0 piece=0 origin=1 hop=1 len=0\n");
  deliver_others(0, 0);
  EXPECT_EQ(bench.take_log(),
            "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=0\n"
            "complete ctx0 cookie=100 OK\n");
}

TEST_F(Broadcast, DuplicateIsNeitherWrittenNorForwarded) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.deliver(block_of(0, 0, kBlock));
  bench.take_log();
  // The copy differs, as only a broken card's could: were it taken, the result would show it.
  Frame again = wire.hopping(broadcast_shape(kBlock), 0, 0, 0, std::vector<uint8_t>(kBlock, 0x99));
  EXPECT_EQ(change(again), "+1 duplicate");
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(block_of(2, 0, kBlock));
  bench.deliver(block_of(3, 0, kBlock));
  bench.finish_all_dma();
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
  EXPECT_EQ(change(again), "+1 duplicate");  // after completion, too
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(Broadcast, RepairDoesForThePacket) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  Frame repair = block_of(0, 0, kBlock);
  WireMaker::make_repair(repair);
  bench.deliver(repair);
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=64\n");
  bench.deliver(block_of(2, 0, kBlock));
  bench.deliver(block_of(3, 0, kBlock));
  bench.finish_all_dma();
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(Broadcast, FieldsThatCannotBe) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  using H = peal_wire_header;
  expect_dropped(bench, block_of(0, 0, kBlock), fields_that_cannot_be());
  const std::vector<BadField> kBad = {
      {"group", [](H& h) { h.group++; }, "+1 drop_group"},
      {"group zero", [](H& h) { h.group = 0; }, "+1 drop_group"},
      {"member index", [](H& h) { h.member |= 0xffff; }, "+1 drop_member"},
      {"member slot never used", [](H& h) { h.member += 1; }, "+1 drop_member"},
      {"member generation", [](H& h) { h.member += 0x10000; }, "+1 drop_generation"},
      {"member generation before", [](H& h) { h.member -= 0x10000; }, "+1 drop_generation"},
      {"another incarnation", [](H& h) { h.identity -= 0x9e3779b1u; }, "+1 drop_stranger"},
      {"another member of the same card", [](H& h) { h.identity ^= 1; }, "+1 drop_stranger"},
      {"another generation, in a repair",
       [](H& h) {
         h.identity ^= 0x10000;
         h.flags = PEAL_PACKET_REPAIR;
       },
       "+1 drop_stranger"},
      {"sender no parent", from_rank(2), "+1 drop_sender"},
      {"sender itself", [](H& h) { h.sender = 1; }, "+1 drop_sender"},
      {"sender beyond", [](H& h) { h.sender = 4; }, "+1 drop_sender"},
      {"sender far beyond", [](H& h) { h.sender = 0xffff; }, "+1 drop_sender"},
      {"sequence of a recycled past", [](H& h) { h.sequence = 0xfffffff0; }, "+1 drop_stale"},
      {"origin itself", [](H& h) { h.origin = 1; }, "+1 drop_origin"},
      {"origin beyond", [](H& h) { h.origin = 4; }, "+1 drop_origin"},
      {"origin far beyond", [](H& h) { h.origin = 0xffff; }, "+1 drop_origin"},
      {"hop", [](H& h) { h.hop = 1; }, "+1 drop_hop"},
      {"fragment", [](H& h) { h.fragment = 1; }, "+1 drop_fragment"},
  };
  expect_dropped(bench, block_of(0, 0, kBlock), kBad);
  Frame shorter = wire.hopping(broadcast_shape(kBlock), 0, 0, 0, std::vector<uint8_t>(kBlock - 1));
  EXPECT_EQ(change(shorter), "+1 drop_length");
  Frame longer = wire.hopping(broadcast_shape(kBlock), 0, 0, 0, std::vector<uint8_t>(kBlock + 1));
  EXPECT_EQ(change(longer), "+1 drop_length");
  EXPECT_EQ(bench.take_log(), "");
  deliver_others(0, kBlock);
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(Broadcast, PacketsOfASlotThatIsReservedOnly) {
  const Membership reserved = bench.reserve(4, 1);
  Frame frame = block_of(0, 0, kBlock);
  frame.header.member = reserved.handle();
  seal(frame);
  EXPECT_EQ(change(frame), "+1 drop_not_connected");
  EXPECT_EQ(bench.take_log(), "");
}

// --- out of resources: everything is repaired later ---

TEST_F(Broadcast, NoPacketForForwardingLosesOnlyTheForward) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  bench.port.fail_allocations = {0, kAlways};
  bench.deliver(block_of(0, 0, kBlock));
  EXPECT_EQ(bench.take_wire_log(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_PACKET), 1u);
  bench.port.fail_allocations = {};
  // The child finds that its second packet is missing, asks, and gets it while the operation is
  // open.
  bench.port.take_sent();
  bench.deliver(wire.probe(3));
  const std::vector<Frame> answers = bench.port.take_sent();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.type, PEAL_PACKET_ALIVE);
  EXPECT_EQ(answers[0].header.edge, 2u);
  bench.deliver(wire.nack(3, broadcast_shape(kBlock), 0, 0, 0, 1));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>3 ALIVE\n"
            "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=64 repair\n");
}

TEST_F(Broadcast, NoPacketForTheOwnBlockIsTriedAgain) {
  bench.port.fail_allocations = {0, 1};  // once a turn
  post_broadcast(0, kBlock);
  EXPECT_EQ(bench.take_log(), "");
  for (int i = 0; i < 8 && bench.advance_to_deadline(); i++) bench.finish_all_dma();
  EXPECT_EQ(distinct_lines(bench.take_wire_log()),
            sent(0, kBlock) +
                "send 1>0 NACK seq=0 piece=0 origin=0\n"
                "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3\n"
                "send 1>0 PROBE\n"
                "send 1>3 PROBE\n");
  deliver_others(0, kBlock);
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(Broadcast, RefusedDmaIsOfferedAgain) {
  bench.port.refuse_dmas = {0, 5};
  post_broadcast(0, kBlock);
  EXPECT_EQ(bench.port.dma_count(), 0u);
  for (int i = 0; i < 16 && bench.port.dma_count() == 0; i++)
    ASSERT_TRUE(bench.advance_to_deadline());
  bench.finish_all_dma();
  deliver_others(0, kBlock);
  for (int i = 0; i < 16 && bench.take_log().find("complete") == std::string::npos; i++) {
    ASSERT_TRUE(bench.advance_to_deadline());
    bench.finish_all_dma();
  }
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(Broadcast, FaultyDmaEndsTheOperationByName) {
  bench.port.fault_dmas = {0, 1};
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  const std::string log = bench.take_wire_log();
  // Nobody waits for us in vain.
  EXPECT_EQ(log,
            "send 1>2 REFUSE seq=0 rank=1\n"
            "send 1>0 REFUSE seq=0 rank=1\n"
            "send 1>3 REFUSE seq=0 rank=1\n"
            "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_FAULT), 1u);
  // The group goes on.
  post_barrier(1);
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL barrier seq=1 round=0\n");
}

}  // namespace
}  // namespace peal::test
