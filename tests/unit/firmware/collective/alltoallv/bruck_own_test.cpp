// SPDX-License-Identifier: BSD-2-Clause
// Alltoallv in steps: which own blocks are read together.
#include "firmware/collective/alltoallv/bruck.h"

#include "tests/unit/firmware/collective/alltoallv/bruck_fixture.h"

namespace peal::test {
namespace {

class OwnBruckv : public BruckvTest {
 protected:
  explicit OwnBruckv(uint32_t sent_packets = kInPackets) : BruckvTest(8, 1, sent_packets) {}

  // The table says that own blocks lie there; nothing else moves.
  void post_at(const std::vector<uint64_t>& offsets) {
    auto moved = parts(false);
    for (uint32_t to = 0; to < ranks; to++) {
      moved[to].offset = offsets[to];
      const auto bytes = block(rank, to);
      std::copy(bytes.begin(), bytes.end(),
                bench.port.bytes(given.region).begin() + static_cast<long>(offsets[to]));
    }
    write_table(moved);
    bench.submit(entry());
  }
  // One behind the other.
  [[nodiscard]] std::vector<uint64_t> side_by_side() const {
    std::vector<uint64_t> offsets(ranks);
    for (uint32_t to = 1; to < ranks; to++) offsets[to] = offsets[to - 1] + length(rank, to - 1);
    return offsets;
  }
  // The reads that begin there, and end where the next one does.
  static std::string reads(const std::vector<uint64_t>& ends) {
    std::string text;
    for (size_t i = 0; i + 1 < ends.size(); i++)
      text += "dma_read given+" + std::to_string(ends[i]) + " " +
              std::to_string(ends[i + 1] - ends[i]) + "\n";
    return text;
  }
  std::string own_reads() {
    bench.finish_all_dma();
    return lines_that_begin(bench.take_log(), "dma_read given");
  }
  void expect_smooth() {
    deliver_steps();
    expect_over();
    expect_all_sent();
  }
};
class OwnBruckvInChannel : public OwnBruckv {
 protected:
  OwnBruckvInChannel() : OwnBruckv(kInChannel) {}
};

TEST_F(OwnBruckv, OwnBlocksSideBySideAreReadTogether) {
  set_all(16);
  post_at(side_by_side());
  EXPECT_EQ(own_reads(), reads({0, 128}));
  expect_smooth();
}

TEST_F(OwnBruckv, AGapDividesThem) {
  set_all(16);
  auto offsets = side_by_side();
  for (uint32_t to = 3; to < ranks; to++) offsets[to] += 1;
  post_at(offsets);
  EXPECT_EQ(own_reads(), reads({0, 48}) + reads({49, 129}));
  expect_smooth();
}

// What is not read does.
TEST_F(OwnBruckv, AnEmptyBlockDividesThem) {
  set_all(16);
  set_length(1, 5, 0);
  post_at(side_by_side());
  EXPECT_EQ(own_reads(), reads({0, 80, 112}));
  expect_smooth();
}

TEST_F(OwnBruckv, NoMoreThanAPacketHoldsIsReadTogether) {
  set_all(most);
  post_at(side_by_side());
  const uint64_t run = CONFIG_MTU_BYTES / most;
  std::vector<uint64_t> ends;
  for (uint64_t to = 0; to < ranks; to += run) ends.push_back(to * most);
  ends.push_back(ranks * most);
  EXPECT_EQ(own_reads(), reads(ends));
  expect_smooth();
}

// To the byte.
TEST_F(OwnBruckv, AFullPacketIsReadTogether) {
  constexpr size_t kRun = CONFIG_MTU_BYTES / short_block(8);
  constexpr size_t kRest = CONFIG_MTU_BYTES % short_block(8);
  static_assert(kRun < 7 && kRest > 0);
  set_all(0);
  for (uint32_t to = 0; to < kRun; to++) set_length(rank, to, most);
  set_length(rank, kRun, kRest);
  post_at(side_by_side());
  EXPECT_EQ(own_reads(), reads({0, CONFIG_MTU_BYTES}));
  expect_smooth();
}

TEST_F(OwnBruckv, AByteMoreIsReadByItself) {
  constexpr size_t kRun = CONFIG_MTU_BYTES / short_block(8);
  constexpr size_t kRest = CONFIG_MTU_BYTES % short_block(8) + 1;
  set_all(0);
  for (uint32_t to = 0; to < kRun; to++) set_length(rank, to, most);
  set_length(rank, kRun, kRest);
  post_at(side_by_side());
  EXPECT_EQ(own_reads(), reads({0, kRun * most, kRun * most + kRest}));
  expect_smooth();
}

// There each needs a head before it.
TEST_F(OwnBruckvInChannel, OwnBlocksAreReadOneByOne) {
  set_all(16);
  post_at(side_by_side());
  EXPECT_EQ(own_reads(), reads({0, 16, 32, 48, 64, 80, 96, 112, 128}));
  expect_smooth();
}

}  // namespace
}  // namespace peal::test
