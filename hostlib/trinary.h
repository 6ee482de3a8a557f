// SPDX-License-Identifier: BSD-2-Clause
// Trinaryx3: a broadcast of three fragments over three transmit engines (Morie and others,
// "Prototyping of Offloaded Persistent Broadcast on Tofu2 Interconnect"). Each fragment goes down a
// tree of its own, segment behind segment. The trees lie in a 3-D torus such that each of their
// edges is one link, and no link is used twice; and no rank passes on more than three streams, so
// that each leaves by an engine of its own. docs/decisions/0036
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hostlib/program.h"

namespace peal::host {

// Ranks by place: x first, then y, then z. Neighbours are one apart, the last and the first as
// well; along a dimension of two they have one link each way, as on Tofu.
struct Torus {
  std::array<uint32_t, 3> size = {1, 1, 1};

  [[nodiscard]] uint64_t ranks() const { return uint64_t{size[0]} * size[1] * size[2]; }
  // Whom a rank has a link to.
  [[nodiscard]] std::vector<uint32_t> neighbours(uint32_t rank) const;
};

class TrinaryTrees {
 public:
  static constexpr uint32_t kTrees = 3;
  static constexpr uint32_t kNoRank = ~0u;
  static constexpr uint32_t kRanksMax = 64;

  struct Child {
    uint32_t rank;
    uint8_t engine;  // by which it is sent to
  };
  struct Node {
    uint32_t parent = kNoRank;
    std::vector<Child> children;  // the first by the engine of the tree's own number
  };

  // The same on all ranks. Empty, or why this torus cannot have three such trees.
  [[nodiscard]] static std::string plan(const Torus& torus, uint32_t root, TrinaryTrees* trees);

  [[nodiscard]] uint32_t ranks() const { return static_cast<uint32_t>(nodes_[0].size()); }
  [[nodiscard]] const Node& at(uint32_t tree, uint32_t rank) const { return nodes_[tree][rank]; }
  // By which the rank is sent to in that tree.
  [[nodiscard]] uint8_t engine_to(uint32_t tree, uint32_t rank) const;
  // The tree, and the child, that the rank's engine sends to; false: it has nothing to send.
  [[nodiscard]] bool stream_of(uint32_t rank, uint8_t engine, uint32_t* tree, Child* child) const;

 private:
  std::array<std::vector<Node>, kTrees> nodes_;
};

// A rank's three programs, in the order in which all ranks must commit them: one for each engine.
// A start is one of each. At most as many segments as a program has descriptors for. `buffers`:
// everybody's, by rank; `buffer` the own one.
using Programs = std::vector<std::unique_ptr<Program>>;
Programs trinary_broadcast(const TrinaryTrees& trees, uint32_t rank, void* buffer, uint64_t bytes,
                           uint64_t segment_bytes, const std::vector<Program::Remote>& buffers);

}  // namespace peal::host
