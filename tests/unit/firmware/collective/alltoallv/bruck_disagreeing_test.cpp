// SPDX-License-Identifier: BSD-2-Clause
// Alltoallv in steps among ranks whose tables disagree about a block: it is its origin that is
// named, whoever brings it.
#include "firmware/collective/alltoallv/bruck.h"

#include "tests/unit/firmware/collective/alltoallv/bruck_fixture.h"

namespace peal::test {
namespace {

constexpr size_t kLongOf8 = short_block(8) + 1;

// Lengths of the block from the origin to rank 1, and of the one back, as its table has them, and
// as rank 1's.
struct TwoTables {
  const char* name;
  size_t theirs, theirs_back;
  size_t ours, ours_back;
  bool missing = false;  // of the steps, which tells it only when all have come
};

constexpr TwoTables kTwoTables[] = {
    {"Longer", 17, 16, 16, 16},
    {"Shorter", 15, 16, 16, 16},
    {"EmptyHere", 16, 16, 0, 16},
    {"EmptyThere", 0, 16, 16, 16, true},
    {"LongHere", 16, 16, kLongOf8, 16},
    {"LongThere", kLongOf8, 16, 16, 16},
    {"LongBackHere", 16, 16, 16, kLongOf8},
    {"LongBackThere", 16, kLongOf8, 16, 16},
    {"LongThereEmptyHere", kLongOf8, 16, 0, 16},
    {"EmptyThereLongHere", 0, 16, kLongOf8, 16, true},
    {"LongBackHereBothEmpty", 0, 16, 0, kLongOf8, true},
};

class DisagreeingBruckv
    : public BruckvTest,
      public ::testing::WithParamInterface<std::tuple<TwoTables, uint32_t, uint32_t>> {
 protected:
  DisagreeingBruckv() : BruckvTest(8, 1, std::get<2>(GetParam())) {
    set_all(16);
    set_length(3, rank, 0);  // which is no reason to name that
    agree_on(tables().theirs, tables().theirs_back);
    for (uint32_t k = 0; k < steps; k++) coming.push_back(step(k));
    agree_on(tables().ours, tables().ours_back);
  }
  [[nodiscard]] static const TwoTables& tables() { return std::get<0>(GetParam()); }
  [[nodiscard]] static uint32_t origin() { return std::get<1>(GetParam()); }
  void agree_on(size_t length_here, size_t length_back) {
    set_length(origin(), rank, length_here);
    set_length(rank, origin(), length_back);
  }
  // The last step of the origin's way.
  [[nodiscard]] uint32_t last_step() const {
    return bruck_steps((origin() + ranks - rank) % ranks + 1) - 1;
  }
  void expect_named(std::string log = "") {
    bench.finish_all_dma();
    log += bench.take_log();
    const std::string named = " rank=" + std::to_string(origin()) + "\n";
    std::string told;
    for (const uint32_t peer : {2u, 0u, 3u, 7u, 5u})
      told += "send 1>" + std::to_string(peer) + " REFUSE seq=0" + named;
    EXPECT_EQ(lines_with(log, "REFUSE"), told);
    EXPECT_EQ(lines_that_begin(log, "complete"), "complete ctx0 cookie=100 MISMATCH" + named);
    EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_FAILED), 1u);
    EXPECT_EQ(answer(question(0)), "send 1>0 REFUSE seq=0" + named);
    expect_staying(0);
  }

  std::vector<Frame> coming;
};

// They bring their blocks in steps 0, 1 and 2.
INSTANTIATE_TEST_SUITE_P(Of, DisagreeingBruckv,
                         ::testing::Combine(::testing::ValuesIn(kTwoTables),
                                            ::testing::Values(2u, 4u, 0u),
                                            ::testing::Values(kInChannel, kInPackets)),
                         [](const auto& row) {
                           return std::string(std::get<0>(row.param).name) + "Rank" +
                                  std::to_string(std::get<1>(row.param)) + "Keeps" +
                                  std::to_string(std::get<2>(row.param));
                         });

TEST_P(DisagreeingBruckv, IsNamedWhenItsBlockComes) {
  begin();
  for (uint32_t k = 0; k < steps; k++) {
    EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_FAILED), 0u) << k;
    bench.deliver(coming[k]);
    bench.finish_all_dma();
    if (!tables().missing && k == last_step()) break;
  }
  // And is kept nowhere.
  const std::string log = bench.take_log();
  for (uint32_t k = 0; k < steps; k++)
    EXPECT_EQ(lines_with(log, "channel+" + std::to_string(arrival_place(k)) + " "), "") << k;
  expect_named(log);
}

TEST_P(DisagreeingBruckv, IsNamedWhenTheTableHasCome) {
  for (const Frame& frame : coming) {
    bench.deliver(frame);
    bench.finish_all_dma();
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_RECEIVED), steps);
  post();
  expect_named();
}

// A pair that goes directly, for the other rank alone.
class DisagreeingPair : public BruckvTest {
 protected:
  DisagreeingPair() { set_all(16); }

  std::string end() {
    bench.finish_all_dma();
    return lines_that_begin(bench.take_log(), "complete");
  }
};

TEST_F(DisagreeingPair, IsNamedForALongBlockOfAnotherLength) {
  set_length(4, 1, most + 2);
  const Frame longer = from(4);
  set_length(4, 1, most + 1);
  begin();
  deliver_steps();
  bench.take_log();
  bench.deliver(longer);
  EXPECT_EQ(end(), "complete ctx0 cookie=100 MISMATCH rank=4\n");
}

TEST_F(DisagreeingPair, IsNamedForALongBlockWhereOursIsShort) {
  set_length(4, 1, most + 1);
  const Frame long_one = from(4);
  set_length(4, 1, 16);
  begin();
  bench.take_log();
  bench.deliver(long_one);
  EXPECT_EQ(end(), "complete ctx0 cookie=100 MISMATCH rank=4\n");
}

// What it sends directly is as long as it should be; its head in the steps tells.
TEST_F(DisagreeingPair, ItsShortBlockDirectlyIsDropped) {
  begin();
  bench.take_log();
  EXPECT_EQ(change(from(4)), "+1 drop_piece");
  EXPECT_EQ(bench.take_log(), "");
  deliver_steps();
  expect_over();
}

TEST_F(DisagreeingPair, ItsShortBlockDirectlyIsNamedWhenTheTableHasCome) {
  bench.deliver(from(4));
  post();
  EXPECT_EQ(end(), "complete ctx0 cookie=100 MISMATCH rank=4\n");
}

}  // namespace
}  // namespace peal::test
