// SPDX-License-Identifier: BSD-2-Clause
// Collectives as programs, carried out by a model in orders that seeds draw: what must come out
// does, start after start, and nobody runs further ahead than a card remembers.
#include "hostlib/program_collectives.h"

#include <gtest/gtest.h>

#include "tests/support/program_model.h"

namespace peal::host {
namespace {

using test::ProgramModel;

constexpr uint64_t kSeeds = 40;

TEST(ChainBroadcast, TheRootsBytesReachEverybody) {
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const auto ranks = static_cast<uint32_t>(1 + seed % 7);
    const auto root = static_cast<uint32_t>(seed / 7 % ranks);
    const size_t bytes = seed % 5 * 33;
    std::vector<std::vector<uint8_t>> buffers(ranks, std::vector<uint8_t>(bytes + 1, 0xee));
    for (size_t i = 0; i < bytes; i++) buffers[root][i] = static_cast<uint8_t>(i * 7 + seed);
    ProgramModel model(seed);
    std::vector<Program::Remote> remotes;
    for (auto& buffer : buffers) remotes.push_back(model.add_memory(buffer.data()));
    std::vector<Program> programs;
    for (uint32_t rank = 0; rank < ranks; rank++) {
      programs.push_back(
          chain_broadcast(rank, ranks, root, buffers[rank].data(), bytes, 16, remotes));
    }
    for (const Program& program : programs) model.add_program(program);
    EXPECT_TRUE(model.run(3)) << seed << ": " << model.text();
    for (const auto& buffer : buffers) EXPECT_EQ(buffer, buffers[root]) << seed;
    // The root alone waits for nothing but its neighbour.
    EXPECT_LE(model.farthest_ahead(), 1u);
  }
}

TEST(PairwiseAlltoall, EveryBlockReachesItsPlaceAtAllWindows) {
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const auto ranks = static_cast<uint32_t>(1 + seed % 8);
    const auto window = static_cast<uint32_t>(1 + seed % 3);
    const size_t block = seed % 4 * 5;
    const auto block_of = [&](uint32_t from, uint32_t to) {
      return static_cast<uint8_t>(seed + from * 16 + to);
    };
    std::vector<std::vector<uint8_t>> sends(ranks);
    std::vector<std::vector<uint8_t>> receives(ranks, std::vector<uint8_t>(ranks * block, 0xee));
    ProgramModel model(seed);
    std::vector<Program::Remote> remotes;
    for (uint32_t rank = 0; rank < ranks; rank++) {
      for (uint32_t to = 0; to < ranks; to++) {
        sends[rank].insert(sends[rank].end(), block, block_of(rank, to));
      }
      remotes.push_back(model.add_memory(receives[rank].data()));
    }
    std::vector<Program> programs;
    for (uint32_t rank = 0; rank < ranks; rank++) {
      programs.push_back(
          pairwise_alltoall(rank, ranks, sends[rank].data(), block, window, remotes));
    }
    for (const Program& program : programs) model.add_program(program);
    EXPECT_TRUE(model.run(3)) << seed << ": " << model.text();
    for (uint32_t rank = 0; rank < ranks; rank++) {
      for (uint32_t from = 0; from < ranks; from++) {
        for (size_t i = 0; i < block; i++) {
          ASSERT_EQ(receives[rank][from * block + i], block_of(from, rank)) << seed;
        }
      }
    }
    EXPECT_LE(model.farthest_ahead(), 1u);
  }
}

TEST(PairwiseAlltoall, AsManyPutsAsTheWindowAreUnderWay) {
  const std::vector<Program::Remote> remotes(8);
  const Program program = pairwise_alltoall(0, 8, reinterpret_cast<void*>(0x1000), 8, 3, remotes);
  const uint16_t sent = 8;  // behind arrivals and seven others
  uint64_t over = 0;
  uint64_t under_way = 0;
  uint64_t most = 0;
  for (const Program::Step& step : program.steps()) {
    if (step.descriptor.opcode == PEAL_PROGRAM_WAIT && step.descriptor.counter == sent) {
      over = step.descriptor.threshold;
    }
    if (step.descriptor.opcode != PEAL_PROGRAM_PUT || step.descriptor.done != sent) continue;
    under_way++;
    most = std::max(most, under_way - over);
  }
  EXPECT_EQ(under_way, 7u);
  EXPECT_EQ(most, 3u);
}

}  // namespace
}  // namespace peal::host
