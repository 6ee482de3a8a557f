// SPDX-License-Identifier: BSD-2-Clause
// What most protocol tests start from: one card on the bench, member of one group whose other ranks
// the test plays. At the end the books must balance: no rule of the port broken, every packet and
// DMA record accounted for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/card_bench.h"
#include "tests/support/pattern.h"
#include "tests/support/wire_maker.h"

namespace peal::test {

class CardTest : public ::testing::Test {
 protected:
  CardTest() = default;
  explicit CardTest(const BenchOptions& options) : bench(options) {}
  void TearDown() override { EXPECT_EQ(bench.problems(), ""); }

  // What the counters say of a packet: "+1 duplicate".
  std::string change(const Frame& frame) {
    const auto before = bench.counters();
    bench.deliver(frame);
    return bench.counter_changes(before);
  }
  // What the card sends and completes when it comes.
  std::string answer(const Frame& frame) {
    bench.take_log();
    bench.deliver(frame);
    bench.finish_all_dma();
    return bench.take_wire_log();
  }

  CardBench bench;
};

// A block that fits the header's packet, staging and every channel.
inline constexpr size_t kBlock = 64;
inline const std::string kMtuText = std::to_string(CONFIG_MTU_BYTES);
// Without an answer, a rank asks again after this.
inline constexpr TimeNs kNack = CONFIG_NACK_TIMEOUT_US * TimeNs{1000};

// Rank 1 of 4 unless said otherwise, with memory for allgathers of blocks up to kBlockMax.
class GroupTest : public CardTest {
 protected:
  static constexpr size_t kBlockMax = 4 * CONFIG_MTU_BYTES;

  explicit GroupTest(uint32_t ranks_ = 4, uint32_t rank_ = 1, const BenchOptions& options = {})
      : CardTest(on_card(rank_, options)),
        ranks(ranks_),
        rank(rank_),
        send(bench.add_memory("send", kBlockMax, PEAL_ACCESS_READ)),
        receive(bench.add_memory("receive", kBlockMax * ranks_)),
        member(bench.join(ranks_, rank_)),
        wire(member) {
    bench.take_log();
  }

  // Puts the rank's block of that operation into the send buffer.
  void fill_send(uint64_t sequence, size_t block_bytes) {
    const auto block = pattern_block(sequence, rank, 0, block_bytes);
    std::copy(block.begin(), block.end(), bench.port.bytes(send.region).begin());
  }
  void scribble_send() {
    auto& bytes = bench.port.bytes(send.region);
    std::fill(bytes.begin(), bytes.end(), uint8_t{0x5c});
  }
  void post_allgather(uint64_t sequence, peal_algorithm algorithm, size_t block_bytes) {
    fill_send(sequence, block_bytes);
    bench.submit(allgather_entry(member, sequence, 100 + sequence, algorithm, block_bytes, send.key,
                                 receive.key));
  }
  void post_broadcast(uint64_t sequence, size_t block_bytes) {
    post_allgather(sequence, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, block_bytes);
  }
  void post_doubling(uint64_t sequence, size_t block_bytes) {
    post_allgather(sequence, PEAL_ALGORITHM_RECURSIVE_DOUBLING, block_bytes);
  }
  [[nodiscard]] uint32_t now_us() const { return static_cast<uint32_t>(bench.now / 1000); }
  void post_barrier(uint64_t sequence) {
    bench.submit(barrier_entry(member, sequence, 100 + sequence));
  }
  [[nodiscard]] Frame block_of(uint32_t origin, uint64_t sequence, size_t block_bytes) const {
    return wire.hopping(broadcast_shape(block_bytes), static_cast<uint32_t>(sequence), 0, origin,
                        pattern_block(sequence, origin, 0, block_bytes));
  }
  // Delivers the other ranks' blocks and lets all DMA finish.
  void deliver_others(uint64_t sequence, size_t block_bytes) {
    for (uint32_t origin = 0; origin < ranks; origin++) {
      if (origin != rank) bench.deliver(block_of(origin, sequence, block_bytes));
    }
    bench.finish_all_dma();
  }
  // A broadcast of 8 bytes: it proves nothing of others. Of this rank's own, over as soon as it has
  // been read; of rank 0's, over when it has come.
  void post_own(uint64_t sequence) {
    fill_send(sequence, 8);
    bench.submit(broadcast_entry(member, sequence, 100 + sequence, rank, 8, send.key, 0));
  }
  void post_relay(uint64_t sequence) {
    bench.submit(broadcast_entry(member, sequence, 100 + sequence, 0, 8, 0, receive.key));
  }
  void deliver_relay(uint64_t sequence) {
    bench.deliver(wire.binomial(binomial_shape(8, 0), static_cast<uint32_t>(sequence), 0, 0,
                                pattern_block(sequence, 0, 0, 8)));
    bench.finish_all_dma();
  }
  // Broadcasts of its own from `sequence` on, all over; recycling is not played.
  void run_own(uint64_t sequence, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
      post_own(sequence + i);
      bench.finish_all_dma();
    }
  }
  // Barriers from `sequence` on, one whole epoch (K/2) or more, played to their end, recycling
  // included.
  void run_barriers(uint64_t sequence, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) run_barrier(sequence + i);
  }
  void run_barrier(uint64_t sequence) {
    post_barrier(sequence);
    for (uint32_t round = 0; (1u << round) < ranks; round++) {
      bench.deliver(
          wire.signal(behind(round), kBarrierShape, static_cast<uint32_t>(sequence), round));
    }
    if ((sequence + 1) % kEpoch == 0) deliver_recycling(sequence / kEpoch);
  }
  // That all have finished an epoch, as the rank before this one tells it.
  void deliver_recycling(uint64_t epoch) {
    bench.deliver(wire.recycle_all(static_cast<uint32_t>(epoch), behind(0), 0));
  }
  // So many packets stay to be sent again, and the card holds no others.
  void expect_staying(uint32_t packets) {
    bench.port.take_sent();
    const CardHolds holds = card_holds(bench.card());
    EXPECT_EQ(holds.sent_blocks, packets);
    EXPECT_EQ(holds.packets, 0u);
    EXPECT_EQ(bench.port.packets_unsent(), packets);
  }
  // Of the packets that the card may keep when it has sent them one member gets three quarters,
  // which is all of one.
  static uint32_t share_of_sent(uint32_t port_says) {
    return (3 * std::min<uint32_t>(port_says, CONFIG_SENT_BLOCKS) + 3) / 4;
  }
  [[nodiscard]] uint32_t ahead(uint32_t round) const { return (rank + (1u << round)) % ranks; }
  [[nodiscard]] uint32_t behind(uint32_t round) const {
    return (rank + ranks - (1u << round) % ranks) % ranks;
  }
  // First byte of the receive buffer that is not the result, or -1.
  [[nodiscard]] long wrong_byte(uint64_t sequence, size_t block_bytes) {
    const auto expected = pattern_result(sequence, ranks, block_bytes);
    const auto& bytes = bench.port.bytes(receive.region);
    for (size_t i = 0; i < expected.size(); i++) {
      if (bytes[i] != expected[i]) return static_cast<long>(i);
    }
    return -1;
  }

  static constexpr uint64_t kEpoch = CONFIG_CHANNELS / 2;

  // Rank r lives on card r, for the played ranks and for ours.
  static BenchOptions on_card(uint32_t index, BenchOptions options) {
    options.index = index;
    return options;
  }

  uint32_t ranks;
  uint32_t rank;
  Memory send;
  Memory receive;
  Membership member;
  WireMaker wire;
};

}  // namespace peal::test
