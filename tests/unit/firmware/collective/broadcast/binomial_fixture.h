// SPDX-License-Identifier: BSD-2-Clause
// Rank 1 of 6 in broadcasts: the root at root 1 (children 2, 3 and 5), below root 0 a relay
// (children 3 and 5), below all others a leaf.
#pragma once

#include <algorithm>

#include "tests/support/broadcast_pieces.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {

class BinomialTest : public GroupTest {
 protected:
  static constexpr size_t kFragments = kBroadcastFragments;
  static constexpr size_t kPiece = kBroadcastPiece;
  static constexpr size_t kPlaces = 2 * CONFIG_PIECE_WINDOW;
  static constexpr size_t kLongMax = (3 * kPlaces + 1) * kPiece;
  static constexpr uint64_t kAllFragments = ~uint64_t{0} >> (64 - kFragments);
  static_assert(kFragments > 1);

  explicit BinomialTest(uint32_t ranks_ = 6, uint32_t rank_ = 1, BenchOptions options = {})
      : GroupTest(ranks_, rank_, plenty(options)),
        source(bench.add_memory("source", kLongMax, PEAL_ACCESS_READ)),
        target(bench.add_memory("target", kLongMax, PEAL_ACCESS_READ | PEAL_ACCESS_WRITE)) {
    bench.take_log();
  }

  void post(uint64_t sequence, uint32_t root, size_t block_bytes) {
    if (root == rank) {
      const auto block = pattern_block(sequence, root, 0, block_bytes);
      std::copy(block.begin(), block.end(), bench.port.bytes(source.region).begin());
    } else {
      auto& bytes = bench.port.bytes(target.region);
      std::fill(bytes.begin(), bytes.end(), uint8_t{0xee});
    }
    bench.submit(broadcast_entry(member, sequence, 100 + sequence, root, block_bytes,
                                 root == rank ? source.key : 0, root == rank ? 0 : target.key));
  }
  // The user writes over both buffers.
  void overwrite() {
    for (const RegionId region : {source.region, target.region}) {
      auto& bytes = bench.port.bytes(region);
      std::fill(bytes.begin(), bytes.end(), uint8_t{0x5c});
    }
  }
  // A packet from this rank's parent.
  [[nodiscard]] Frame packet(uint64_t sequence, uint32_t root, size_t block_bytes,
                             uint32_t piece = 0, uint32_t fragment = 0) const {
    const size_t offset = piece * kPiece + fragment * CONFIG_MTU_BYTES;
    const size_t bytes = std::min<size_t>(CONFIG_MTU_BYTES, block_bytes - offset);
    return wire.binomial(binomial_shape(block_bytes, root), static_cast<uint32_t>(sequence), piece,
                         fragment, pattern_block(sequence, root, offset, bytes));
  }
  // All packets of one piece; what they cause is thrown away, but for what the counters say.
  void deliver_piece(uint64_t sequence, uint32_t root, size_t block_bytes, uint32_t piece) {
    const size_t bytes = std::min(kPiece, block_bytes - piece * kPiece);
    for (uint32_t fragment = 0; fragment * CONFIG_MTU_BYTES < bytes; fragment++) {
      bench.deliver(packet(sequence, root, block_bytes, piece, fragment));
      bench.finish_all_dma();
    }
  }
  [[nodiscard]] Frame credit(uint32_t sender, uint32_t root, size_t block_bytes, uint32_t hop,
                             uint32_t pieces) const {
    return wire.credit(sender, binomial_shape(block_bytes, root), 0, hop, pieces);
  }
  [[nodiscard]] Frame question(uint32_t sender, uint32_t root, size_t block_bytes, uint32_t hop,
                               uint32_t piece, uint64_t fragments, uint32_t credit = 0) const {
    return wire.nack(sender, binomial_shape(block_bytes, root), 0, piece, root, hop, fragments,
                     credit);
  }
  // First byte of the receive buffer that is not the result, or -1.
  [[nodiscard]] long wrong_byte_of(uint64_t sequence, uint32_t root, size_t block_bytes) {
    const auto& bytes = bench.port.bytes(target.region);
    return first_wrong(bytes, pattern_block(sequence, root, 0, block_bytes), 0xee);
  }

  static BenchOptions plenty(BenchOptions options) {
    options.packet_buffers = 1024;
    return options;
  }

  Memory source;
  Memory target;
};

}  // namespace peal::test
