// SPDX-License-Identifier: BSD-2-Clause
// Trinaryx3: three trees in a torus that share no link, and programs that bring every byte to every
// rank once, in all orders that seeds draw.
#include "hostlib/trinary.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "hostlib/program_check.h"
#include "tests/support/program_model.h"

namespace peal::host {
namespace {

constexpr uint32_t kTrees = TrinaryTrees::kTrees;

struct Shape {
  Torus torus;
  uint32_t root;
};

// The paper's twelve nodes, a cube, and what else can be asked for.
const Shape kShapes[] = {{{{2, 2, 3}}, 0},  {{{2, 2, 3}}, 7}, {{{2, 3, 2}}, 5}, {{{3, 3, 3}}, 0},
                         {{{3, 3, 3}}, 13}, {{{2, 2, 2}}, 3}, {{{4, 3, 1}}, 1}, {{{4, 4, 2}}, 9}};

std::string text_of(const Shape& shape) {
  const auto& size = shape.torus.size;
  return std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]) +
         " from " + std::to_string(shape.root);
}

TrinaryTrees plan_of(const Shape& shape) {
  TrinaryTrees trees;
  EXPECT_EQ(TrinaryTrees::plan(shape.torus, shape.root, &trees), "") << text_of(shape);
  return trees;
}

bool are_neighbours(const Torus& torus, uint32_t one, uint32_t other) {
  uint32_t apart = 0;
  for (uint32_t dimension = 0, stride = 1; dimension < 3; stride *= torus.size[dimension++]) {
    const uint32_t extent = torus.size[dimension];
    const uint32_t distance = (one / stride % extent + extent - other / stride % extent) % extent;
    apart += std::min(distance, extent - distance);
  }
  return apart == 1;
}

TEST(TrinaryTrees, NoLinkIsUsedTwiceAndEveryRankIsReachedOnceByEachTree) {
  for (const Shape& shape : kShapes) {
    const TrinaryTrees trees = plan_of(shape);
    std::set<std::pair<uint32_t, uint32_t>> links;
    for (uint32_t tree = 0; tree < kTrees; tree++) {
      std::set<uint32_t> reached;
      std::vector<uint32_t> next = {shape.root};
      while (!next.empty()) {
        const uint32_t rank = next.back();
        next.pop_back();
        EXPECT_TRUE(reached.insert(rank).second) << text_of(shape) << ": rank " << rank << " twice";
        for (const auto& child : trees.at(tree, rank).children) {
          EXPECT_TRUE(are_neighbours(shape.torus, rank, child.rank)) << text_of(shape);
          EXPECT_TRUE(links.insert({rank, child.rank}).second)
              << text_of(shape) << ": link " << rank << " to " << child.rank;
          EXPECT_EQ(trees.at(tree, child.rank).parent, rank);
          next.push_back(child.rank);
        }
      }
      EXPECT_EQ(reached.size(), shape.torus.ranks()) << text_of(shape);
    }
  }
}

TEST(TrinaryTrees, EveryStreamHasAnEngineOfItsOwn) {
  bool branches = false;
  for (const Shape& shape : kShapes) {
    const TrinaryTrees trees = plan_of(shape);
    for (uint32_t rank = 0; rank < trees.ranks(); rank++) {
      std::set<uint8_t> engines;
      for (uint32_t tree = 0; tree < kTrees; tree++) {
        const auto& children = trees.at(tree, rank).children;
        branches = branches || children.size() > 1;
        for (size_t i = 0; i < children.size(); i++) {
          EXPECT_TRUE(engines.insert(children[i].engine).second) << text_of(shape) << " " << rank;
          EXPECT_LT(children[i].engine, kTrees);
          EXPECT_EQ(trees.engine_to(tree, children[i].rank), children[i].engine);
          EXPECT_EQ(children[i].engine == tree, i == 0);
        }
      }
    }
  }
  EXPECT_TRUE(branches);
}

TEST(TrinaryTrees, WhatCannotBeIsRefused) {
  const auto why = [](const Torus& torus, uint32_t root = 0) {
    TrinaryTrees trees;
    return TrinaryTrees::plan(torus, root, &trees);
  };
  EXPECT_EQ(why({{12, 1, 1}}),
            "a torus of 12x1x1 has 2 links from each node; three trees without a common link need "
            "three");
  EXPECT_EQ(why({{1, 1, 1}}),
            "a torus of 1x1x1 has 0 links from each node; three trees without a common link need "
            "three");
  EXPECT_EQ(why({{2, 0, 3}}), "a torus of 2x0x3: each dimension is 1 to 64");
  EXPECT_EQ(why({{2, 2, 65}}), "a torus of 2x2x65: each dimension is 1 to 64");
  EXPECT_EQ(why({{5, 5, 5}}),
            "a torus of 5x5x5 has 125 ranks; three trees are looked for among 64 at most");
  EXPECT_EQ(why({{2, 2, 3}}, 12), "a torus of 2x2x3 has no rank 12");
}

std::vector<Programs> programs_of(const TrinaryTrees& trees,
                                  std::vector<std::vector<uint8_t>>& buffers, size_t bytes,
                                  size_t segment, const std::vector<Program::Remote>& remotes) {
  std::vector<Programs> all;
  for (uint32_t rank = 0; rank < trees.ranks(); rank++) {
    all.push_back(trinary_broadcast(trees, rank, buffers[rank].data(), bytes, segment, remotes));
  }
  return all;
}

