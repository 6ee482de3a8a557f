// SPDX-License-Identifier: BSD-2-Clause
// Each start of a collective has its own bytes: they are there when it is over, and what was sent
// may be written again then, in whatever order a seed has everything happen. So nobody ends a start
// before the last byte is there, nor while his own are still to be read.
#include <gtest/gtest.h>

#include <functional>

#include "hostlib/program_collectives.h"
#include "tests/support/program_model.h"

namespace peal::host {
namespace {

constexpr uint64_t kStarts = 4;
constexpr uint32_t kRanksMost = 9;
constexpr uint64_t kSeeds = 8;

uint8_t byte_of(uint64_t start, uint32_t from, uint32_t to, size_t i) {
  return static_cast<uint8_t>(start * 83 + from * 57 + to * 101 + i * 7 + 1);
}

// All ranks' memory, with `block` bytes for each rank: of broadcasts the first block of `receives`.
class Starts {
 public:
  Starts(uint32_t all_ranks, size_t block_bytes, size_t collective, uint64_t seed)
      : ranks(all_ranks), block(block_bytes), model_(seed) {
    for (uint32_t rank = 0; rank < ranks; rank++) {
      sends.emplace_back(ranks * block);
      receives.emplace_back(ranks * block, 0xee);
      collectives.emplace_back(collective + 1);
    }
    for (auto& each : receives) names.push_back(model_.add_memory(each.data()));
    for (auto& each : collectives) collective_names.push_back(model_.add_memory(each.data()));
  }

  using Make = std::function<Program(uint32_t rank)>;
  // Before a rank's start; and what is in its memory after it.
  using Fill = std::function<void(uint32_t rank, uint64_t start)>;
  using Is = std::function<bool(uint32_t rank, uint64_t start)>;
  void run(const Make& make, const Fill& fill, const Is& is_right) {
    std::vector<Program> programs;
    for (uint32_t rank = 0; rank < ranks; rank++) programs.push_back(make(rank));
    for (const Program& program : programs) model_.add_program(program);
    for (uint32_t rank = 0; rank < ranks; rank++) {
      fill(rank, 0);
      model_.start_one_by_one(rank, [&, rank](uint64_t ended) {
        EXPECT_TRUE(is_right(rank, ended))
            << "rank " << rank << " of " << ranks << ", start " << ended;
        if (ended + 1 < kStarts) fill(rank, ended + 1);
      });
    }
    EXPECT_TRUE(model_.run(kStarts)) << model_.text();
  }

  uint32_t ranks;
  size_t block;
  std::vector<std::vector<uint8_t>> sends, receives, collectives;
  std::vector<Program::Remote> names, collective_names;

