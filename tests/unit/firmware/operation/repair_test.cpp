// SPDX-License-Identifier: BSD-2-Clause
// NACKs and their answers in the all-to-all broadcast: who is asked, what is repaired from what,
// retention after the user took his buffer back, and bounds against storms.
#include "firmware/operation/repair.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "firmware/channels.h"
#include "tests/support/log_lines.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

// Of rank 1 of four, which lacks the blocks of 0 and 3.
constexpr const char* kAllMissing =
    "send 1>0 NACK seq=0 piece=0 origin=0\n"
    "send 1>3 NACK seq=0 piece=0 origin=3\n";
constexpr size_t kSmall = 64;
constexpr size_t kLarge = CONFIG_MTU_BYTES;  // in the unit profile too large for staging

bool is_written(uint8_t byte) { return byte != 0; }

class Repair : public GroupTest {
 protected:
  Frame nack(uint32_t sender, uint32_t origin, uint32_t hop, size_t block = kSmall,
             uint32_t sequence = 0) {
    return wire.nack(sender, broadcast_shape(block), sequence, 0, origin, hop);
  }
  // As if operations of others had all that there is for this member.
  void take_staging() { bench.card().members[0].staging_used = ~0u; }
  void complete(uint64_t sequence, size_t block) {
    post_broadcast(sequence, block);
    bench.finish_all_dma();
    deliver_others(sequence, block);
  }
};

TEST_F(Repair, EachMissingBlockIsAskedOfItsParent) {
  post_broadcast(0, kSmall);
  bench.finish_all_dma();
  bench.deliver(block_of(2, 0, kSmall));
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), kAllMissing);
}

// Before the post nobody waits for what lacks here, but for those below, who say so.
TEST_F(Repair, ARecordWithoutPostAsksForItsSubtreeWhenThatAsks) {
  bench.deliver(block_of(2, 0, kSmall));
  bench.take_log();
  bench.advance(8 * default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "");
  EXPECT_EQ(answer(nack(3, 0, 1)), "send 1>3 NOT_YET seq=0 piece=0 origin=0\n");
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), kAllMissing);
}

// What a gap shows to be lost is asked for all the same.
TEST_F(Repair, ARecordWithoutPostAsksForWhatIsLost) {
  Frame second = block_of(2, 0, kSmall);
  second.header.sender = 3;
  bench.deliver(WireMaker::numbered(second, 2));
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 NACK seq=0 piece=0 origin=3\n");
}

// A block that has landed in the user's memory is the card's until the operation is over.
TEST_F(Repair, WhatLiesWithTheUserIsRepairedFromThere) {
  post_broadcast(0, kLarge);
  bench.finish_all_dma();
  bench.deliver(block_of(0, 0, kLarge));
  bench.finish_all_dma();
  bench.take_log();
  bench.port.take_sent();
  bench.deliver(nack(3, 0, 1, kLarge));
  EXPECT_EQ(bench.take_log(), "dma_read receive+0 " + std::to_string(kLarge) + "\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=" +
                                  std::to_string(kLarge) + " repair\n");
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, pattern_block(0, 0, 0, kLarge));
}

// It is read only when it is there, and then at once.
TEST_F(Repair, WhatIsOnItsWayToTheUserIsRepairedWhenItIsThere) {
  post_broadcast(0, kLarge);
  bench.finish_all_dma();
  bench.deliver(block_of(0, 0, kLarge));
  bench.take_log();
  bench.deliver(nack(3, 0, 1, kLarge));
  bench.deliver(nack(3, 0, 1, kLarge));
  EXPECT_EQ(bench.take_log(), "");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "dma_read receive+0 " + std::to_string(kLarge) + "\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=" +
                                       std::to_string(kLarge) + " repair\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_RELAYED_NACK), 0u);
}

