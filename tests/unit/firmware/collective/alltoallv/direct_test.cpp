// SPDX-License-Identifier: BSD-2-Clause
// Alltoallv as one rank sees it: its table, blocks of lengths of their own, in order, early,
// malformed, in place; ranks that disagree.
#include "firmware/collective/alltoallv/direct.h"

#include "firmware/card.h"
#include "tests/unit/firmware/collective/alltoallv/parts_fixture.h"

namespace peal::test {
namespace {

class Alltoallv : public PartsTest {
 protected:
  explicit Alltoallv(bool keeps_early = false, uint32_t sent_packets = 0)
      : PartsTest(PEAL_OPERATION_ALLTOALLV, keeps_early, sent_packets) {
    // Empty, short, long ones; no two ranks alike.
    for (uint32_t a = 0; a < ranks; a++)
      for (uint32_t b = 0; b < ranks; b++) set_length(a, b, (a * 5 + b * 3) % 4 * 10 * (a + 1));
  }
};

// Early blocks wait in their packets.
class AlltoallvKeeping : public Alltoallv {
 protected:
  AlltoallvKeeping() : Alltoallv(true) {}
};

TEST_F(Alltoallv, TheTableIsReadOnceAndSaysWhereBlocksLie) {
  post();
  EXPECT_EQ(bench.take_log(), "dma_read addresses+0 160\ndma_read table+0 256\n");
  bench.finish_dma();  // the addresses
  bench.finish_dma();
  const auto at = [this](uint32_t other) { return std::to_string(place(other)); };
  // Those for 2 to 0; for itself and for 5 the rank has none.
  std::string expected;
  for (const uint32_t to : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 0u}) {
    if (length(rank, to) == 0) continue;
    expected += "dma_read given+" + at(to) + " " + std::to_string(length(rank, to)) + "\n";
  }
  const std::string log = bench.take_log();
  EXPECT_EQ(lines_that_begin(log, "dma_read"), expected);
  // An empty one goes at once; what it was is kept.
  EXPECT_EQ(lines_that_begin(log, "dma_write"),
            "dma_write channel+" + std::to_string(5 * kPlace) + " 24\n");
  EXPECT_EQ(lines_that_begin(log, "send"), "send 1>5 DATA seq=0 piece=0 origin=1 hop=0 len=0\n");
  std::fill_n(bench.port.bytes(table.region).begin(), 256, uint8_t{0xff});  // it has been read
  bench.finish_all_dma();
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 7u);
  for (const auto& packet : sent) {
    const uint32_t to = packet.header.destination[5];
    EXPECT_EQ(packet.payload, own(to)) << to;
    EXPECT_EQ(packet.header.block_bytes, length(rank, to)) << to;
  }
  deliver_all();
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
}

TEST_F(Alltoallv, EverythingBeforeThePost) {
  deliver_all();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 7u);
  post();
  bench.finish_all_dma();
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
}

TEST_F(AlltoallvKeeping, EverythingBeforeThePost) {
  deliver_all();
  post();
  bench.finish_all_dma();
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
}

// Posted, but the table is still on its way.
TEST_F(Alltoallv, WhatComesBeforeTheTableWaits) {
  post();
  bench.deliver(from(2));
  bench.deliver(from(7));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 0u);
  bench.finish_all_dma();
  deliver_all();
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
}

TEST_F(Alltoallv, NoBytesAtAll) {
  set_all(0);
  peal_submission entry = this->entry();
  entry.send_key = entry.receive_key = 0;
  write_table(parts(false));
  bench.submit(entry);
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 7u);
  deliver_all();
  EXPECT_EQ(done(), 1u);
}

TEST_F(Alltoallv, InPlace) {
  for (uint32_t a = 0; a < ranks; a++)
    for (uint32_t b = 0; b < a; b++) set_length(a, b, length(b, a));
  deliver_all();
  post(0, true);
  bench.finish_all_dma();
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
  scribble();
  for (const uint32_t asker : {0u, 3u, 4u, 6u}) {
    ask(asker);
    EXPECT_EQ(bench.port.take_sent().at(0).payload, own(asker)) << asker;
  }
}

