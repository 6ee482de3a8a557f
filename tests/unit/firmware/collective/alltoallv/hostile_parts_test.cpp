// SPDX-License-Identifier: BSD-2-Clause
// Tables of parts where something is scarce, late, wrong or asked for too soon: what the suites
// that go on smoothly do not see.
#include "firmware/card.h"
#include "firmware/card_types.h"
#include "tests/unit/firmware/collective/alltoallv/parts_fixture.h"

namespace peal::test {
namespace {

class HostileParts : public PartsTest {
 protected:
  HostileParts() : PartsTest(PEAL_OPERATION_ALLTOALLV) { set_all(40); }

  // How many tables have been asked for since the last call.
  size_t tables_read() { return count_lines_that_begin(bench.take_log(), "dma_read table"); }
  // The place in the channel that belongs to a rank and a piece of operation 0.
  [[nodiscard]] uint8_t* place_in_channel(uint32_t of, uint32_t piece = 0) {
    const size_t image = CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW);
    return bench.port.bytes(member.channels).data() + piece * image + of * kPlace;
  }
};

// Nothing of the place that it has is lost by it.
TEST_F(HostileParts, ATableWaitsForADmaRecord) {
  bench.card().dma_in_use = CONFIG_DMA_RECORDS;  // as if others had them all
  post();
  bench.advance(default_timeouts().nack_ns);  // again and again
  EXPECT_EQ(tables_read(), 0u);
  bench.card().dma_in_use = 0;
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(tables_read(), 1u);
  bench.finish_all_dma();
  deliver_all();
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
  // Both places are there for the next two.
  post(1, false, 1);
  post(2, false, 2);
  EXPECT_EQ(tables_read(), 2u);
  bench.finish_all_dma();
}

// Nobody knows then who owes what.
TEST_F(HostileParts, NobodyIsAskedBeforeTheTableIsKnown) {
  post();
  bench.take_log();
  bench.advance(4 * default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.finish_all_dma();
  deliver_all();
  EXPECT_EQ(done(), 1u);
}

// What it is lies in the channel before it does.
TEST_F(HostileParts, ABlockIsKeptWhenItLiesThere) {
  post();
  const auto is_block = [this](const HeldDma& dma) {
    return dma.write && dma.host.region == member.channels && dma.bytes == 40;
  };
  while (!is_block(bench.port.dma(0))) bench.finish_dma();
  bench.take_log();
  bench.deliver(wire.nack(2, shape(), 0, 0, rank, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 NOT_YET seq=0 piece=0 origin=1\n");
  bench.finish_all_dma();
  EXPECT_EQ(ask(2), "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=40 repair\n");
  EXPECT_EQ(bench.port.take_sent().at(0).payload, own(2));
}

// In place a block of the piece W later waits where that for its sender is kept.
TEST_F(HostileParts, WhatComesEarlyDoesNotOvertakeWhatIsBeingKept) {
  const size_t bytes = (CONFIG_PIECE_WINDOW + 1) * kPiece;
  set_length(rank, 2, bytes);
  set_length(2, rank, bytes);
  post(0, true);
  const auto is_block = [this](const HeldDma& dma) {
    return dma.write && dma.host.region == member.channels && dma.bytes == kPiece;
  };
  while (!is_block(bench.port.dma(0))) bench.finish_dma();
  // Rank 2 has our first piece, or it would not have sent this.
  EXPECT_EQ(change(from(2, CONFIG_PIECE_WINDOW)), "+1 drop_no_dma");
  bench.finish_all_dma();
  bench.deliver(from(2, CONFIG_PIECE_WINDOW));
  bench.finish_all_dma();
  deliver_all();
  for (uint32_t piece = 1; piece < CONFIG_PIECE_WINDOW; piece++) bench.deliver(from(2, piece));
  bench.finish_all_dma();
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
}

// The channel is memory of the host, who may write there what he likes.
TEST_F(HostileParts, AFrameThatLiesIsNotSent) {
  post();
  bench.finish_all_dma();
  deliver_all();
  ASSERT_EQ(done(), 1u);
  const std::string good = "send 1>4 DATA seq=0 piece=0 origin=1 hop=0 len=40 repair\n";
  uint8_t* const frame = place_in_channel(4);
  const size_t first = offsetof(peal_wire_header, sequence);
  ASSERT_EQ(ask(4), good);
  for (const size_t field :
       {offsetof(peal_wire_header, sequence), offsetof(peal_wire_header, piece),
        offsetof(peal_wire_header, origin), offsetof(peal_wire_header, length) + 1}) {
    uint8_t* const byte = frame + field - first;
    *byte ^= 0x80;
    EXPECT_EQ(ask(4), "") << field;
    *byte ^= 0x80;
    EXPECT_EQ(ask(4), good) << field;
  }
}

// Its own part is as the table says, whatever the first pieces said.
TEST_F(HostileParts, ALaterPieceOfAnotherBlockIsNamed) {
  set_length(2, rank, 2 * kPiece);
  post();
  bench.finish_all_dma();
  bench.deliver(from(2));
  bench.finish_all_dma();
  Frame longer = from(2, 1);
  longer.header.block_bytes++;
  seal(longer);
  EXPECT_EQ(change(longer), "+5 sent_verdict, +1 operations_failed, +1 drop_signature");
}

// The card still writes there.
TEST_F(HostileParts, ARefusedOperationsPlaceIsItsOwnUntilItsTableHasCome) {
  for (uint64_t sequence = 0; sequence < CONFIG_PART_TABLES + 1; sequence++)
    post(sequence, false, sequence);
  EXPECT_EQ(tables_read(), CONFIG_PART_TABLES);
  bench.deliver(wire.refuse(0, shape(), 0, 3));
  bench.deliver(from(2, 0, CONFIG_PART_TABLES));  // the one that waits goes on
  EXPECT_EQ(tables_read(), 0u);
  bench.finish_all_dma();
  EXPECT_EQ(tables_read(), 1u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_FAILED), 1u);
  for (uint32_t sequence = 1; sequence < CONFIG_PART_TABLES + 1; sequence++)
    deliver_all(0, sequence);
  bench.finish_all_dma();
  EXPECT_EQ(done(), size_t{CONFIG_PART_TABLES});
}

// The death of a rank ends whoever reads a table, has it, or waits for a place.
TEST_F(HostileParts, ADeathEndsAllPhases) {
  post(0, false, 0);
  bench.finish_all_dma();
  post(1, false, 1);
  post(2, false, 2);
  post(3, false, 3);
  bench.take_log();
  bench.deliver(wire.death(0, 4));
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_FAILED), 4u);
  EXPECT_EQ(tables_read(), 0u);
}

TEST_F(HostileParts, AContextMayCloseWhileTablesAreRead) {
  for (uint64_t sequence = 0; sequence < 4; sequence++) post(sequence, false, sequence);
  card_close_context(bench.card(), bench.context(), bench.now);
  bench.finish_all_dma();
  EXPECT_EQ(tables_read(), 2u);  // before
}

// A slot of the member serves operation after operation, and reads each one's table.
TEST_F(HostileParts, EveryOperationOfAChannelReadsItsOwnTable) {
  for (uint32_t sequence = 0; sequence < 2 * CONFIG_CHANNELS; sequence++) {
    const size_t bytes = 8 * (sequence + 1);
    set_all(bytes);
    post(sequence, false, sequence % kTables);
    bench.finish_all_dma();
    EXPECT_EQ(tables_read(), 1u) << sequence;
    deliver_all(0, sequence);
    EXPECT_EQ(done(), sequence + 1u);
    EXPECT_EQ(wrong(sequence), "") << sequence;
    if (sequence % kEpoch == kEpoch - 1) deliver_recycling(sequence / kEpoch);
  }
}

class HostileAllgatherv : public PartsTest {
 protected:
  HostileAllgatherv() : PartsTest(PEAL_OPERATION_ALLGATHERV) { set_all(40); }
};

// Not what lies there still.
TEST_F(HostileAllgatherv, WhatIsOnItsWayIntoTheChannelIsRepairedFromTheUsersMemory) {
  post();
  while (bench.counter(PEAL_COUNTER_SENT_DATA) < 7) bench.finish_dma();
  bench.take_log();
  bench.deliver(wire.nack(4, shape(), 0, 0, rank, 0));
  const std::string log = bench.take_log();
  EXPECT_EQ(log, "dma_read given+" + std::to_string(place(rank)) + " 40\n");
  bench.finish_all_dma();
  bench.port.take_sent();
  deliver_all();
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
}

}  // namespace
}  // namespace peal::test
