// SPDX-License-Identifier: BSD-2-Clause
// For tests of the alltoallv in steps: what a rank sends in each of them, computed here once more.
#pragma once

#include <bit>

#include "firmware/card_types.h"
#include "tests/unit/firmware/collective/alltoallv/parts_fixture.h"

namespace peal::test {

// Sent packets that may stay; none: what is sent, and what comes early, lies in the channel.
inline constexpr uint32_t kInChannel = 0;
inline constexpr uint32_t kInPackets = CONFIG_SENT_BLOCKS;

// Images of the channel, and in each of them places for logs and arrivals.
inline constexpr uint32_t kImages = 2 * CONFIG_PIECE_WINDOW;
inline constexpr size_t kImage = CONFIG_CHANNEL_BYTES / kImages;
constexpr uint32_t bruck_steps(uint32_t ranks) {
  return static_cast<uint32_t>(std::bit_width(ranks - 1));
}
constexpr uint32_t log_places_of(uint32_t ranks) {
  return (2 * bruck_steps(ranks) + kImages - 1) / kImages;
}
inline constexpr size_t kLog =
    std::min<size_t>(CONFIG_MTU_BYTES, kImage / 2 / log_places_of(kPairRanks)) & ~size_t{7};
inline constexpr size_t kHead = 4;
// What a packet has room for, shared out among the blocks of a step.
constexpr size_t short_block(uint32_t ranks) { return ranks < 2 ? 0 : kLog / (ranks / 2) - kHead; }

class BruckvTest : public PartsTest {
 protected:
  explicit BruckvTest(uint32_t ranks_ = 8, uint32_t rank_ = 1, uint32_t sent_packets = kInPackets,
                      BenchOptions options = {})
      : PartsTest(PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_BRUCK, ranks_, rank_,
                  keeping(options, sent_packets)),
        steps(bruck_steps(ranks_)),
        most(short_block(ranks_)) {
    const size_t room = (kImage - log_places_of(ranks) * kLog) / ranks;
    piece_bytes = (std::min<size_t>(room, CONFIG_MTU_BYTES) & ~size_t{7}) - 24;
    set_varied();
  }

  // Empty, short, longer ones; no two ranks alike.
  void set_varied() {
    for (uint32_t a = 0; a < ranks; a++)
      for (uint32_t b = 0; b < ranks; b++) set_length(a, b, (a * 5 + b * 3) % 4 * 10 * (a + 1));
  }
  void set_symmetric() {
    for (uint32_t a = 0; a < ranks; a++)
      for (uint32_t b = 0; b < a; b++) set_length(a, b, length(b, a));
  }
  [[nodiscard]] bool go_directly(uint32_t a, uint32_t b) const {
    return length(a, b) > most || length(b, a) > most;
  }

  static void append_head(std::vector<uint8_t>& lot, uint32_t way, size_t bytes) {
    for (const size_t field : {size_t{way}, bytes}) {
      lot.push_back(static_cast<uint8_t>(field));
      lot.push_back(static_cast<uint8_t>(field >> 8));
    }
  }
  static void append(std::vector<uint8_t>& lot, uint32_t way, const std::vector<uint8_t>& block) {
    append_head(lot, way, block.size());
    lot.insert(lot.end(), block.begin(), block.end());
  }
  // What a rank sends in step k, the lowest way first: the blocks whose way has bit k, of which
  // lower bits were done.
  [[nodiscard]] std::vector<uint8_t> lot(uint32_t sender, uint32_t k, uint64_t sequence = 0) const {
    std::vector<uint8_t> lot;
    for (uint32_t way = 1; way < ranks; way++) {
      if ((way >> k & 1) == 0) continue;
      const uint32_t from = (sender + way % (1u << k)) % ranks;
      const uint32_t to = (from + ranks - way) % ranks;
      if (go_directly(from, to)) {
        append_head(lot, way, 0);
      } else if (length(from, to) > 0) {
        append(lot, way, block(from, to, sequence));
      }
    }
    return lot;
  }
  // The blocks of a lot by their ways; the same bytes where it is none.
  static std::vector<uint8_t> by_way(const std::vector<uint8_t>& lot) {
    std::multimap<uint32_t, std::vector<uint8_t>> blocks;
    for (size_t at = 0; at < lot.size();) {
      if (lot.size() - at < kHead) return lot;
      const uint32_t way = lot[at] | lot[at + 1] << 8;
      const size_t end = at + kHead + (lot[at + 2] | size_t{lot[at + 3]} << 8);
      if (end > lot.size()) return lot;
      blocks.emplace(way, std::vector<uint8_t>(lot.begin() + static_cast<long>(at),
                                               lot.begin() + static_cast<long>(end)));
      at = end;
    }
    std::vector<uint8_t> sorted;
    for (const auto& [way, bytes] : blocks) sorted.insert(sorted.end(), bytes.begin(), bytes.end());
    return sorted;
  }
  // Its ways and lengths, as they lie there: "1:20 3:0 ".
  static std::string ways(const std::vector<uint8_t>& lot) {
    std::string text;
    for (size_t at = 0; at + kHead <= lot.size();) {
      const size_t bytes = lot[at + 2] | size_t{lot[at + 3]} << 8;
      text += std::to_string(lot[at] | lot[at + 1] << 8) + ":" + std::to_string(bytes) + " ";
      at += kHead + bytes;
    }
    return text;
  }

