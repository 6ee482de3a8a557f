// SPDX-License-Identifier: BSD-2-Clause
// Alltoallv in steps with packets that cannot be, and with a channel that somebody else writes to.
#include "firmware/collective/alltoallv/bruck.h"

#include "tests/unit/firmware/collective/alltoallv/bruck_fixture.h"

namespace peal::test {
namespace {

// Rank 1 of 8, of a step 0 that rank 2 sends.
class HostileBruckv : public BruckvTest {
 protected:
  explicit HostileBruckv(uint32_t sent_packets = kInPackets, uint32_t ranks_ = 8)
      : BruckvTest(ranks_, 1, sent_packets) {
    set_all(16);
  }
  [[nodiscard]] std::vector<uint8_t> bytes(size_t count) const {
    return pattern_between(0, 2, 1, 0, count);
  }
  void expect_smooth() {
    deliver_steps();
    expect_over();
    expect_all_sent();
  }
  // It ends for the reason of this rank, or another, of which the peers are told.
  void expect_end(const std::string& with, uint32_t because_of = 1) {
    bench.finish_all_dma();
    const std::string log = bench.take_log();
    const std::string named = " rank=" + std::to_string(because_of) + "\n";
    std::string told;
    for (const uint32_t peer : {2u, 0u, 3u, 7u, 5u})
      told += "send 1>" + std::to_string(peer) + " REFUSE seq=0" + named;
    EXPECT_EQ(lines_with(log, "REFUSE"), told);
    EXPECT_EQ(lines_that_begin(log, "complete"), "complete ctx0 cookie=100 " + with + named);
    bench.advance(10 * kNack);
    EXPECT_EQ(bench.take_log(), "");
    expect_staying(0);
  }
};

struct BadHeader {
  const char* name;
  void (*spoil)(peal_wire_header& header);
  const char* change;
};

class BadStepHeader : public HostileBruckv, public ::testing::WithParamInterface<BadHeader> {};

INSTANTIATE_TEST_SUITE_P(
    Of, BadStepHeader,
    ::testing::Values(
        BadHeader{"StepBeyondTheLast", [](auto& h) { h.hop = 3; }, "+1 drop_hop"},
        BadHeader{"PieceThatIsNoStep", [](auto& h) { h.piece--; }, "+1 drop_piece"},
        BadHeader{"StepFarBeyond", [](auto& h) { h.hop = 64; }, "+1 drop_hop"},
        BadHeader{"Fragment", [](auto& h) { h.fragment = 1; }, "+1 drop_fragment"},
        BadHeader{"OriginBeyondTheRanks", [](auto& h) { h.origin = 8; }, "+1 drop_origin"},
        BadHeader{"OwnOrigin", [](auto& h) { h.origin = 1; }, "+1 drop_origin"},
        BadHeader{"OriginThatIsNotTheSender", [](auto& h) { h.origin = 3; }, "+1 drop_sender"},
        BadHeader{"StepOfAnotherSender", [](auto& h) { h.hop = 1; }, "+1 drop_sender"},
        BadHeader{"LengthOfABlock", [](auto& h) { h.block_bytes = 16; }, "+1 drop_length"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_P(BadStepHeader, IsDropped) {
  Frame frame = step(0);
  GetParam().spoil(frame.header);
  seal(frame);
  EXPECT_EQ(change(frame), GetParam().change);
  begin();
  bench.take_log();
  EXPECT_EQ(change(frame), GetParam().change);
  EXPECT_EQ(bench.take_log(), "");
  expect_smooth();
}

// Rank 4, whose address is known, is nobody's who sends us a step.
TEST_F(HostileBruckv, AStepFromWhoSendsNoneIsDropped) {
  begin();
  deliver_steps();
  post(1, false, 1);
  bench.finish_all_dma();
  Frame frame = wire.direct(4, shape(), 1, PEAL_PIECE_STEP, {});
  bench.finish_all_dma();
  EXPECT_EQ(answer(frame), "");
  bench.finish_all_dma();
  for (uint32_t k = 0; k < steps; k++) {
    EXPECT_EQ(done(), 1u);
    bench.deliver(step(k, 1));
    bench.finish_all_dma();
  }
  EXPECT_EQ(wrong(1), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DROP_SENDER), 1u);
}

// What has no bit 0, or is no way, or no length; all of it behind a good block.
struct BadBlock {
  const char* name;
  uint32_t way;
  size_t says;
  size_t has;
};

constexpr size_t kLongestOf8 = short_block(8);

class BadStepBlock : public HostileBruckv, public ::testing::WithParamInterface<BadBlock> {
 protected:
  [[nodiscard]] Frame bad() const {
    const BadBlock& block = GetParam();
    std::vector<uint8_t> lot;
    append(lot, 1, bytes(16));
    append_head(lot, block.way, block.says);
    const auto more = bytes(block.has);
    lot.insert(lot.end(), more.begin(), more.end());
    return step_of_lot(0, lot);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Of, BadStepBlock,
    ::testing::Values(BadBlock{"WayWithoutTheBit", 2, 16, 16}, BadBlock{"WayToItself", 0, 16, 16},
                      BadBlock{"WayBeyondTheRanks", 9, 16, 16},
                      BadBlock{"WayFarBeyond", 0xffff, 16, 16}, BadBlock{"TheSameWay", 1, 16, 16},
                      BadBlock{"TheSameWayDirectly", 1, 0, 0},
                      BadBlock{"LongerThanShort", 3, kLongestOf8 + 1, kLongestOf8 + 1},
                      BadBlock{"MoreThanThereAre", 3, 16, 15},
                      BadBlock{"FarMoreThanThereAre", 3, 0xffff, 16}),
    [](const auto& row) { return std::string(row.param.name); });

// Who sends it would send the same again: nobody waits for better.
TEST_P(BadStepBlock, IsAMismatch) {
  begin();
  bench.take_log();
  bench.deliver(bad());
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DROP_LENGTH), 1u);
  expect_end("MISMATCH", 2);
}

TEST_P(BadStepBlock, IsAMismatchBeforeThePost) {
  bench.deliver(bad());
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DROP_LENGTH), 1u);
  post();
  expect_end("MISMATCH", 2);
}

class HalfAHead : public HostileBruckv, public ::testing::WithParamInterface<size_t> {};

INSTANTIATE_TEST_SUITE_P(Of, HalfAHead, ::testing::Range(size_t{1}, kHead));

TEST_P(HalfAHead, IsAMismatch) {
  begin();
  bench.take_log();
  std::vector<uint8_t> lot;
  append(lot, 1, bytes(16));
  lot.resize(lot.size() + GetParam(), uint8_t{3});
  bench.deliver(step_of_lot(0, lot));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DROP_LENGTH), 1u);
  expect_end("MISMATCH", 2);
}