// The operation is not over before the user's memory has been read.
TEST_F(Repair, TheUsersMemoryIsTheCardsUntilTheRepairIsRead) {
  post_broadcast(0, kLarge);
  bench.finish_all_dma();
  bench.deliver(block_of(0, 0, kLarge));
  bench.finish_all_dma();
  bench.deliver(nack(3, 0, 1, kLarge));
  ASSERT_EQ(bench.port.dma_count(), 1u);
  bench.deliver(block_of(2, 0, kLarge));
  bench.deliver(block_of(3, 0, kLarge));
  while (bench.port.dma_count() > 1) bench.finish_dma(1);
  EXPECT_TRUE(bench.port.take_completions().empty());
  bench.finish_all_dma();
  EXPECT_EQ(bench.port.take_completions().size(), 1u);
}

// Memory that was registered to be written alone is not read.
TEST_F(Repair, WhatTheCardMayNotReadIsAskedOfTheParent) {
  const Memory writable = bench.add_memory("writable", kLarge * ranks, PEAL_ACCESS_WRITE);
  bench.submit(allgather_entry(member, 0, 100, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, kLarge,
                               send.key, writable.key));
  bench.finish_all_dma();
  bench.deliver(block_of(0, 0, kLarge));
  bench.finish_all_dma();
  bench.take_log();
  EXPECT_EQ(answer(nack(3, 0, 1, kLarge)),
            "send 1>0 NACK seq=0 piece=0 origin=0\n"
            "send 1>3 NOT_YET seq=0 piece=0 origin=0\n");
}

// What gathered in staging stays there when the operation is over, and answers.
TEST_F(Repair, WhatGatheredIsRepairedAfterTheEnd) {
  complete(0, kSmall);
  bench.finish_all_dma();
  bench.take_log();
  auto& result = bench.port.bytes(receive.region);
  std::fill(result.begin(), result.end(), uint8_t{0x5c});
  bench.port.take_sent();
  EXPECT_EQ(answer(nack(3, 0, 1)), "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=64 repair\n");
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, pattern_block(0, 0, 0, kSmall));
}

TEST_F(Repair, OwnBlockIsRepairedBeforeCompletion) {
  post_broadcast(0, kSmall);
  bench.finish_all_dma();
  EXPECT_EQ(answer(nack(2, 1, 0)), "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64 repair\n");
}

// Invariant 2: the user overwrites the buffer at once and a late NACK arrives.
TEST_F(Repair, OwnBlockIsRepairedAfterTheUserOverwroteTheBuffer) {
  for (const size_t block : {kSmall, kLarge}) {
    const uint32_t sequence = block == kSmall ? 0 : 1;
    complete(sequence, block);
    scribble_send();
    auto& result = bench.port.bytes(receive.region);
    std::fill(result.begin(), result.end(), uint8_t{0x5c});
    bench.port.take_sent();
    const std::string text = answer(nack(2, 1, 0, block, sequence));
    EXPECT_EQ(text, "send 1>2 DATA seq=" + std::to_string(sequence) +
                        " piece=0 origin=1 hop=0 len=" + std::to_string(block) + " repair\n");
    const auto sent = bench.port.take_sent();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].payload, pattern_block(sequence, rank, 0, block));
    EXPECT_EQ(sent[0].header.member, CardBench::played_address(2).member);
    EXPECT_EQ(sent[0].header.payload_crc, reference_crc32c(sent[0].payload.data(), block));
  }
}