 private:
  test::ProgramModel model_;
};

void for_all(size_t block, const std::function<void(uint32_t ranks, uint64_t seed)>& test) {
  ASSERT_GT(block, 0u);
  for (uint32_t ranks = 2; ranks <= kRanksMost; ranks++) {
    for (uint64_t seed = 0; seed < kSeeds; seed++) test(ranks, ranks * 100 + seed);
  }
}

using MakeBroadcast = std::function<Program(Starts& all, uint32_t rank, uint32_t root)>;

void expect_broadcasts(const MakeBroadcast& make) {
  constexpr size_t kBlock = 50;
  for_all(kBlock, [&](uint32_t ranks, uint64_t seed) {
    Starts all(ranks, kBlock, 0, seed);
    const auto root = static_cast<uint32_t>(seed % ranks);
    all.run(
        [&](uint32_t rank) { return make(all, rank, root); },
        [&](uint32_t rank, uint64_t start) {
          for (size_t i = 0; rank == root && i < kBlock; i++) {
            all.receives[root][i] = byte_of(start, root, 0, i);
          }
        },
        [&](uint32_t rank, uint64_t start) {
          size_t right = 0;
          while (right < kBlock && all.receives[rank][right] == byte_of(start, root, 0, right)) {
            right++;
          }
          return right == kBlock;
        });
  });
}

TEST(EachStart, OfAChainBroadcast) {
  expect_broadcasts([](Starts& all, uint32_t rank, uint32_t root) {
    return chain_broadcast(rank, all.ranks, root, all.receives[rank].data(), all.block, 16,
                           all.names);
  });
}

TEST(EachStart, OfABinomialBroadcast) {
  expect_broadcasts([](Starts& all, uint32_t rank, uint32_t root) {
    return binomial_broadcast(rank, all.ranks, root, all.receives[rank].data(), all.block,
                              all.names);
  });
}

// Where everybody has a block of everybody: `to` is 0 where it is the same for all.
void expect_blocks(size_t collective, bool personal,
                   const std::function<Program(Starts& all, uint32_t rank, uint64_t seed)>& make) {
  constexpr size_t kBlock = 5;
  for_all(kBlock, [&](uint32_t ranks, uint64_t seed) {
    Starts all(ranks, kBlock, collective, seed);
    const auto to_of = [&](uint32_t rank) { return personal ? rank : 0; };
    all.run([&](uint32_t rank) { return make(all, rank, seed); },
            [&](uint32_t rank, uint64_t start) {
              for (size_t i = 0; i < ranks * kBlock; i++) {
                const auto to = to_of(static_cast<uint32_t>(i / kBlock));
                all.sends[rank][i] = byte_of(start, rank, to, i % kBlock);
              }
            },
            [&](uint32_t rank, uint64_t start) {
              size_t right = 0;
              for (size_t i = 0; i < ranks * kBlock; i++) {
                const auto from = static_cast<uint32_t>(i / kBlock);
                const uint8_t wanted = byte_of(start, from, to_of(rank), i % kBlock);
                right += all.receives[rank][i] == wanted ? 1 : 0;
              }
              return right == ranks * kBlock;
            });
  });
}

Gathering gathering_of(Starts& all, uint32_t rank, uint64_t copied) {
  Gathering own;
  own.rank = rank;
  own.ranks = all.ranks;
  own.send = all.sends[rank].data();
  own.receive = all.receives[rank].data();
  own.block_bytes = all.block;
  own.own = all.names[rank];
  own.receives = all.names;
  own.copied_bytes = copied;
  own.collective = all.collectives[rank].data();
  own.collectives = all.collective_names;
  return own;
}

TEST(EachStart, OfADoublingAllgather) {
  for (const uint64_t copied : {0u, 5u, 17u, 1000u}) {
    expect_blocks(collective_bytes(kRanksMost, 5, copied) + 64, false,
                  [&](Starts& all, uint32_t rank, uint64_t) {
                    return doubling_allgather(gathering_of(all, rank, copied));
                  });
  }
}

TEST(EachStart, OfARingAllgather) {
  expect_blocks(0, false, [](Starts& all, uint32_t rank, uint64_t) {
    return ring_allgather(gathering_of(all, rank, 0));
  });
}

TEST(EachStart, OfAPairwiseAlltoall) {
  expect_blocks(0, true, [](Starts& all, uint32_t rank, uint64_t seed) {
    const auto window = static_cast<uint32_t>(1 + seed % 3);
    return pairwise_alltoall(rank, all.ranks, all.sends[rank].data(), all.block, window, all.names);
  });
}

TEST(EachStart, OfAPairwiseExchange) {
  expect_blocks(0, true, [](Starts& all, uint32_t rank, uint64_t seed) {
    std::vector<PairBlock> blocks;
    for (uint32_t to = 0; to < all.ranks; to++) {
      blocks.push_back({all.sends[rank].data() + to * all.block,
                        all.block,
                        {.key = all.names[to].key, .offset = rank * all.block}});
    }
    return pairwise_exchange(rank, blocks, static_cast<uint32_t>(1 + seed % 3));
  });
}

}  // namespace
}  // namespace peal::host