TEST(TrinaryBroadcast, TheRootsBytesReachEverybodyInAllOrders) {
  uint64_t seed = 0;
  for (const Shape& shape : kShapes) {
    const TrinaryTrees trees = plan_of(shape);
    for (const size_t bytes : {0u, 2u, 100u, 301u}) {
      seed++;
      std::vector<std::vector<uint8_t>> buffers(trees.ranks(),
                                                std::vector<uint8_t>(bytes + 1, 0xee));
      test::ProgramModel model(seed);
      std::vector<Program::Remote> remotes;
      for (auto& buffer : buffers) remotes.push_back(model.add_memory(buffer.data()));
      const auto all = programs_of(trees, buffers, bytes, 16, remotes);
      for (const Programs& programs : all) {
        for (const auto& program : programs) model.add_program(*program);
      }
      // The last two without a host between them.
      for (const uint64_t iterations : {1u, 2u, 4u}) {
        for (size_t i = 0; i < bytes; i++) {
          buffers[shape.root][i] = static_cast<uint8_t>(i * 7 + seed + 50 * iterations);
        }
        EXPECT_TRUE(model.run(iterations)) << text_of(shape) << ": " << model.text();
        for (const auto& buffer : buffers) EXPECT_EQ(buffer, buffers[shape.root]) << text_of(shape);
      }
      EXPECT_LE(model.farthest_ahead(), 1u);
    }
  }
}

// The root's host has other bytes for each start, and whoever looks at the end of one finds that
// one's: whatever the others, which have started often, are about.
TEST(TrinaryBroadcast, EachStartsBytesAreThereAtItsEnd) {
  constexpr uint64_t kIterations = 5;
  for (const Shape& shape : kShapes) {
    const TrinaryTrees trees = plan_of(shape);
    for (uint32_t seed = 0; seed < trees.ranks(); seed++) {
      const size_t bytes = seed % 3 == 0 ? 2 : 100 + seed;
      std::vector<std::vector<uint8_t>> buffers(trees.ranks(), std::vector<uint8_t>(bytes, 0xee));
      test::ProgramModel model(seed);
      std::vector<Program::Remote> remotes;
      for (auto& buffer : buffers) remotes.push_back(model.add_memory(buffer.data()));
      const auto all = programs_of(trees, buffers, bytes, 16, remotes);
      for (const Programs& programs : all) {
        for (const auto& program : programs) model.add_program(*program);
      }
      const auto bytes_of = [&](uint64_t iteration) {
        std::vector<uint8_t> block(bytes);
        for (size_t i = 0; i < bytes; i++) block[i] = static_cast<uint8_t>(i * 7 + 50 * iteration);
        return block;
      };
      const auto fill_root = [&](uint64_t iteration) {
        const auto block = bytes_of(iteration);
        std::copy(block.begin(), block.end(), buffers[shape.root].begin());
      };
      fill_root(0);
      model.start_one_by_one(shape.root, [&](uint64_t ended) {
        if (ended + 1 < kIterations) fill_root(ended + 1);
      });
      uint64_t looked = 0;
      const uint32_t observer = (shape.root + 1 + seed % (trees.ranks() - 1)) % trees.ranks();
      model.start_one_by_one(observer, [&](uint64_t ended) {
        looked++;
        EXPECT_EQ(buffers[observer], bytes_of(ended)) << text_of(shape) << ", seed " << seed;
      });
      ASSERT_TRUE(model.run(kIterations)) << text_of(shape) << ": " << model.text();
      EXPECT_EQ(looked, kIterations);
      for (const auto& buffer : buffers) EXPECT_EQ(buffer, buffers[shape.root]) << text_of(shape);
    }
  }
}

// Of all ranks' puts together every byte has one for each rank, but for the root's.
TEST(TrinaryBroadcast, EachRankIsSentEachByteOnce) {
  constexpr size_t kBytes = 301;
  for (const Shape& shape : kShapes) {
    const TrinaryTrees trees = plan_of(shape);
    std::vector<std::vector<uint8_t>> buffers(trees.ranks(), std::vector<uint8_t>(kBytes));
    std::vector<Program::Remote> remotes(trees.ranks());
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> times;
    for (const Programs& programs : programs_of(trees, buffers, kBytes, 16, remotes)) {
      for (const auto& program : programs) {
        for (const Program::Step& step : program->steps()) {
          const peal_descriptor& descriptor = step.descriptor;
          for (uint64_t i = 0; i < descriptor.bytes; i++) {
            times[{descriptor.rank, descriptor.remote_offset + i}]++;
          }
        }
      }
    }
    EXPECT_EQ(times.size(), (trees.ranks() - 1) * kBytes) << text_of(shape);
    for (const auto& [place, count] : times) {
      EXPECT_EQ(count, 1u) << text_of(shape);
      EXPECT_NE(place.first, shape.root);
    }
  }
}

TEST(TrinaryBroadcast, CardsTakeItsPrograms) {
  for (const Shape& shape : kShapes) {
    const TrinaryTrees trees = plan_of(shape);
    std::vector<std::vector<uint8_t>> buffers(trees.ranks(), std::vector<uint8_t>(1000));
    std::vector<Program::Remote> remotes(trees.ranks(), {.key = 7, .offset = 0});
    for (const Programs& programs : programs_of(trees, buffers, 1000, 64, remotes)) {
      ASSERT_EQ(programs.size(), kTrees);
      for (uint8_t engine = 0; engine < kTrees; engine++) {
        EXPECT_EQ(programs[engine]->shape().engine, engine);
        for (const Finding& finding : check_program(*programs[engine])) {
          EXPECT_FALSE(finding.wrong) << text_of(shape) << ": " << finding.text;
        }
      }
    }
  }
}

}  // namespace
}  // namespace peal::host
