// SPDX-License-Identifier: BSD-2-Clause
// Alltoallv in steps where packets or DMA records are scarce: it waits, and goes on from where it
// stopped.
#include "firmware/collective/alltoallv/bruck.h"

#include "tests/unit/firmware/collective/alltoallv/bruck_fixture.h"

namespace peal::test {
namespace {

class ScarceBruckv : public BruckvTest {
 protected:
  static constexpr TimeNs kSoon = kNack / 4 + 1;

  explicit ScarceBruckv(uint32_t sent_packets = kInPackets) : BruckvTest(8, 1, sent_packets) {
    set_all(24);
  }
  // As if others had all DMA records but these.
  void leave_records(uint32_t records) {
    taken = CONFIG_DMA_RECORDS - bench.card().dma_in_use - records;
    bench.card().dma_in_use += taken;
  }
  void give_records_back() { bench.card().dma_in_use -= taken; }
  void read_table() {
    bench.finish_dma();  // the addresses
    bench.finish_dma();
  }
  // Own blocks have been read, and there was no packet to send them.
  void begin_without_packets() {
    post();
    read_table();
    bench.port.fail_allocations = {0, kAlways};
    bench.finish_all_dma();
    EXPECT_EQ(bench.take_wire_log(), "");
    bench.port.fail_allocations = {};
  }
  void expect_smooth() {
    bench.finish_all_dma();
    deliver_steps();
    expect_over();
    expect_all_sent();
  }

  uint32_t taken = 0;
};
class ScarceBruckvInChannel : public ScarceBruckv {
 protected:
  ScarceBruckvInChannel() : ScarceBruckv(kInChannel) {}
};

TEST_F(ScarceBruckv, OwnBlocksAreReadWhenThereIsARecord) {
  post();
  bench.finish_dma();
  leave_records(0);
  bench.take_log();
  bench.finish_dma();  // the table, which gives one back
  bench.card().dma_in_use++;
  taken++;
  bench.advance(kSoon);
  EXPECT_EQ(bench.take_log(), "");
  give_records_back();
  bench.advance(kSoon);
  EXPECT_EQ(count_lines_that_begin(bench.take_log(), "dma_read given"), ranks);
  expect_smooth();
}

TEST_F(ScarceBruckv, OwnBlocksAreReadWhenThereIsAPacket) {
  post();
  bench.port.fail_allocations = {steps + 2, 1};  // logs, and the first two
  read_table();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "dma_read given"), reads_given(0) + reads_given(1));
  bench.advance(kSoon);
  EXPECT_EQ(count_lines_that_begin(bench.take_log(), "dma_read given"), ranks - 2);
  expect_smooth();
}

// Ways 4 to 7 come in step 2, of ranks 5, 6, 7 and 0.
TEST_F(ScarceBruckv, WhatCannotLandNowStaysAndGoesOnWhereItStopped) {
  begin();
  bench.take_log();
  leave_records(2);
  EXPECT_EQ(change(step(2)),
            "+1 received, +48 dma_write_bytes, +2 dma_operations, +2 no_dma_record");
  EXPECT_EQ(bench.take_log(), lands(5) + lands(6));
  EXPECT_EQ(change(step(2)), "+1 duplicate");
  give_records_back();
  bench.advance(kSoon);
  EXPECT_EQ(bench.take_log(), lands(7) + lands(0));
  expect_smooth();
}

// Where the rest could not be kept nothing of it goes on before all can.
TEST_F(ScarceBruckvInChannel, WhatCannotAllLandNowIsStored) {
  begin();
  bench.take_log();
  leave_records(3);
  const std::string bytes = std::to_string(4 * (kHead + 24));
  EXPECT_EQ(change(step(2)), "+1 received, +" + bytes + " dma_write_bytes, +1 dma_operations");
  EXPECT_EQ(bench.take_log(),
            "dma_write channel+" + std::to_string(arrival_place(2)) + " " + bytes + "\n");
  give_records_back();
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "dma_write result"),
            lands(5) + lands(6) + lands(7) + lands(0));
  expect_smooth();
}

TEST_F(ScarceBruckvInChannel, AsManyRecordsAsBlocksAreEnough) {
  begin();
  bench.take_log();
  leave_records(4);
  bench.deliver(step(2));
  EXPECT_EQ(bench.take_log(), lands(5) + lands(6) + lands(7) + lands(0));
  give_records_back();
  expect_smooth();
}