// What was sent lies in the channel, or in as many packets as the parameter says.
class AlltoallvSent : public Alltoallv, public ::testing::WithParamInterface<uint32_t> {
 protected:
  AlltoallvSent() : Alltoallv(false, GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(OfPackets, AlltoallvSent, ::testing::Values(0, 1, 4, CONFIG_SENT_BLOCKS));

// The lengths are forgotten then: what is kept says what it is.
TEST_P(AlltoallvSent, RepairsAfterTheEnd) {
  post();
  bench.finish_all_dma();
  deliver_all();
  EXPECT_EQ(done(), 1u);
  scribble();
  uint32_t with_bytes = 0;
  for (uint32_t asker = 0; asker < ranks; asker++) {
    if (asker == rank) continue;
    with_bytes += length(rank, asker) > 0 ? 1 : 0;
    EXPECT_EQ(ask(asker), "send 1>" + std::to_string(asker) +
                              " DATA seq=0 piece=0 origin=1 hop=0 len=" +
                              std::to_string(length(rank, asker)) + " repair\n");
    const auto sent = bench.port.take_sent();
    EXPECT_EQ(sent.at(0).payload, own(asker)) << asker;
    EXPECT_EQ(sent.at(0).header.block_bytes, length(rank, asker)) << asker;
  }
  EXPECT_EQ(card_holds(bench.card()).sent_blocks, std::min(with_bytes, share_of_sent(GetParam())));
}

TEST_F(Alltoallv, LengthsThatCannotBe) {
  post();
  bench.finish_all_dma();
  bench.take_log();
  Frame shorter = from(2);
  shorter.payload.pop_back();
  seal(shorter);
  EXPECT_EQ(change(shorter), "+1 drop_length");
  Frame further = from(2);
  further.header.piece = 1;
  seal(further);
  EXPECT_EQ(change(further), "+1 drop_piece");
  Frame empty = from(2, 1);  // what a longer exchange would send
  seal(empty);
  EXPECT_EQ(change(empty), "+1 drop_piece");
  EXPECT_EQ(bench.take_log(), "");
  deliver_all();
  EXPECT_EQ(wrong(), "");
}

struct Wrong {
  const char* name;
  peal_part part;
  size_t index;  // in the table
  const char* ends;
};

class WrongParts : public Alltoallv, public ::testing::WithParamInterface<Wrong> {};

TEST_P(WrongParts, EndTheOperationOnAllRanks) {
  const Wrong& wrong = GetParam();
  std::vector<peal_part> spoilt = parts(false);
  spoilt[wrong.index] = wrong.part;
  write_table(spoilt);
  bench.submit(entry());
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 REFUSE seq=0 rank=1\n"
            "send 1>0 REFUSE seq=0 rank=1\n"
            "send 1>3 REFUSE seq=0 rank=1\n"
            "send 1>7 REFUSE seq=0 rank=1\n"
            "send 1>5 REFUSE seq=0 rank=1\n"
            "complete ctx0 cookie=100 " +
                std::string(wrong.ends) + " rank=1\n");
}

// PartsTest's region ends there.
constexpr uint64_t kEnd = 8 * PartsTest::kRoom;

INSTANTIATE_TEST_SUITE_P(
    Each, WrongParts,
    ::testing::Values(Wrong{"GivenBeyondTheRegion", {kEnd - 19, 20}, 3, "DMA_FAULT"},
                      Wrong{"GivenFarAway", {~uint64_t{0} - 3, 20}, 3, "DMA_FAULT"},
                      Wrong{"TooLong", {0, uint64_t{1} << 32}, 3, "DMA_FAULT"},
                      Wrong{"ResultBeyondTheRegion", {kEnd - 19, 20}, 8 + 3, "DMA_FAULT"},
                      Wrong{"OwnPartsThatDiffer", {0, 5}, 1, "MISMATCH"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_F(Alltoallv, SubmissionsThatCannotBe) {
  const auto refused = [this](void (*spoil)(peal_submission & entry)) {
    peal_submission entry = this->entry();
    spoil(entry);
    bench.submit(entry);
    return bench.take_log();
  };
  using E = peal_submission;
  EXPECT_EQ(refused([](E& e) { e.block_bytes = 1; }), "complete ctx0 cookie=100 BAD_LENGTH\n");
  EXPECT_EQ(refused([](E& e) { e.send_offset = 8; }), "complete ctx0 cookie=100 BAD_BOUNDS\n");
  EXPECT_EQ(refused([](E& e) { e.parts_key = 0; }), "complete ctx0 cookie=100 BAD_KEY\n");
  EXPECT_EQ(refused([](E& e) { e.parts_offset = 1000; }), "complete ctx0 cookie=100 BAD_BOUNDS\n");
  EXPECT_EQ(refused([](E& e) { e.receive_key ^= 0x10000; }), "complete ctx0 cookie=100 BAD_KEY\n");
  EXPECT_EQ(refused([](E& e) { e.send_key ^= 0x10000; }), "complete ctx0 cookie=100 BAD_KEY\n");
  EXPECT_EQ(refused([](E& e) { e.receive_key = e.send_key; }),
            "complete ctx0 cookie=100 BAD_ACCESS\n");
  EXPECT_EQ(refused([](E& e) { e.algorithm = PEAL_ALGORITHM_RING; }),
            "complete ctx0 cookie=100 BAD_ALGORITHM\n");
}

// An empty part needs no memory, whatever stands there.
TEST_F(Alltoallv, AnEmptyPartMayLieAnywhere) {
  set_length(3, rank, 0);
  std::vector<peal_part> odd = parts(false);
  odd[8 + 3].offset = ~uint64_t{0};
  post();
  write_table(odd);
  bench.finish_all_dma();
  deliver_all();
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(wrong(), "");
}

TEST_F(Alltoallv, ATableThatCannotBeReadIsAFault) {
  bench.port.fault_dmas = {1, 1};  // the addresses are read before
  post();
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
}

// A rank that has something else for us than we expect.
class Disagreeing : public Alltoallv {
 protected:
  explicit Disagreeing(bool keeps_early = false) : Alltoallv(keeps_early) {}

  [[nodiscard]] Frame longer() const {
    Frame frame = from(2);
    frame.payload.push_back(0);
    frame.header.block_bytes++;
    seal(frame);
    return frame;
  }
  std::string end() {
    bench.finish_all_dma();
    return lines_that_begin(bench.take_log(), "complete");
  }
};
class DisagreeingKeeping : public Disagreeing {
 protected:
  DisagreeingKeeping() : Disagreeing(true) {}
};

TEST_F(Disagreeing, IsNamedWhenItsBlockComes) {
  post();
  bench.finish_all_dma();
  EXPECT_EQ(change(longer()), "+5 sent_verdict, +1 operations_failed, +1 drop_signature");
  EXPECT_EQ(end(), "complete ctx0 cookie=100 MISMATCH rank=2\n");
}

TEST_F(Disagreeing, IsNamedWhenItsEarlyBlockIsReadFromTheChannel) {
  bench.deliver(longer());
  bench.finish_all_dma();
  post();
  EXPECT_EQ(end(), "complete ctx0 cookie=100 MISMATCH rank=2\n");
}

TEST_F(DisagreeingKeeping, IsNamedWhenTheTableHasCome) {
  bench.deliver(longer());
  post();
  EXPECT_EQ(end(), "complete ctx0 cookie=100 MISMATCH rank=2\n");
}

// It sends a piece that we do not exchange, and whose length alone is right.
TEST_F(DisagreeingKeeping, IsNamedForAPieceTooMany) {
  bench.deliver(from(2));
  bench.deliver(from(2, 1));
  post();
  EXPECT_EQ(end(), "complete ctx0 cookie=100 MISMATCH rank=2\n");
}

// A member has places for so many tables; further operations wait for their turn, in order.
TEST_F(Alltoallv, FurtherTablesWaitForAPlace) {
  constexpr uint64_t kOperations = CONFIG_PART_TABLES + 2;
  static_assert(kOperations <= kTables && kOperations <= CONFIG_CHANNELS);
  set_all(16);
  for (uint64_t sequence = 0; sequence < kOperations; sequence++) post(sequence, false, sequence);
  const auto tables_read = [this] { return lines_that_begin(bench.take_log(), "dma_read table"); };
  EXPECT_EQ(tables_read(), "dma_read table+0 256\ndma_read table+256 256\n");
  bench.finish_all_dma();
  EXPECT_EQ(tables_read(), "");
  for (uint32_t sequence = 0; sequence < kOperations; sequence++) {
    EXPECT_EQ(done(), sequence);
    deliver_all(0, sequence);
    const uint32_t next = sequence + CONFIG_PART_TABLES;
    EXPECT_EQ(tables_read(),
              next < kOperations ? "dma_read table+" + std::to_string(next * 256) + " 256\n" : "");
  }
  EXPECT_EQ(done(), kOperations);
}

// A refused operation gives its place back.
TEST_F(Alltoallv, ARefusedOperationHasNoPlace) {
  std::vector<peal_part> wrong_parts = parts(false);
  wrong_parts[1].bytes++;
  for (uint64_t sequence = 0; sequence < CONFIG_CHANNELS - 1u; sequence++) {
    write_table(wrong_parts);
    bench.submit(entry(sequence));
    bench.finish_all_dma();
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_FAILED), CONFIG_CHANNELS - 1u);
  post(CONFIG_CHANNELS - 1u);
  bench.finish_all_dma();
  deliver_all(0, CONFIG_CHANNELS - 1u);
  EXPECT_EQ(done(), 1u);
}

TEST_F(Alltoallv, TheTablesMemoryIsHeldUntilTheEnd) {
  post();
  RegionId region = 0;
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), table.key, &region),
            PEAL_STATUS_BUSY);
  bench.finish_all_dma();
  deliver_all();
  EXPECT_EQ(done(), 1u);
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), table.key, &region),
            PEAL_STATUS_OK);
}