// Short blocks that find no room in staging are kept in a page behind the images of all channels,
// in which each operation has its share.
TEST_F(Repair, ShortBlocksOfAllChannelsAreKeptInAPage) {
  take_staging();
  const size_t block = kShortImageBytes / ranks;
  for (uint32_t sequence = 0; sequence < CONFIG_CHANNELS; sequence++) {
    complete(sequence, block);
    scribble_send();
    bench.port.take_sent();
    answer(nack(2, 1, 0, block, sequence));
    const auto sent = bench.port.take_sent();
    ASSERT_EQ(sent.size(), 1u) << sequence;
    EXPECT_EQ(sent[0].payload, pattern_block(sequence, rank, 0, block)) << sequence;
  }
  const auto& channels = bench.port.bytes(member.channels);
  ASSERT_EQ(channels.size(), kChannelsBytes);
  const auto images_end = channels.begin() + kShortImages;
  EXPECT_EQ(std::find_if(channels.begin(), images_end, is_written), images_end);
  for (uint32_t sequence = 0; sequence < CONFIG_CHANNELS; sequence++) {
    const auto own = images_end + sequence * kShortImageBytes + rank * block;
    EXPECT_EQ(std::vector<uint8_t>(own, own + block), pattern_block(sequence, rank, 0, block));
  }
}

TEST_F(Repair, BlocksThatAreNotShortAreKeptInTheirChannel) {
  take_staging();
  const auto& channels = bench.port.bytes(member.channels);
  const auto images_end = channels.begin() + kShortImages;
  const size_t longest = kShortImageBytes / ranks;
  complete(0, longest);
  EXPECT_EQ(std::find_if(channels.begin(), images_end, is_written), images_end);
  complete(1, longest + 8);
  EXPECT_EQ(std::find_if(channels.begin(), images_end, is_written) - channels.begin(),
            CONFIG_CHANNEL_BYTES + rank * (longest + 8))
      << "the own block";
}

// The memory is not even registered any more: nothing may be read from it.
TEST_F(Repair, LateNackAfterTheMemoryIsGone) {
  complete(0, kLarge);
  RegionId region = 0;
  for (const Memory& memory : {send, receive}) {
    ASSERT_EQ(card_unregister_memory(bench.card(), bench.context(), memory.key, &region),
              PEAL_STATUS_OK);
    bench.port.remove_region(region);
  }
  bench.port.take_sent();
  answer(nack(3, 1, 1, kLarge));
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, pattern_block(0, rank, 0, kLarge));
}

