// SPDX-License-Identifier: BSD-2-Clause
// Bruck's all-to-all among many: steps of several packets, and packets whose blocks do not stay
// together.
#include "firmware/collective/alltoall/bruck.h"

#include "firmware/operation/layout.h"
#include "tests/unit/firmware/collective/alltoall/bruck_fixture.h"

namespace peal::test {
namespace {

// Rank 1 of 64: 32 blocks a step, eight lots of those that stay together in a packet.
class BruckOf64 : public BruckTest {
 protected:
  BruckOf64() : BruckTest(64, 1, kSmall) {}
  Frame part(uint32_t k, uint32_t fragment, size_t blocks) const {
    const auto all = lot(above(k), k, 0, 0, kSmall);
    const size_t first = fragment * blocks * kSmall;
    const size_t end = std::min(first + blocks * kSmall, all.size());
    return wire.bruck(
        bruck_shape(kSmall), 0, 0, k, fragment,
        {all.begin() + static_cast<long>(first), all.begin() + static_cast<long>(end)});
  }
};

TEST_F(BruckOf64, FragmentsOfALargeStep) {
  post(0, kSmall);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=512\n"
            "send 1>0 DATA seq=0 piece=0 step=0 frag=1 len=512\n"
            "send 1>0 DATA seq=0 piece=0 step=0 frag=2 len=512\n"
            "send 1>0 DATA seq=0 piece=0 step=0 frag=3 len=512\n");
  std::vector<uint8_t> sent;
  for (const Frame& frame : bench.port.take_sent())
    sent.insert(sent.end(), frame.payload.begin(), frame.payload.end());
  EXPECT_EQ(sent, lot(1, 0, 0, 0, kSmall));
  for (const uint32_t fragment : {3u, 0u, 2u}) bench.deliver(part(0, fragment, 8));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>2 NACK seq=0 piece=0 step=0 missing=0x2\n");
  EXPECT_EQ(answer(0, 0, kSmall, 0, 0x6),
            "send 1>0 DATA seq=0 piece=0 step=0 frag=1 len=512 repair\n"
            "send 1>0 DATA seq=0 piece=0 step=0 frag=2 len=512 repair\n");
  const auto all = lot(1, 0, 0, 0, kSmall);
  EXPECT_EQ(bench.port.take_sent()[1].payload,
            std::vector<uint8_t>(all.begin() + 1024, all.begin() + 1536));
  EXPECT_EQ(change(part(0, 3, 8)), "+1 duplicate");
  bench.deliver(part(0, 1, 8));
  for (uint32_t k = 1; k < 6; k++) {
    const uint32_t room = CONFIG_MTU_BYTES / kSmall;
    const uint32_t blocks = room >> k == 0 ? room : std::min(room >> k, 8u) << k;
    for (uint32_t fragment = 0; fragment * blocks < 32; fragment++)
      bench.deliver(part(k, fragment, blocks));
    bench.finish_all_dma();
    bench.port.take_sent();
  }
  ASSERT_EQ(bench.port.take_completions().size(), 1u);
  EXPECT_EQ(wrong_byte(0, kSmall), -1);
}

// Blocks of several pieces, too many for staging: each of a packet's eight lots is written for
// itself. A packet whose blocks cannot all be written is as good as lost, and comes again.
class BruckOf64Scattered : public BruckOf64 {
 protected:
  static constexpr uint32_t kPiece = piece_bytes_for(64 + 6 * 32);
  static constexpr size_t kScattered = size_t{2 * kWindow} * kPiece;

  Frame lots(uint32_t sequence, uint32_t piece, uint32_t k, uint32_t fragment) const {
    const auto all = lot(above(k), k, sequence, piece * kPiece, kPiece);
    const long bytes = static_cast<long>((8 << k) * kPiece);
    const auto first = all.begin() + fragment * bytes;
    return wire.bruck(bruck_shape(kScattered), sequence, piece, k, fragment,
                      {first, first + bytes});
  }
  // What the counters say of one that all places were found for.
  static std::string taken_whole(const Frame& frame) {
    return "+1 received, +" + std::to_string(frame.payload.size()) +
           " dma_write_bytes, +8 dma_operations, +1 early_data";
  }
  // Of all that may come early, in the order of operations.
  std::vector<Frame> early() const {
    std::vector<Frame> frames;
    for (uint32_t sequence = 0; sequence < CONFIG_CHANNELS; sequence++) {
      for (uint32_t piece = 0; piece < 2 * kWindow; piece++) {
        for (uint32_t fragment = 0; fragment < 6; fragment++)
          frames.push_back(lots(sequence, piece, fragment / 4, fragment % 4));
      }
    }
    return frames;
  }
};

TEST_F(BruckOf64Scattered, APacketThatCannotBeWrittenWholeIsNotTaken) {
  bench.port.log_dma = false;
  bench.port.refuse_dmas = {0, kAlways};
  const std::vector<Frame> frames = early();
  // Blocks of the last step stay together: they take one record, so that seven are left in the end.
  const auto last = lot(above(5), 5, 0, 0, kPiece);
  const std::string counted = change(wire.bruck(
      bruck_shape(kScattered), 0, 0, 5, 0,
      {last.begin(), last.begin() + static_cast<long>(CONFIG_MTU_BYTES / kPiece * kPiece)}));
  ASSERT_EQ(counted,
            "+1 received, +" + kMtuText + " dma_write_bytes, +1 dma_operations, +1 early_data");
  constexpr size_t kRoom = (CONFIG_DMA_RECORDS - 1) / 8;
  ASSERT_GT(frames.size(), kRoom);
  for (size_t i = 0; i < kRoom; i++) {
    const std::string taken = change(frames[i]);
    ASSERT_EQ(taken, taken_whole(frames[i])) << i;
  }
  EXPECT_EQ(change(frames[kRoom]), "+1 drop_no_dma");
  bench.port.refuse_dmas = {};
  bench.advance(default_timeouts().nack_ns);
  bench.finish_all_dma();
  const std::string again = change(frames[kRoom]);
  EXPECT_EQ(again, taken_whole(frames[kRoom]));
  bench.finish_all_dma();
}

}  // namespace
}  // namespace peal::test