// Longer than the wire can say, in memory that is large enough.
TEST_F(Alltoallv, APartOf4GiBIsNone) {
  uint32_t key = 0;
  ASSERT_EQ(card_register_memory(bench.card(), bench.context(), result.region, uint64_t{1} << 33,
                                 PEAL_ACCESS_WRITE, &key),
            PEAL_STATUS_OK);
  std::vector<peal_part> long_parts = parts(false);
  long_parts[8 + 3] = {0, uint64_t{1} << 32};
  write_table(long_parts);
  peal_submission entry = this->entry();
  entry.receive_key = key;
  bench.submit(entry);
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
}

// A table is read in transfers of a packet's length, as many as the largest one needs.
class LongTable : public GroupTest {
 protected:
  static constexpr uint32_t kRanks =
      std::min<uint32_t>(kPartRanks, CONFIG_MTU_BYTES / (2 * sizeof(peal_part)) + 8);
  static constexpr size_t kBytes = 2 * kRanks * sizeof(peal_part);

  LongTable()
      : GroupTest(kRanks, 1, {.tables = true}),
        table(bench.add_memory("table", kBytes, PEAL_ACCESS_READ)) {
    bench.take_log();
  }

  Memory table;
};

TEST_F(LongTable, IsReadToItsEnd) {
  // The last part alone is not empty, and has no memory.
  const peal_part last = {0, 1};
  std::memcpy(bench.port.bytes(table.region).data() + kBytes - sizeof(last), &last, sizeof(last));
  peal_submission entry = barrier_entry(member, 0, 100);
  entry.operation = PEAL_OPERATION_ALLTOALLV;
  entry.algorithm = PEAL_ALGORITHM_DIRECT;
  entry.parts_key = table.key;
  bench.submit(entry);
  bench.finish_all_dma();
  std::string reads;
  for (size_t at = 0; at < kBytes; at += CONFIG_MTU_BYTES) {
    reads += "dma_read table+" + std::to_string(at) + " " +
             std::to_string(std::min<size_t>(kBytes - at, CONFIG_MTU_BYTES)) + "\n";
  }
  const std::string log = bench.take_log();
  EXPECT_EQ(lines_that_begin(log, "dma_read table"), reads);
  EXPECT_EQ(lines_that_begin(log, "complete"), "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
}

}  // namespace
}  // namespace peal::test
