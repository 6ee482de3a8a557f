// SPDX-License-Identifier: BSD-2-Clause
// Alltoallv in steps of which one transfer fails, whichever it is.
#include "firmware/collective/alltoallv/bruck.h"

#include "tests/unit/firmware/collective/alltoallv/bruck_fixture.h"

namespace peal::test {
namespace {

// Rank 1 of 4, which sends step 0 to 0 and gets it from 2, and exchanges step 1 with 3.
struct FaultRun {
  const char* name;
  uint32_t sent_packets;
  bool early;
  bool in_place;
  uint64_t transfers;
};

constexpr FaultRun kFaultRuns[] = {
    // The table; own blocks; landings.
    {"InPackets", kInPackets, false, false, 1 + 4 + 4},
    {"EarlyInPackets", kInPackets, true, false, 1 + 4 + 4},
    {"EarlyInPlaceInPackets", kInPackets, true, true, 1 + 3 + 3},
    // Besides: blocks of what steps send, and these as a whole.
    {"InChannel", kInChannel, false, false, 9 + 4 + 2},
    // And what comes in them, there and back.
    {"EarlyInChannel", kInChannel, true, false, 9 + 6 + 4},
    {"EarlyInPlaceInChannel", kInChannel, true, true, 7 + 6 + 4},
};

// The transfer that fails, or behind the last one none.
struct OneFault {
  FaultRun run;
  uint64_t transfer;
};

std::vector<OneFault> bruckv_faults() {
  std::vector<OneFault> faults;
  for (const FaultRun& run : kFaultRuns)
    for (uint64_t transfer = 0; transfer <= run.transfers; transfer++)
      faults.push_back({run, transfer});
  return faults;
}

class BruckvFault : public BruckvTest, public ::testing::WithParamInterface<OneFault> {
 protected:
  BruckvFault() : BruckvTest(4, 1, GetParam().run.sent_packets) { set_all(16); }

  // Returns what the card did.
  std::string run() {
    bench.port.fault_dmas = {GetParam().transfer, 1};
    if (GetParam().run.early) deliver_steps();
    post(0, GetParam().run.in_place);
    bench.finish_all_dma();
    if (!GetParam().run.early) deliver_steps();
    return bench.take_log();
  }
  static std::string line(const std::string& lines, uint64_t number) {
    size_t at = 0;
    while (number-- > 0) at = lines.find('\n', at) + 1;
    return lines.substr(at, lines.find('\n', at) - at);
  }
  // The step that is read to be sent, or none.
  [[nodiscard]] uint32_t step_sent_by(const std::string& transfer) const {
    for (uint32_t k = 0; k < steps; k++)
      if (transfer.starts_with("dma_read channel+" + std::to_string(log_place(k)) + " ")) return k;
    return steps;
  }
};

INSTANTIATE_TEST_SUITE_P(Of, BruckvFault, ::testing::ValuesIn(bruckv_faults()),
                         [](const auto& row) {
                           return std::string(row.param.run.name) +
                                  std::to_string(row.param.transfer);
                         });

// A step that could not be read is a step that was lost, which its receiver asks for.
TEST_P(BruckvFault, EndsTheOperationWhichTellsItsPeers) {
  const std::string log = run();
  const std::string transfers = lines_that_begin(log, "dma_");
  if (GetParam().transfer == GetParam().run.transfers) {
    EXPECT_EQ(count_lines_that_begin(transfers, ""), GetParam().run.transfers);
    expect_over();
    expect_all_sent();
    return;
  }
  const uint32_t lost = step_sent_by(line(transfers, GetParam().transfer));
  const std::string told =
      "send 1>2 REFUSE seq=0 rank=1\n"
      "send 1>0 REFUSE seq=0 rank=1\n"
      "send 1>3 REFUSE seq=0 rank=1\n";
  EXPECT_EQ(lines_with(log, "REFUSE"), lost < steps ? "" : told);
  EXPECT_EQ(lines_that_begin(log, "complete"), lost < steps
                                                   ? "complete ctx0 cookie=100 OK\n"
                                                   : "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
  if (lost == steps) return expect_staying(0);
  expect_over();
  expect_repaired(lost);
}

}  // namespace
}  // namespace peal::test
