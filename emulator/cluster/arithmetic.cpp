// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/arithmetic.h"

#include <algorithm>

namespace peal::sim {

namespace {

uint64_t divided_up(uint64_t bytes, uint64_t by) { return bytes == 0 ? 1 : (bytes + by - 1) / by; }

// Step k of a piece carries min(2^k, N - 2^k) blocks, cut into packets.
uint64_t doubling_packets(const CardShape& card, uint32_t ranks, uint64_t piece_bytes) {
  uint64_t packets = 0;
  for (uint32_t held = 1; held < ranks; held *= 2)
    packets += divided_up(uint64_t{std::min(held, ranks - held)} * piece_bytes, card.mtu_bytes);
  return ranks * packets;
}

}  // namespace

uint32_t rounds_of(uint32_t ranks) {
  uint32_t rounds = 0;
  while ((uint64_t{1} << rounds) < ranks) rounds++;
  return rounds;
}

uint64_t needed_packets(const CardShape& card, uint32_t ranks, const OperationPlan& operation) {
  // A destroy is a barrier, and a farewell to each peer whose signals were awaited.
  if (operation.opcode == PEAL_OPERATION_DESTROY) return 2 * uint64_t{ranks} * rounds_of(ranks);
  if (operation.opcode != PEAL_OPERATION_ALLGATHER) return uint64_t{ranks} * rounds_of(ranks);
  const uint32_t image = card.channel_bytes / (2 * card.piece_window) / ranks;
  const uint64_t piece = std::min(card.mtu_bytes, image) & ~7u;
  const uint64_t pieces = divided_up(operation.block_bytes, piece);
  if (operation.algorithm == PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST)
    return uint64_t{ranks} * (ranks - 1) * pieces;
  const uint64_t last = operation.block_bytes - (pieces - 1) * piece;
  return (pieces - 1) * doubling_packets(card, ranks, piece) + doubling_packets(card, ranks, last);
}

uint64_t recycling_packets(const CardShape& card, uint32_t ranks, uint64_t operations) {
  return operations / (card.channels / 2) * ranks * rounds_of(ranks);
}

}  // namespace peal::sim