  [[nodiscard]] uint32_t below(uint32_t k) const { return behind(k); }
  [[nodiscard]] uint32_t above(uint32_t k) const { return ahead(k); }
  [[nodiscard]] Frame step_of_lot(uint32_t k, std::vector<uint8_t> payload,
                                  uint32_t sequence = 0) const {
    return wire.bruck(shape(), sequence, PEAL_PIECE_STEP, k, 0, std::move(payload));
  }
  [[nodiscard]] Frame step(uint32_t k, uint32_t sequence = 0) const {
    return step_of_lot(k, lot(above(k), k, sequence), sequence);
  }
  void deliver_steps(uint32_t sequence = 0) {
    for (uint32_t k = 0; k < steps; k++) {
      bench.deliver(step(k, sequence));
      bench.finish_all_dma();
    }
  }
  // A post whose table, and own blocks, have been read.
  void begin(bool in_place = false) {
    post(0, in_place);
    bench.finish_all_dma();
  }

  static Frame sealed(Frame frame) {
    seal(frame);
    return frame;
  }
  [[nodiscard]] std::string sends(uint32_t k, const std::string& more = "",
                                  uint64_t sequence = 0) const {
    return "send " + std::to_string(rank) + ">" + std::to_string(below(k)) +
           " DATA seq=" + std::to_string(sequence) + " " + names(k) +
           " frag=0 len=" + std::to_string(lot(rank, k).size()) + more + "\n";
  }
  [[nodiscard]] static std::string names(uint32_t k) {
    return "piece=" + std::to_string(PEAL_PIECE_STEP) + " step=" + std::to_string(k);
  }
  [[nodiscard]] std::string not_yet(uint32_t k, const std::string& why = "") const {
    return "send " + std::to_string(rank) + ">" + std::to_string(below(k)) + " NOT_YET seq=0 " +
           names(k) + why + "\n";
  }
  [[nodiscard]] std::string asks(uint32_t k) const {
    return "send " + std::to_string(rank) + ">" + std::to_string(above(k)) + " NACK seq=0 " +
           names(k) + " missing=0x1\n";
  }
  [[nodiscard]] Frame question(uint32_t k) const {
    return wire.nack(below(k), shape(), 0, PEAL_PIECE_STEP, rank, k);
  }
  // What is sent and completed when the step is asked for.
  std::string ask_for_step(uint32_t k) {
    bench.port.take_sent();
    return answer(question(k));
  }
  void expect_repaired(uint32_t k) {
    EXPECT_EQ(ask_for_step(k), sends(k, " repair"));
    const auto sent = bench.port.take_sent();
    ASSERT_EQ(sent.size(), 1u) << k;
    EXPECT_EQ(sent[0].header.flags, PEAL_PACKET_REPAIR) << k;
    EXPECT_EQ(sent[0].header.payload_crc, sealed(sent[0]).header.payload_crc) << k;
    EXPECT_EQ(by_way(sent[0].payload), lot(rank, k)) << k;
  }
  // Each step once, and nothing else; in which order is not said.
  void expect_all_sent() {
    std::map<uint32_t, Frame> sent;
    for (Frame& frame : bench.port.take_sent()) {
      const uint32_t k = frame.header.hop;
      EXPECT_TRUE(sent.emplace(k, std::move(frame)).second) << k;
    }
    ASSERT_EQ(sent.size(), steps);
    for (const auto& [k, frame] : sent) {
      EXPECT_EQ(frame.header.destination[5], below(k)) << k;
      EXPECT_EQ(frame.header.flags, PEAL_PACKET_NUMBERED) << k;
      EXPECT_NE(frame.header.edge, 0) << k;
      EXPECT_EQ(frame.header.payload_crc, sealed(frame).header.payload_crc) << k;
      EXPECT_EQ(by_way(frame.payload), lot(rank, k)) << k;
    }
  }
  void expect_over() {
    EXPECT_EQ(done(), 1u);
    EXPECT_EQ(wrong(), "");
  }
  // The place in the channel of what step k sends, or of what comes in it.
  [[nodiscard]] size_t log_place(uint32_t k) const { return place_of(k); }
  [[nodiscard]] size_t arrival_place(uint32_t k) const { return place_of(steps + k); }
  [[nodiscard]] std::string reads_given(uint32_t to) const {
    return "dma_read given+" + std::to_string(place(to)) + " " + std::to_string(length(rank, to)) +
           "\n";
  }
  [[nodiscard]] std::string lands(uint32_t from) const {
    return "dma_write result+" + std::to_string(place(from)) + " " +
           std::to_string(length(from, rank)) + "\n";
  }

  const uint32_t steps;
  const size_t most;  // bytes of a short block

 private:
  static BenchOptions keeping(BenchOptions options, uint32_t sent_packets) {
    options.sent_packets = sent_packets;
    return options;
  }
  [[nodiscard]] size_t place_of(uint32_t index) const {
    return index % kImages * kImage + kImage - log_places_of(ranks) * kLog + index / kImages * kLog;
  }
};

}  // namespace peal::test
