// SPDX-License-Identifier: BSD-2-Clause
// Rank 1 of 8 in a direct all-to-all. Its peers are 0, 2, 3, 5 and 7; ranks 4 and 6 are none, and
// are known by a table of addresses alone.
#pragma once

#include "firmware/card_types.h"
#include "tests/unit/firmware/collective/alltoall/alltoall_fixture.h"

namespace peal::test {

class DirectTest : public AlltoallTest {
 protected:
  static constexpr size_t kMost = (2 * CONFIG_PIECE_WINDOW + 2) * CONFIG_MTU_BYTES;

  // All peers hear of a fault, then the host.
  static constexpr const char* kFaultToldToAll =
      "send 1>2 REFUSE seq=0 rank=1\n"
      "send 1>0 REFUSE seq=0 rank=1\n"
      "send 1>3 REFUSE seq=0 rank=1\n"
      "send 1>7 REFUSE seq=0 rank=1\n"
      "send 1>5 REFUSE seq=0 rank=1\n"
      "complete ctx0 cookie=100 DMA_FAULT rank=1\n";

  explicit DirectTest(bool keeps_early = false, uint32_t sent_packets = 0)
      : AlltoallTest(PEAL_ALGORITHM_DIRECT, 8, 1, kMost,
                     {.tables = true, .keeps_early = keeps_early, .sent_packets = sent_packets}) {}

  void post(size_t block = kBlock) { AlltoallTest::post(0, block); }
  void post_in_place(size_t block = kBlock) { AlltoallTest::post_in_place(0, block); }
  [[nodiscard]] long wrong(size_t block = kBlock) { return wrong_byte(0, block); }
  // What a rank sends us of a piece.
  [[nodiscard]] Frame from(uint32_t sender, size_t block = kBlock, uint32_t piece = 0) const {
    const size_t before = size_t{piece} * CONFIG_MTU_BYTES;
    const size_t bytes = std::min<size_t>(block - before, CONFIG_MTU_BYTES);
    return wire.direct(sender, direct_shape(block), 0, piece,
                       pattern_between(0, sender, rank, before, bytes));
  }
  void deliver_all(size_t block = kBlock, uint32_t piece = 0) {
    for (uint32_t sender = 0; sender < ranks; sender++) {
      if (sender != rank) bench.deliver(from(sender, block, piece));
      bench.finish_all_dma();
    }
  }
  // What we send a rank of a piece.
  [[nodiscard]] std::vector<uint8_t> own(uint32_t to, size_t block = kBlock,
                                         uint32_t piece = 0) const {
    const size_t before = size_t{piece} * CONFIG_MTU_BYTES;
    return pattern_between(0, rank, to, before, std::min<size_t>(block - before, CONFIG_MTU_BYTES));
  }
  std::string answer(uint32_t asker, size_t block = kBlock, uint32_t piece = 0,
                     uint64_t fragments = 1) {
    return AlltoallTest::answer(
        wire.nack(asker, direct_shape(block), 0, piece, rank, 0, fragments));
  }
};

// It has learned that ranks are late, so it asks for nothing in silence.
class PatientDirectTest : public DirectTest {
 protected:
  static constexpr size_t kPiece = CONFIG_MTU_BYTES;
  static constexpr size_t kLong = 2 * kPiece;
  const TimeNs nack = default_timeouts().nack_ns;
  const TimeNs soon = nack / 4;  // when what is lost is asked for, whatever patience has learned

  PatientDirectTest() { bench.card().members[0].patience.wait_ns = default_timeouts().dead_ns; }

  void come(uint32_t sender, uint32_t piece) {
    bench.deliver(from(sender, kLong, piece));
    bench.finish_all_dma();
  }
  void post_next() {
    AlltoallTest::post(1, kBlock);
    bench.finish_all_dma();
    bench.take_log();
  }
};

}  // namespace peal::test