TEST_F(Repair, BeforeTheOwnBlockIsReadTheAnswerIsNotYet) {
  post_broadcast(0, kSmall);
  bench.take_log();
  bench.deliver(nack(2, 1, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 NOT_YET seq=0 piece=0 origin=1\n");
}

TEST_F(Repair, BeforeThePostTheAnswerIsNotYet) {
  EXPECT_EQ(answer(nack(2, 1, 0)), "send 1>2 NOT_YET seq=0 piece=0 origin=1 late\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NOT_YET), 1u);
}

// A question names the first origin of its blocks whether or not it asks for that one's. Of a block
// of others it is not known that it is late: it may be lost.
TEST_F(Repair, OnlyTheOwnBlockIsLateWithItsHost) {
  const auto asked = [this](uint64_t blocks) {
    return answer(wire.nack(3, broadcast_shape(kSmall), 0, 0, 1, 1, blocks));
  };
  EXPECT_EQ(asked(0b10), "send 1>3 NOT_YET seq=0 piece=0 origin=1\n");
  EXPECT_EQ(asked(0b11), "send 1>3 NOT_YET seq=0 piece=0 origin=1 late\n");
  bench.deliver(block_of(0, 0, kSmall));
  bench.finish_all_dma();
  EXPECT_EQ(asked(0b01), "send 1>3 NOT_YET seq=0 piece=0 origin=1 late\n");
}

TEST_F(Repair, AForwardedBlockThatIsNotHereIsNotYetAndNoNackIsRelayed) {
  post_broadcast(0, kSmall);
  bench.finish_all_dma();
  EXPECT_EQ(answer(nack(3, 0, 1)), "send 1>3 NOT_YET seq=0 piece=0 origin=0\n");
}

// A card that is done and keeps only its own block promises the others', asks its own parent once,
// and passes on what comes: to all below, for somebody there has not got it.
TEST_F(Repair, ACompleteCardWithoutTheDataAsksItsParentAndPassesTheAnswerOn) {
  complete(0, kLarge);
  EXPECT_EQ(answer(nack(3, 0, 1, kLarge)),
            "send 1>0 NACK seq=0 piece=0 origin=0\n"
            "send 1>3 NOT_YET seq=0 piece=0 origin=0\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_RELAYED_NACK), 1u);
  EXPECT_EQ(answer(nack(3, 0, 1, kLarge)), "send 1>3 NOT_YET seq=0 piece=0 origin=0\n");
  Frame repair = block_of(0, 0, kLarge);
  WireMaker::make_repair(repair);
  bench.port.take_sent();
  EXPECT_EQ(answer(repair),
            "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=" + std::to_string(kLarge) + "\n");
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, pattern_block(0, 0, 0, kLarge));
  // The debt is paid: once more is a duplicate, and nobody is asked any more.
  const auto before = bench.counters();
  EXPECT_EQ(answer(repair), "");
  EXPECT_EQ(bench.counter_changes(before), "+1 duplicate");
  while (card_next_deadline(bench.card()) != kNever) bench.advance_to_deadline();
  EXPECT_EQ(bench.take_wire_log(), "");
}

// Every hop repairs itself: a promise is asked for again by the one who gave it.
TEST_F(Repair, APromiseIsAskedForAgain) {
  complete(0, kLarge);
  answer(nack(3, 0, 1, kLarge));
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK seq=0 piece=0 origin=0\n");
  bench.advance(2 * default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 NACK seq=0 piece=0 origin=0\n");
}

// That all a parent has sent has come says nothing of what it must send again: it is asked all the
// same, for as long as it is owed.
TEST_F(Repair, APromiseIsAskedForThoughNothingIsMissingOnTheEdge) {
  complete(0, kLarge);
  answer(nack(3, 0, 1, kLarge));
  const TimeNs most_ns = default_timeouts().nack_max_ns;
  uint64_t before = 0;
  for (TimeNs passed = 0; passed < default_timeouts().dead_ns / 2; passed += 2 * most_ns) {
    bench.deliver(WireMaker::numbered(wire.alive(0), 0));
    before = bench.counter(PEAL_COUNTER_SENT_NACK);
    bench.advance(2 * most_ns);
    EXPECT_GT(bench.counter(PEAL_COUNTER_SENT_NACK), before) << "after " << passed << " ns";
    bench.port.take_sent();  // the small pool needs them back
  }
}

// The origin refused after we had its block and were done: whoever asks us must hear of it.
TEST_F(Repair, ACompleteCardPassesOnARefusalInsteadOfNotYet) {
  complete(0, kLarge);
  bench.port.take_completions();
  answer(nack(3, 0, 1, kLarge));
  Frame refusal = wire.refuse(0, broadcast_shape(kLarge), 0, 0);
  const peal_verdict verdict{0, PEAL_STATUS_DMA_FAULT};
  std::memcpy(refusal.payload.data(), &verdict, sizeof(verdict));
  seal(refusal);
  EXPECT_EQ(answer(refusal),
            "send 1>2 REFUSE seq=0 rank=0\n"
            "send 1>0 REFUSE seq=0 rank=0\n"
            "send 1>3 REFUSE seq=0 rank=0\n");
  EXPECT_EQ(answer(nack(3, 0, 1, kLarge)), "send 1>3 REFUSE seq=0 rank=0\n");
  EXPECT_TRUE(bench.port.take_completions().empty());
  EXPECT_EQ(wrong_byte(0, kLarge), -1);
  while (card_next_deadline(bench.card()) != kNever) bench.advance_to_deadline();
  EXPECT_EQ(bench.take_wire_log(), "");  // nothing is asked for any more
}

// Repairs do not hold up the completion of an operation.
TEST_F(Repair, ARepairUnderWayHoldsUpNoCompletion) {
  constexpr size_t kTwoPieces = 2 * CONFIG_MTU_BYTES;  // too large for staging
  post_broadcast(0, kTwoPieces);
  bench.finish_all_dma();
  bench.deliver(nack(2, 1, 0, kTwoPieces));  // read from the channel: stays under way
  ASSERT_EQ(bench.port.dma_count(), 1u);
  bench.take_log();
  for (const uint32_t origin : {0u, 2u, 3u}) {
    const auto block = pattern_block(0, origin, 0, kTwoPieces);
    for (uint32_t piece = 0; piece < 2; piece++) {
      const auto from = block.begin() + piece * CONFIG_MTU_BYTES;
      bench.deliver(wire.hopping(broadcast_shape(kTwoPieces), 0, piece, origin,
                                 {from, from + CONFIG_MTU_BYTES}));
    }
  }
  while (bench.port.dma_count() > 1) bench.finish_dma(1);
  const auto done = bench.port.take_completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(status_text(done[0].second.status), "OK");
  bench.take_log();
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=" + kMtuText + " repair\n");
}

TEST_F(Repair, NacksThatMakeNoSenseAreDroppedByName) {
  post_broadcast(0, kSmall);
  bench.finish_all_dma();
  bench.take_log();
  const auto change = [&](Frame frame) {
    const auto before = bench.counters();
    bench.deliver(frame);
    EXPECT_EQ(bench.take_log(), "");
    return bench.counter_changes(before);
  };
  EXPECT_EQ(change(nack(3, 1, 0)), "+1 drop_hop");  // hop 0 from 1 leads to 2
  EXPECT_EQ(change(nack(2, 0, 0)), "+1 drop_hop");  // 2 is no child of 1 in 0's tree
  EXPECT_EQ(change(nack(2, 1, 200)), "+1 drop_hop");
  EXPECT_EQ(change(wire.nack(2, broadcast_shape(kSmall), 0, 0, 4, 0)), "+1 drop_origin");
  EXPECT_EQ(change(wire.nack(2, broadcast_shape(kSmall), 0, 1, 1, 0)), "+1 drop_piece");
}

TEST_F(Repair, NoPacketForTheRepairSaysNotYetOrNothingButBreaksNothing) {
  complete(0, kLarge);
  bench.take_log();
  bench.port.fail_allocations = {0, kAlways};
  bench.deliver(nack(2, 1, 0, kLarge));
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_GE(bench.counter(PEAL_COUNTER_NO_PACKET), 1u);
  bench.port.fail_allocations = {};
  EXPECT_EQ(answer(nack(2, 1, 0, kLarge)), "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=" +
                                               std::to_string(kLarge) + " repair\n");
}

TEST_F(Repair, AFaultyReadForARepairHarmsNobody) {
  complete(0, kLarge);
  bench.take_log();
  bench.port.fault_dmas = {0, 1};
  bench.deliver(nack(2, 1, 0, kLarge));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "");
  EXPECT_EQ(answer(nack(2, 1, 0, kLarge)), "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=" +
                                               std::to_string(kLarge) + " repair\n");
}

// No storm for a rank that is merely late: while the answer is "not yet" the NACKs thin out to one
// per longest interval.
TEST_F(Repair, ALateRankCausesFewNacks) {
  post_broadcast(0, kSmall);
  bench.finish_all_dma();
  bench.deliver(block_of(2, 0, kSmall));
  bench.deliver(block_of(3, 0, kSmall));
  bench.take_log();
  const uint64_t before = bench.counter(PEAL_COUNTER_SENT_NACK);
  for (TimeNs waited = 0; waited < 1'000'000'000;) {
    const TimeNs step = card_next_deadline(bench.card()) - bench.now;
    ASSERT_TRUE(bench.advance_to_deadline());
    waited += step;
    for (const Frame& frame : bench.port.take_sent()) {
      if (frame.header.type == PEAL_PACKET_NACK) {
        bench.deliver(wire.not_yet(0, broadcast_shape(kSmall), 0, 0, 0, 0, now_us()));
      }
      if (frame.header.type == PEAL_PACKET_PROBE) bench.deliver(wire.alive(0));
    }
  }
  const uint64_t nacks = bench.counter(PEAL_COUNTER_SENT_NACK) - before;
  EXPECT_LE(nacks, 1'000'000'000 / default_timeouts().nack_max_ns + 10);
  EXPECT_GE(nacks, 10u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
  bench.deliver(block_of(0, 0, kSmall));
  bench.finish_all_dma();
  EXPECT_EQ(distinct_lines(bench.take_wire_log()),
            "send 1>0 NACK seq=0 piece=0 origin=0\n"
            "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=64\n"
            "complete ctx0 cookie=100 OK\n");
}

// The own block is read and on its way into the channel, but does not lie there yet.
TEST_F(Repair, BeforeTheOwnBlockIsRetainedTheAnswerIsNotYet) {
  constexpr size_t kUnstaged = 2 * CONFIG_MTU_BYTES;
  post_broadcast(0, kUnstaged);
  bench.finish_dma();  // the read of piece 0; its writes stay under way
  ASSERT_TRUE(bench.port.dma(bench.port.dma_count() - 1).write);
  bench.take_log();
  bench.deliver(nack(2, 1, 0, kUnstaged));
  EXPECT_EQ(bench.take_wire_log(), "send 1>2 NOT_YET seq=0 piece=0 origin=1\n");
}

// Much is missing: of all neighbours, or more than may be asked for at once.
class RepairOfMany : public GroupTest {
 protected:
  static constexpr uint32_t kRanks = 40;
  static constexpr size_t kBlock =
      CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW) / kRanks < CONFIG_MTU_BYTES
          ? CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW) / kRanks & ~size_t{7}
          : CONFIG_MTU_BYTES;

  RepairOfMany() : GroupTest(kRanks, 0) {}
  // The first `count` origins that are asked for from now on.
  std::vector<uint32_t> asked_for(size_t count) {
    std::vector<uint32_t> origins;
    bench.port.take_sent();
    for (int i = 0; i < 64 && origins.size() < count && bench.advance_to_deadline(); i++) {
      for (const Frame& frame : bench.port.take_sent()) {
        if (frame.header.type != PEAL_PACKET_NACK) continue;
        peal_nack nack;
        std::memcpy(&nack, frame.payload.data(), sizeof(nack));
        for (uint32_t bit = 0; bit < 64; bit++) {
          if ((nack.fragments >> bit & 1) == 0) continue;
          origins.push_back((frame.header.origin + kRanks - bit) % kRanks);
        }
      }
    }
    if (origins.size() > count) origins.resize(count);
    return origins;
  }
  // All blocks have come, and of them only the own one is kept.
  void complete_without_data() {
    post_broadcast(0, kBlock);
    bench.finish_all_dma();
    for (uint32_t origin = 1; origin < kRanks; origin++) {
      bench.deliver(block_of(origin, 0, kBlock));
      bench.finish_all_dma();
      bench.port.take_sent();
    }
  }
  static std::vector<uint32_t> from_to(uint32_t first, uint32_t last) {
    std::vector<uint32_t> all;
    for (uint32_t i = first; i <= last; i++) all.push_back(i);
    return all;
  }
};

TEST_F(RepairOfMany, OneQuestionForEachNeighbourNamesAllThatItOwes) {
  post_broadcast(0, kSmall);
  bench.finish_all_dma();
  std::vector<uint32_t> origins = asked_for(kRanks - 1);
  std::ranges::sort(origins);
  EXPECT_EQ(origins, from_to(1, kRanks - 1));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NACK), 6u);  // the rounds of 40
}

TEST_F(RepairOfMany, TheBudgetForDebtsGoesRound) {
  complete_without_data();
  ASSERT_EQ(bench.port.take_completions().size(), 1u);
  // Rank 16 is our child where the origin is 1 to 15 behind us.
  for (uint32_t origin = kRanks - 15; origin < kRanks; origin++) {
    bench.deliver(wire.nack(16, broadcast_shape(kBlock), 0, 0, origin, 4));
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_RELAYED_NACK), 15u);
  std::vector<uint32_t> origins = asked_for(15);
  std::ranges::sort(origins);
  EXPECT_EQ(origins, from_to(kRanks - 15, kRanks - 1));
}