// Ways up to 7 have three bits, too. Of 5 ranks the peers are 2, 0, 3 and 4.
class WayBeyond5 : public HostileBruckv, public ::testing::WithParamInterface<uint32_t> {
 protected:
  WayBeyond5() : HostileBruckv(kInPackets, 5) {}
};

INSTANTIATE_TEST_SUITE_P(Of, WayBeyond5, ::testing::Values(5u, 7u));

TEST_P(WayBeyond5, IsAMismatch) {
  begin();
  bench.take_log();
  std::vector<uint8_t> lot;
  append(lot, GetParam(), bytes(16));
  bench.deliver(step_of_lot(0, lot));
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=100 MISMATCH rank=2\n");
}

// What comes early lies in the channel, which is memory of the host.
class ChangedChannel : public HostileBruckv {
 protected:
  explicit ChangedChannel(uint32_t ranks_ = 8) : HostileBruckv(kInChannel, ranks_) {}

  void store(uint32_t k) {
    bench.deliver(step(k));
    bench.finish_all_dma();
  }
  // Two bytes of what lies there.
  void change_at(uint32_t k, size_t offset, size_t value) {
    uint8_t* const at = bench.port.bytes(member.channels).data() + arrival_place(k) + offset;
    at[0] = static_cast<uint8_t>(value);
    at[1] = static_cast<uint8_t>(value >> 8);
  }
};

struct ChannelChange {
  const char* name;
  size_t offset;
  size_t value;
  size_t expected;  // of rank 2: what the table says
};