TEST_F(ScarceBruckvInChannel, WhatCannotLandNorBeStoredIsDropped) {
  begin();
  bench.take_log();
  leave_records(0);
  EXPECT_EQ(change(step(2)), "+1 drop_no_dma");
  EXPECT_EQ(bench.take_log(), "");
  give_records_back();
  bench.deliver(step(2));
  EXPECT_EQ(bench.take_log(), lands(5) + lands(6) + lands(7) + lands(0));
  expect_smooth();
}

TEST_F(ScarceBruckvInChannel, WhatCannotBeStoredIsDropped) {
  leave_records(0);
  EXPECT_EQ(change(step(0)), "+1 drop_no_dma");
  give_records_back();
  EXPECT_EQ(lines_with(bench.take_log(), "dma"), "");
  begin();
  expect_smooth();
}

// What goes on in a log of the channel takes a record as well: rank 2 sends ways 1, 3, 5 and 7.
TEST_F(ScarceBruckvInChannel, WhatGoesOnInLogsGoesOnWhereItStopped) {
  bench.deliver(step(0));
  bench.finish_all_dma();
  post();
  read_table();
  while (bench.port.dma(0).host.region != member.channels) bench.finish_dma();
  while (bench.port.dma_count() > 1) bench.finish_dma(1);
  bench.take_log();
  leave_records(1);
  bench.finish_dma();  // which gives one back
  const std::string log = bench.take_log();
  EXPECT_EQ(lines_that_begin(log, "dma_write result"), lands(2));
  EXPECT_EQ(count_lines_that_begin(log, "dma_write channel"), 1u);
  give_records_back();
  bench.finish_all_dma();
  const std::string rest = bench.take_log();
  const std::string read = "dma_read channel+" + std::to_string(arrival_place(0));
  EXPECT_EQ(count_lines_that_begin(rest, read), 1u);
  EXPECT_EQ(count_lines_that_begin(rest, "dma_write channel"), 2u);
  expect_smooth();
}

TEST_F(ScarceBruckv, AStepIsSentWhenThereIsAPacket) {
  begin_without_packets();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 0u);
  bench.advance(kSoon);
  EXPECT_EQ(bench.take_wire_log(), sends(0));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 1u);
  expect_smooth();
}

TEST_F(ScarceBruckvInChannel, AStepIsReadWhenThereIsAPacket) {
  begin_without_packets();
  bench.advance(kSoon);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), sends(0));
  expect_smooth();
}

TEST_F(ScarceBruckvInChannel, WhatLiesThereIsReadWhenThereIsAPacket) {
  bench.deliver(step(0));
  post();
  while (bench.port.dma_count() > 1) bench.finish_dma();
  bench.port.fail_allocations = {ranks, 1};  // behind the own blocks
  bench.take_log();
  bench.finish_dma();
  const std::string read = "dma_read channel+" + std::to_string(arrival_place(0));
  EXPECT_EQ(count_lines_that_begin(bench.take_log(), read), 0u);
  bench.advance(kSoon);
  EXPECT_EQ(count_lines_that_begin(bench.take_log(), read), 1u);
  expect_smooth();
}

// And lands in two goes, for which it is read twice.
TEST_F(ScarceBruckvInChannel, WhatLiesThereGoesOnWhereItStopped) {
  bench.deliver(step(2));
  bench.finish_all_dma();
  post();
  read_table();
  const std::string read = "dma_read channel+" + std::to_string(arrival_place(2));
  while (bench.port.dma(0).host.region != member.channels) bench.finish_dma();
  while (bench.port.dma_count() > 1) bench.finish_dma(1);
  bench.take_log();
  leave_records(1);
  bench.finish_dma();  // which gives one back
  EXPECT_EQ(bench.take_log(), lands(5) + lands(6));
  give_records_back();
  bench.advance(kSoon);
  EXPECT_EQ(count_lines_that_begin(bench.take_log(), read), 1u);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "dma_write result"), lands(7) + lands(0));
  expect_smooth();
}

// Heads are written there from a packet.
TEST_F(ScarceBruckvInChannel, HeadsOfLongBlocksAreWrittenWhenThereIsAPacket) {
  set_length(1, 4, most + 1);
  post();
  bench.finish_dma();
  bench.port.fail_allocations = {0, 1};
  bench.take_log();
  bench.finish_dma();
  const std::string head = "dma_write channel+" + std::to_string(log_place(0)) + " 4\n";
  EXPECT_EQ(count_lines_that_begin(bench.take_log(), head), 0u);
  bench.advance(kSoon);
  EXPECT_EQ(count_lines_that_begin(bench.take_log(), head), 1u);
  bench.finish_all_dma();
  bench.deliver(from(4));
  bench.finish_all_dma();
  deliver_steps();
  expect_over();
}

}  // namespace
}  // namespace peal::test