// Ranks 8, 16 and 32 have rank 36's block from here; only the one that asks gets it again.
TEST_F(RepairOfMany, APaidDebtGoesToThoseWhoAsk) {
  complete_without_data();
  bench.deliver(wire.nack(16, broadcast_shape(kBlock), 0, 0, 36, 4));
  bench.take_log();
  bench.deliver(block_of(36, 0, kBlock));
  EXPECT_EQ(bench.take_wire_log(),
            "send 0>16 DATA seq=0 piece=0 origin=36 hop=4 len=" + std::to_string(kBlock) + "\n");
}

// Ranks 8, 16 and 32 ask for a block that is on its way to the user's memory, and when it is there
// the card has one packet at a time. Each gets it once: that others must wait is no reason to send
// it again.
TEST_F(RepairOfMany, ADebtIsPaidOnceHoweverLittleThereIs) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.deliver(block_of(36, 0, kBlock));
  for (uint32_t hop = 3; hop <= 5; hop++) {
    bench.deliver(wire.nack(1u << hop, broadcast_shape(kBlock), 0, 0, 36, hop));
  }
  bench.take_log();
  for (uint32_t hop = 3; hop <= 5; hop++) {
    bench.port.fail_allocations = {1, kAlways};
    bench.advance(default_timeouts().nack_ns / 4 + 1);
    bench.finish_all_dma();
    EXPECT_EQ(bench.take_wire_log(),
              "send 0>" + std::to_string(1u << hop) + " DATA seq=0 piece=0 origin=36 hop=" +
                  std::to_string(hop) + " len=" + std::to_string(kBlock) + " repair\n");
  }
  bench.port.fail_allocations = {};
  bench.advance(default_timeouts().nack_ns);
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_REPAIR), 3u);
}