class ChangedHead : public ChangedChannel, public ::testing::WithParamInterface<ChannelChange> {};

INSTANTIATE_TEST_SUITE_P(Of, ChangedHead,
                         ::testing::Values(ChannelChange{"WayWithoutTheBit", 0, 2, 16},
                                           ChannelChange{"WayBeyondTheRanks", 0, 9, 16},
                                           ChannelChange{"LongerThanShort", 2, kLongestOf8 + 1, 16},
                                           ChannelChange{"FarMore", 2, 0xffff, 16},
                                           ChannelChange{"NotWhereTheNextBegins", 2, 15, 15},
                                           // of the last one
                                           ChannelChange{"MoreThanThereAre", 3 * (kHead + 16) + 2,
                                                         17, 16}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_P(ChangedHead, IsAFault) {
  store(0);
  set_length(2, 1, GetParam().expected);
  change_at(0, GetParam().offset, GetParam().value);
  begin();
  expect_end("DMA_FAULT");
}

TEST_F(ChangedChannel, TheSameWayTwiceIsAFault) {
  store(2);
  change_at(2, kHead + 16, 4);
  begin();
  expect_end("DMA_FAULT");
}

// Its header is the card's.
TEST_F(ChangedChannel, AStepIsSentAgainAsLongAsItWas) {
  begin();
  deliver_steps();
  expect_over();
  uint8_t* const log = bench.port.bytes(member.channels).data() + log_place(0);
  std::fill_n(log, kLog, uint8_t{0xff});
  EXPECT_EQ(ask_for_step(0), sends(0, " repair"));
}

// What lies there is read twice where it does not all go on at once, and between the two somebody
// puts what went on behind it: the log has no room for the rank's own blocks then.
TEST_F(ChangedChannel, BlocksThatGoOnTwiceLeaveNoRoom) {
  set_all(most);
  const auto lot_of = [&](std::initializer_list<uint32_t> ways_) {
    std::vector<uint8_t> lot;
    for (const uint32_t way : ways_) append(lot, way, bytes(most));
    return lot;
  };
  bench.deliver(step_of_lot(0, lot_of({3, 7, 1, 5})));
  bench.finish_all_dma();
  post();
  bench.finish_dma();  // the addresses
  bench.finish_dma();  // the table; own blocks, and behind them what came, are being read
  const auto finish_last = [&] { bench.finish_dma(bench.port.dma_count() - 1); };
  const uint32_t taken = CONFIG_DMA_RECORDS - bench.card().dma_in_use - 1;
  bench.card().dma_in_use += taken;
  finish_last();  // which gives a record back: two blocks go on in step 1
  bench.card().dma_in_use -= taken;
  const auto changed = lot_of({1, 5, 3, 7});
  std::copy(changed.begin(), changed.end(),
            bench.port.bytes(member.channels).begin() + static_cast<long>(arrival_place(0)));
  bench.advance(kNack / 4 + 1);
  finish_last();
  EXPECT_EQ(lines_with(bench.take_log(), "REFUSE"), "");
  bench.finish_all_dma();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
}

// More own blocks than are read at a time: the last are read when what has come went on.
class ChangedChannelOf16 : public ChangedChannel {
 protected:
  ChangedChannelOf16() : ChangedChannel(16) { set_all(most); }
};

// More of step 0 says that it goes on in step 1, which has room for no more then.
TEST_F(ChangedChannelOf16, OwnBlocksWithoutRoomAreAFault) {
  store(0);
  // Ways 3, 7, 11 and 15 do; two own blocks are there before them, two come behind.
  for (const size_t i : {0u, 2u}) change_at(0, i * (kHead + most), 3);
  begin();
  EXPECT_EQ(lines_that_begin(bench.take_log(), "complete"),
            "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
}

// And what comes behind it does.
TEST_F(ChangedChannel, BlocksWithoutRoomAreAFault) {
  set_all(most);
  set_length(3, 0, most);
  store(0);
  for (size_t i = 0; i < 4; i++) change_at(0, i * (kHead + most), 3);
  begin();
  expect_end("DMA_FAULT");
}

}  // namespace
}  // namespace peal::test