// A debt that is paid is one debt: the others stand.
TEST_F(RepairOfMany, OnePaidDebtLeavesTheOthers) {
  complete_without_data();
  for (const uint32_t origin : {30u, 31u, 32u}) {
    bench.deliver(wire.nack(16, broadcast_shape(kBlock), 0, 0, origin, 4));
  }
  bench.deliver(block_of(31, 0, kBlock));
  EXPECT_EQ(asked_for(2), (std::vector<uint32_t>{32, 30}));
}

// The answer to a question that this card never asked.
TEST_F(Repair, NotYetOpensNoRecord) {
  const auto before = bench.counters();
  bench.deliver(wire.not_yet(0, broadcast_shape(kSmall), 0, 0, 0, 0));
  EXPECT_EQ(bench.counter_changes(before), "+1 drop_stale");
  EXPECT_EQ(card_holds(bench.card()).operations, 0u);
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

// Rank 0 is in the third place of our tree, and its parent is rank 2.
TEST_F(Repair, OnlyChildrenMayAsk) {
  post_broadcast(0, kSmall);
  bench.finish_all_dma();
  bench.take_log();
  const auto before = bench.counters();
  bench.deliver(nack(0, 1, 1));
  EXPECT_EQ(bench.counter_changes(before), "+1 drop_hop");
  EXPECT_EQ(bench.take_log(), "");
}

// A place in the record of an earlier operation was owed something, and nobody ever got it: the
// next operation there owes only what it is asked for.
TEST_F(RepairOfMany, DebtsEndWithTheirOperation) {
  const auto complete = [&](uint64_t sequence) {
    post_broadcast(sequence, kBlock);
    bench.finish_all_dma();
    for (uint32_t origin = 1; origin < kRanks; origin++) {
      bench.deliver(block_of(origin, sequence, kBlock));
      bench.finish_all_dma();
      bench.port.take_sent();
    }
  };
  complete(0);
  bench.deliver(wire.nack(16, broadcast_shape(kBlock), 0, 0, 30, 4));
  run_barriers(1, CONFIG_CHANNELS - 1);
  bench.port.take_sent();
  complete(CONFIG_CHANNELS);
  bench.deliver(wire.nack(16, broadcast_shape(kBlock), CONFIG_CHANNELS, 0, 31, 4));
  EXPECT_EQ(asked_for(4), (std::vector<uint32_t>{31, 31, 31, 31}));
}

// What an operation keeps in staging is its record's next operation's, and so on: more of them
// follow each other than have room beside each other.
TEST_F(RepairOfMany, ARecordsNextOperationTakesOverWhatItKept) {
  constexpr uint64_t kUnits = (kRanks * kSmall + kStagingUnitBytes - 1) / kStagingUnitBytes;
  for (uint64_t round = 0; round < kStagingUnits / kUnits + 2; round++) {
    const uint64_t sequence = round * CONFIG_CHANNELS;
    post_broadcast(sequence, kSmall);
    bench.finish_all_dma();
    for (uint32_t origin = 1; origin < kRanks; origin++) {
      bench.deliver(block_of(origin, sequence, kSmall));
      bench.finish_all_dma();
      bench.port.take_sent();
    }
    EXPECT_EQ(bench.counter(PEAL_COUNTER_STAGED), (round + 1) * (kRanks - 1));
    run_barriers(sequence + 1, CONFIG_CHANNELS - 1);
    bench.port.take_sent();
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_STAGING), 0u);
}

// When little may be asked, the oldest operation asks: it is what holds up the others. Here a
// question is worth a millisecond, for the last answer took sixteen.
TEST_F(RepairOfMany, TheOldestAsksFirst) {
  constexpr TimeNs kPrice = 1'000'000;
  bench.now += 20 * kPrice;
  post_broadcast(0, kSmall);
  bench.deliver(wire.not_yet(kRanks - 1, broadcast_shape(kSmall), 0, 0, kRanks - 1, 0,
                             static_cast<uint32_t>((bench.now - 16 * kPrice) / 1000)));
  deliver_others(0, kSmall);
  std::vector<uint32_t> asked(3, 0);
  const auto look = [&] {
    for (const Frame& frame : bench.port.take_sent()) {
      if (frame.header.type == PEAL_PACKET_NACK) asked.at(frame.header.sequence)++;
    }
  };
  look();
  post_broadcast(1, kSmall);
  bench.finish_all_dma();
  bench.advance(kPrice);
  post_broadcast(2, kSmall);
  bench.finish_all_dma();
  // Its turn: four questions, which leave nothing.
  bench.advance(default_timeouts().nack_max_ns - kPrice);
  look();
  EXPECT_EQ(asked, (std::vector<uint32_t>{0, 4, 0}));
  // A millisecond later there is one for the next, who waits.
  bench.advance(kPrice);
  look();
  EXPECT_EQ(asked, (std::vector<uint32_t>{0, 4, 0}));
}

// A sign of life answers no question: what is asked stays as dear as silence has made it.
TEST_F(RepairOfMany, OnlyAnswersMakeQuestionsCheaper) {
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS; sequence++) {
    post_broadcast(sequence, kSmall);
    bench.finish_all_dma();
  }
  uint32_t asked = 0;
  for (int i = 0; i < 160; i++) {
    bench.deliver(wire.alive(1));
    bench.advance(default_timeouts().nack_ns);
    for (const Frame& frame : bench.port.take_sent()) {
      asked += frame.header.type == PEAL_PACKET_NACK ? 1 : 0;
    }
  }
  // No answer comes, so the oldest asks alone: a first burst, and little more.
  EXPECT_GT(asked, 16u);
  EXPECT_LT(asked, 60u);
}

}  // namespace
}  // namespace peal::test
